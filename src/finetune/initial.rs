//! The sizes of a network and a seed in, weights that nobody has trained out.
//!
//! As `transformers` 5.24 begins (`modeling_speecht5.py`, `_init_weights`): normal numbers of deviation 0.02, convolutions
//! by Kaiming's rule, norms that change nothing. Never looks at a checkpoint.

use std::borrow::Cow;
use std::f64::consts::TAU;
use std::path::Path;

use super::tensor_file::Stored;
use crate::error::{Error, Result};
use crate::precision::Dtype;
use crate::precision::cast::f64_to_f32;
use crate::split_mix::{GOLDEN, mix};
use crate::voice::checkpoint::Checkpoint;
use crate::voice::config::AcousticConfig;
use crate::voice::names::{RUNNING_VAR, Required, TOKEN_EMBEDDING, acoustic};

/// `initializer_range` of `SpeechT5Config`.
const DEVIATION: f64 = 0.02;

/// Weights for `config`, drawn from `seed`.
///
/// # Errors
/// [`Error::Internal`] when they cannot be laid out.
pub fn weights(config: &AcousticConfig, seed: u64) -> Result<Checkpoint> {
    let mut tensors = Vec::new();
    for (number, Required { name, shape }) in acoustic(config).into_iter().enumerate() {
        let mut values = values(&name, &shape, mix(seed ^ mix(number as u64)));
        if name == TOKEN_EMBEDDING
            && let Some(pad) = usize::try_from(config.pad_token_id)
                .ok()
                .and_then(|id| values.chunks_mut(config.hidden_size).nth(id))
        {
            pad.fill(0.0);
        }
        let data = values.into_iter().flat_map(f32::to_le_bytes).collect();
        tensors.push((name, Stored { dtype: Dtype::F32, shape, data }));
    }
    let file = safetensors::serialize(tensors, None)
        .map_err(|e| Error::Internal(format!("new weights could not be laid out: {e}")))?;
    Checkpoint::parse(Path::new("new weights"), Cow::Owned(file))
}

fn values(name: &str, shape: &[usize], seed: u64) -> Vec<f32> {
    let len = shape.iter().product();
    if name.ends_with(".bias") || name.ends_with(".running_mean") {
        return vec![0.0; len];
    }
    let is_gain = name.contains("layer_norm.") || name.contains("batch_norm.") || name.ends_with(".alpha");
    if is_gain || name.ends_with(RUNNING_VAR) {
        return vec![1.0; len];
    }
    let deviation = match shape {
        [_, inputs, kernel] => (2.0 / (inputs * kernel) as f64).sqrt(),
        _ => DEVIATION,
    };
    (0..len as u64).map(|at| f64_to_f32(normal(seed, at) * deviation)).collect()
}

/// A number of deviation 1, by Box and Muller.
fn normal(seed: u64, at: u64) -> f64 {
    let uniform =
        |draw: u64| (mix(seed.wrapping_add(draw.wrapping_mul(GOLDEN))) >> 11) as f64 / (1_u64 << 53) as f64;
    let (radius, angle) = (1.0 - uniform(2 * at), uniform(2 * at + 1));
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_normal_and_norms_change_nothing() {
        let drawn: Vec<f64> =
            values("a.q_proj.weight", &[100, 100], 7).iter().map(|v| f64::from(*v)).collect();
        let mean = drawn.iter().sum::<f64>() / 1e4;
        let deviation = (drawn.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 1e4).sqrt();
        assert!(mean.abs() < 6e-4 && (deviation / DEVIATION - 1.0).abs() < 0.03, "{mean}, {deviation}");
        assert_eq!(values("a.batch_norm.running_var", &[2], 7), [1.0; 2]);
        assert_eq!(values("a.final_layer_norm.weight", &[2], 7), [1.0; 2]);
        assert_eq!(values("a.encode_positions.alpha", &[], 7), [1.0]);
        assert_eq!(values("a.final_layer_norm.bias", &[2], 7), [0.0; 2]);
        assert_ne!(values("w.weight", &[2], 7), values("w.weight", &[2], 8));
    }
}
