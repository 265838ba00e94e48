//! Token ids and a mel in, the mel that the voice would have said next to each of its frames out.
//!
//! SpeechT5 for speech synthesis, taught by the true frames (`modeling_speecht5.py`, transformers 5.24), over tensors
//! that have the checkpoint's names. Batch normalisation runs on the voice's own statistics: an adapted voice is
//! trained as it will speak. Never decides a precision: see [`Arithmetic`].

mod arithmetic;
mod decoder;
mod dropout;
mod encoder;
mod parameters;
mod release;

use burn::tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};

pub use arithmetic::Arithmetic;
pub use dropout::Dropout;
pub use parameters::{Parameters, is_statistic, resting_dtype};
pub use release::{Take, part};

use arithmetic::to;

use crate::voice::config::AcousticConfig;
use crate::voice::names::{FFN_IN, FFN_OUT, FINAL_NORM, PROJECTIONS};

/// Sentences that are learned together, padded to the longest.
#[derive(Debug, Clone)]
pub struct Batch {
    /// [batch, tokens]
    pub ids: Vec<Vec<i64>>,
    /// [batch][frames * n_mels], whole steps of `reduction_factor` frames
    pub mels: Vec<Vec<f32>>,
    /// [batch]
    pub speakers: Vec<Speaker>,
}

/// Who says a sentence.
#[derive(Debug, Clone, PartialEq)]
pub enum Speaker {
    /// [speaker_embedding_dim]
    Given(Vec<f32>),
    /// A speaker of this name, whose embedding is one of the [`Parameters`]: see [`learned_speaker`].
    Learned(String),
}

/// How the names of embeddings that learn begin among the [`Parameters`].
pub const LEARNED_SPEAKERS: &str = "speakers.";

/// What the embedding of the speaker called `name` is called among the [`Parameters`].
pub fn learned_speaker(name: &str) -> String {
    format!("{LEARNED_SPEAKERS}{name}")
}

impl Batch {
    pub fn tokens(&self) -> usize {
        self.ids.iter().map(Vec::len).max().unwrap_or(0)
    }

    pub fn frames(&self, n_mels: usize) -> usize {
        self.mels.iter().map(|mel| mel.len() / n_mels).max().unwrap_or(0)
    }
}

/// What the network gives for a batch.
pub struct Outputs {
    /// [batch, frames, n_mels]
    pub before_postnet: Tensor<3>,
    /// [batch, frames, n_mels]
    pub after_postnet: Tensor<3>,
    /// [batch, frames]
    pub stop_logits: Tensor<2>,
    /// For every decoder layer [batch, heads, steps, tokens]
    pub cross_attentions: Vec<Tensor<4>>,
}

/// The network of one voice.
pub struct Network<'a> {
    pub config: &'a AcousticConfig,
    pub arithmetic: Arithmetic,
    pub device: Device,
}

/// Added to the scores of what must not be attended to, in f32.
const MASKED: f32 = -1e9;

impl Network<'_> {
    /// Runs the network over `batch`.
    pub fn forward(&self, weights: &Parameters, batch: &Batch, dropout: &mut Dropout) -> Outputs {
        let mask = self.token_mask(batch);
        let hidden = self.encode(weights, batch, mask.clone(), dropout);
        self.decode(weights, batch, hidden, mask, dropout)
    }

    /// [rows, width] as positions are counted: sine and cosine by turns ("Attention Is All You Need", 3.5).
    fn positions(&self, rows: usize) -> Tensor<3> {
        let width = self.config.hidden_size;
        let mut table = vec![0.0_f32; rows * width];
        for (position, row) in table.chunks_mut(width).enumerate() {
            for (index, pair) in row.chunks_mut(2).enumerate() {
                let rate = (2.0 * index as f32 * -(10000.0_f32.ln() / width as f32)).exp();
                let (sine, cosine) = (position as f32 * rate).sin_cos();
                pair.iter_mut().zip([sine, cosine]).for_each(|(value, wave)| *value = wave);
            }
        }
        self.tensor(table, [1, rows, width])
    }

    /// 0 for tokens, a very negative number for padding. -> [batch, 1, 1, tokens]
    fn token_mask(&self, batch: &Batch) -> Tensor<4> {
        let tokens = batch.tokens();
        let pad = |ids: &Vec<i64>| {
            (0..tokens).map(|at| if at < ids.len() { 0.0 } else { MASKED }).collect::<Vec<_>>()
        };
        let mask: Vec<f32> = batch.ids.iter().flat_map(pad).collect();
        self.tensor(mask, [batch.ids.len(), 1, 1, tokens])
    }

    fn tensor<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values, shape), (&self.device, DType::F32))
    }

    fn integers(&self, values: Vec<i64>) -> Tensor<1, Int> {
        let len = values.len();
        Tensor::from_data(TensorData::new(values, [len]), &self.device)
    }

    /// Multi-head attention of queries over values; `bias` is added to the scores.
    /// -> [batch, length, hidden], and the attention [batch, heads, length, values] before dropout
    fn attention(
        &self,
        weights: &Parameters,
        module: &str,
        heads: usize,
        [queries, values]: [Tensor<3>; 2],
        bias: impl FnOnce(Tensor<4>) -> Tensor<4>,
        dropout: &mut Dropout,
    ) -> (Tensor<3>, Tensor<4>) {
        let math = &self.arithmetic;
        let [batch, length, hidden] = queries.dims();
        let width = hidden / heads;
        let split = |x: Tensor<3>| {
            let [batch, length, _] = x.dims();
            x.reshape([batch, length, heads, width]).swap_dims(1, 2)
        };
        let [q, k, v, out] = PROJECTIONS.map(|projection| format!("{module}.{projection}"));
        let q = split(math.linear(weights, &q, queries)) * (1.0 / (width as f64).sqrt());
        let k = split(math.linear(weights, &k, values.clone()));
        let v = split(math.linear(weights, &v, values));
        let scores = to(math.matmul(q.clone(), k.swap_dims(2, 3)), FloatDType::F32);
        let attention = math.softmax(scores + bias(q));
        let dropped = dropout.apply(attention.clone(), self.config.training.attention_dropout);
        let mixed = math.matmul(dropped, v).swap_dims(1, 2).reshape([batch, length, hidden]);
        (math.linear(weights, &out, mixed), attention)
    }

    /// Two linear maps with a GELU between them, and the normalised sum with what went in.
    fn feed_forward(
        &self,
        weights: &Parameters,
        layer: &str,
        x: Tensor<3>,
        dropout: &mut Dropout,
    ) -> Tensor<3> {
        let (math, rates) = (&self.arithmetic, &self.config.training);
        let inner = arithmetic::gelu(math.linear(weights, &format!("{layer}.{FFN_IN}"), x.clone()));
        let inner = dropout.apply(inner, rates.activation_dropout);
        let outer = math.linear(weights, &format!("{layer}.{FFN_OUT}"), inner);
        let outer = dropout.apply(outer, rates.hidden_dropout);
        self.norm(weights, &format!("{layer}.{FINAL_NORM}"), math.add(x, outer))
    }

    fn norm(&self, weights: &Parameters, module: &str, x: Tensor<3>) -> Tensor<3> {
        self.arithmetic.layer_norm(weights, module, x, self.config.layer_norm_eps)
    }
}
