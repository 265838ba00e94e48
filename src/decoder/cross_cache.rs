//! Encoded sentences in, one cross-attention cache for a whole batch out.
//!
//! Every sentence is padded to the longest one's capacity, in steps of [`TOKEN_STEP`], with zeros behind a mask.
//! Never keeps a sentence of a stream that has left.

use crate::encoder::Encoded;
use crate::error::Result;
use crate::graph::{decoder as graph, encoder as encoder_graph};
use crate::precision::Dtype;
use crate::runtime::{Binding, Tensor};
use crate::voice::config::AcousticConfig;

/// Capacities are multiples of this. The attention kernels sum blocks of this many values in the same order
/// whatever follows, so a stream's bits do not depend on the length of its neighbours' sentences.
const TOKEN_STEP: usize = 64;

/// The cross-attention keys and values of every decoder layer, a row a stream.
pub struct CrossCache {
    /// By layer: keys and values, KV dtype [slots, heads, capacity, head_dim] at the start of the memory
    layers: Vec<[Tensor; 2]>,
    /// i32 [slots, capacity] at the start of the memory: 1 for a symbol, 0 for padding
    mask: Tensor,
    heads: usize,
    head_dim: usize,
    position_bytes: usize,
    capacity: usize,
    /// What the rows were filled from.
    sentences: Vec<Encoded>,
}

impl CrossCache {
    /// Room for `slots` sentences of `symbols` symbols each.
    pub fn allocate(config: &AcousticConfig, dtype: Dtype, slots: usize, symbols: usize) -> Result<Self> {
        let heads = config.decoder_attention_heads;
        let head_dim = config.hidden_size / heads;
        let most = symbols.next_multiple_of(TOKEN_STEP);
        let tensor = || Tensor::unwritten(dtype, &[slots, heads, most, head_dim]);
        let layers = (0..config.decoder_layers).map(|_| Ok([tensor()?, tensor()?])).collect::<Result<_>>()?;
        let mask = Tensor::i32(&[slots, most], &vec![0; slots * most])?;
        let position_bytes = head_dim * dtype.size_bytes();
        Ok(Self { layers, mask, heads, head_dim, position_bytes, capacity: 0, sentences: Vec::new() })
    }

    /// Symbols that a row has room for now.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds a sentence behind the others.
    pub fn push(&mut self, sentence: Encoded) -> Result<()> {
        self.sentences.push(sentence);
        self.fill(self.sentences.len() - 1)
    }

    /// Gives a row its next sentence.
    pub fn replace(&mut self, row: usize, sentence: Encoded) -> Result<()> {
        self.sentences[row] = sentence;
        self.fill(row)
    }

    pub fn swap(&mut self, a: usize, b: usize) -> Result<()> {
        self.sentences.swap(a, b);
        self.write(a)?;
        self.write(b)
    }

    /// Forgets the last row.
    pub fn pop(&mut self) {
        self.sentences.pop();
    }

    /// Binds the first `rows` streams.
    ///
    /// # Safety
    /// The cache must outlive every run of `binding`, nobody may access it during one, and a binding must not be
    /// run any more once the capacity has changed.
    pub unsafe fn bind(&self, binding: &mut Binding, rows: usize) -> Result<()> {
        let shape = [rows, self.heads, self.capacity, self.head_dim];
        for (layer, [keys, values]) in self.layers.iter().enumerate() {
            // SAFETY: passed on to the caller.
            unsafe {
                binding.input_rows(&encoder_graph::cross_key(layer), keys, &shape)?;
                binding.input_rows(&encoder_graph::cross_value(layer), values, &shape)?;
            }
        }
        // SAFETY: passed on to the caller.
        unsafe { binding.input_rows(graph::CROSS_MASK, &self.mask, &[rows, self.capacity]) }
    }

    /// Writes `row`, and every other row too if the longest sentence asks for another capacity.
    fn fill(&mut self, row: usize) -> Result<()> {
        let longest = self.sentences.iter().map(|sentence| sentence.tokens).max().unwrap_or(0);
        let capacity = longest.next_multiple_of(TOKEN_STEP);
        if capacity == self.capacity {
            return self.write(row);
        }
        self.capacity = capacity;
        (0..self.sentences.len()).try_for_each(|row| self.write(row))
    }

    fn write(&mut self, row: usize) -> Result<()> {
        let (sentence, capacity) = (&self.sentences[row], self.capacity);
        let (head_bytes, written) = (capacity * self.position_bytes, sentence.tokens * self.position_bytes);
        let sources = sentence.cross_keys.iter().zip(&sentence.cross_values);
        for ([keys, values], (from_keys, from_values)) in self.layers.iter_mut().zip(sources) {
            for (to, from) in [(keys, from_keys), (values, from_values)] {
                let row = &mut to.bytes_mut()?[row * self.heads * head_bytes..][..self.heads * head_bytes];
                let heads = row.chunks_exact_mut(head_bytes).zip(from.bytes()?.chunks_exact(written));
                for (to, from) in heads {
                    to[..written].copy_from_slice(from);
                    to[written..].fill(0);
                }
            }
        }
        let mask = &mut self.mask.i32_mut()?[row * capacity..][..capacity];
        mask[..sentence.tokens].fill(1);
        mask[sentence.tokens..].fill(0);
        Ok(())
    }

    /// Bytes that one stream's row takes for sentences of `symbols` symbols.
    pub fn bytes_per_stream(config: &AcousticConfig, dtype: Dtype, symbols: usize) -> usize {
        let most = symbols.next_multiple_of(TOKEN_STEP);
        2 * config.decoder_layers * most * config.hidden_size * dtype.size_bytes()
    }
}
