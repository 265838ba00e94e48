//! A batch size and a capacity in, self-attention caches that a step appends to in place out.
//!
//! Never copied and never grown: it is allocated once, and positions not yet written hold NaN.

use crate::error::Result;
use crate::graph::decoder as graph;
use crate::precision::Dtype;
use crate::runtime::{Binding, Tensor};
use crate::voice::config::AcousticConfig;

/// The self-attention keys and values of every decoder layer.
pub struct KvCache {
    /// By layer, KV dtype [slots, heads, capacity, head_dim]
    keys: Vec<Tensor>,
    /// By layer, KV dtype [slots, heads, capacity, head_dim]
    values: Vec<Tensor>,
}

impl KvCache {
    /// Room for `slots` streams of `capacity` steps each.
    pub fn allocate(config: &AcousticConfig, dtype: Dtype, slots: usize, capacity: usize) -> Result<Self> {
        let heads = config.decoder_attention_heads;
        let shape = [slots, heads, capacity, config.hidden_size / heads];
        let layers =
            || (0..config.decoder_layers).map(|_| Tensor::unwritten(dtype, &shape)).collect::<Result<_>>();
        Ok(Self { keys: layers()?, values: layers()? })
    }

    /// Binds every layer's cache as both past and present, so that a step appends in place.
    pub fn bind(&mut self, binding: &mut Binding) -> Result<()> {
        for (layer, key) in self.keys.iter_mut().enumerate() {
            binding.input(&graph::past_key(layer), key)?;
            binding.output(&graph::present_key(layer), key)?;
        }
        for (layer, value) in self.values.iter_mut().enumerate() {
            binding.input(&graph::past_value(layer), value)?;
            binding.output(&graph::present_value(layer), value)?;
        }
        Ok(())
    }

    /// Bytes that a cache of `slots` × `capacity` takes.
    pub fn bytes(config: &AcousticConfig, dtype: Dtype, slots: usize, capacity: usize) -> usize {
        2 * config.decoder_layers * slots * capacity * config.hidden_size * dtype.size_bytes()
    }
}
