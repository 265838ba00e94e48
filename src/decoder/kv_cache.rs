//! Slots and a capacity in, self-attention caches that a step appends to in place out.
//!
//! Never grown: it is allocated once. Rows of other streams are never touched, and moving a stream to another
//! row copies what it has written and no more.

use crate::error::Result;
use crate::graph::decoder as graph;
use crate::precision::Dtype;
use crate::runtime::{Binding, Tensor};
use crate::voice::config::AcousticConfig;

/// The self-attention keys and values of every decoder layer, a row a stream.
pub struct KvCache {
    /// By layer: keys and values, KV dtype [slots, heads, capacity, head_dim]
    layers: Vec<[Tensor; 2]>,
    heads: usize,
    capacity: usize,
    head_dim: usize,
    /// Bytes of one head's values at one position.
    position_bytes: usize,
}

impl KvCache {
    /// Room for `slots` streams of `capacity` steps each.
    pub fn allocate(config: &AcousticConfig, dtype: Dtype, slots: usize, capacity: usize) -> Result<Self> {
        let heads = config.decoder_attention_heads;
        let head_dim = config.hidden_size / heads;
        let tensor = || Tensor::unwritten(dtype, &[slots, heads, capacity, head_dim]);
        let layers = (0..config.decoder_layers).map(|_| Ok([tensor()?, tensor()?])).collect::<Result<_>>()?;
        Ok(Self { layers, heads, capacity, head_dim, position_bytes: head_dim * dtype.size_bytes() })
    }

    /// Binds the first `rows` streams of every layer as both past and present, so that a step appends in place.
    ///
    /// # Safety
    /// The cache must outlive every run of `binding`, and nobody may access it during one.
    pub unsafe fn bind(&self, binding: &mut Binding, rows: usize) -> Result<()> {
        let shape = [rows, self.heads, self.capacity, self.head_dim];
        for (layer, [keys, values]) in self.layers.iter().enumerate() {
            // SAFETY: passed on to the caller.
            unsafe {
                binding.input_rows(&graph::past_key(layer), keys, &shape)?;
                binding.output_rows(&graph::present_key(layer), keys, &shape)?;
                binding.input_rows(&graph::past_value(layer), values, &shape)?;
                binding.output_rows(&graph::present_value(layer), values, &shape)?;
            }
        }
        Ok(())
    }

    /// Exchanges two rows, of which `steps` positions are written at most.
    pub fn swap(&mut self, a: usize, b: usize, steps: usize) -> Result<()> {
        let (head_bytes, written) = (self.capacity * self.position_bytes, steps * self.position_bytes);
        let (low, high) = (a.min(b), a.max(b));
        if low == high {
            return Ok(());
        }
        for tensor in self.layers.iter_mut().flatten() {
            let (before, from_high) = tensor.bytes_mut()?.split_at_mut(high * self.heads * head_bytes);
            let low_row = &mut before[low * self.heads * head_bytes..][..self.heads * head_bytes];
            for (low, high) in
                low_row.chunks_exact_mut(head_bytes).zip(from_high.chunks_exact_mut(head_bytes))
            {
                low[..written].swap_with_slice(&mut high[..written]);
            }
        }
        Ok(())
    }

    /// Bytes that one stream's row of `capacity` steps takes.
    pub fn bytes_per_stream(config: &AcousticConfig, dtype: Dtype, capacity: usize) -> usize {
        2 * config.decoder_layers * capacity * config.hidden_size * dtype.size_bytes()
    }
}
