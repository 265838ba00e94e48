//! A Vocos vocoder as a graph: mel frames in, magnitude and phase of an STFT out, f32 throughout.
//!
//! Never inverts the STFT: that is the vocoder stage's, in Rust.

use super::layers::Kernel;
use super::{Attribute, Builder, Dim, Value};
use crate::error::Result;
use crate::precision::{Dtype, StagePlan};
use crate::voice::config::VocosConfig;
use crate::voice::{Voice, names};

/// f32 [1, frames, n_mels]
pub const MEL: &str = "mel";
/// f32 [1, frames, n_fft / 2 + 1]
pub const MAGNITUDE: &str = "magnitude";
/// f32 [1, frames, n_fft / 2 + 1], in radians, not wrapped
pub const PHASE: &str = "phase";

/// The epsilon of every layer norm in Vocos, which its configuration does not mention.
const NORM_EPS: f32 = 1e-6;

/// How many frames on either side a frame's spectrum depends on.
pub fn context_frames(config: &VocosConfig) -> usize {
    (config.num_layers + 1) * (config.kernel_size - 1) / 2
}

/// Builds the vocoder of `voice`, whose configuration is `config`, up to magnitude and phase.
pub fn vocos(voice: &Voice, config: &VocosConfig, plan: StagePlan) -> Result<Vec<u8>> {
    let (mels, dim, width) = (config.model_in_dim, config.dim, config.kernel_size);
    let mut builder = Builder::new("vocos", &voice.vocoder, plan);
    let b = &mut builder;
    let x = b.input(MEL, Dtype::F32, &[Dim::Fixed(1), Dim::Free("frames"), Dim::Fixed(mels)])?;
    let embed = Kernel::read(b, names::VOCOS_EMBED, [dim, mels, width])?;
    let x = b.conv1d_of_rows(&x, &embed)?;
    let mut x = b.layer_norm(&x, names::VOCOS_NORM, dim, NORM_EPS)?;
    for layer in 0..config.num_layers {
        x = convnext_block(b, config, &x, &names::convnext(layer))?;
    }
    let x = b.layer_norm(&x, names::VOCOS_FINAL_NORM, dim, NORM_EPS)?;

    let bins = config.n_fft / 2 + 1;
    let spectrum = b.linear(&x, names::VOCOS_HEAD, [2 * bins, dim])?;
    let halves = b.integers(&[bins as i64, bins as i64], &[2])?;
    let parts = b.node("", "Split", &[&spectrum, &halves], &[("axis", Attribute::Int(2))], 2);
    let magnitude = b.op("Exp", &[&parts[0]], &[]);
    let ceiling = b.constant(&[config.max_magnitude], &[])?;
    let magnitude = b.op("Min", &[&magnitude, &ceiling], &[]);
    let dims = [Dim::Fixed(1), Dim::Free("frames"), Dim::Fixed(bins)];
    b.output(MAGNITUDE, &magnitude, Dtype::F32, &dims)?;
    b.output(PHASE, &parts[1], Dtype::F32, &dims)?;
    Ok(builder.finish())
}

/// Depthwise convolution, layer norm, two linear maps around a GELU, scaled by γ, added to the input.
/// f32 [1, frames, dim] -> the same
fn convnext_block(b: &mut Builder, config: &VocosConfig, x: &Value, prefix: &str) -> Result<Value> {
    let (dim, inner) = (config.dim, config.intermediate_dim);
    let y = b.transpose(x, &[0, 2, 1]);
    let depthwise = Kernel {
        groups: dim,
        ..Kernel::read(b, &format!("{prefix}.{}", names::CONVNEXT_DEPTHWISE), [dim, 1, config.kernel_size])?
    };
    let y = b.conv1d(&y, &depthwise)?;
    let y = b.transpose(&y, &[0, 2, 1]);
    let y = b.layer_norm(&y, &format!("{prefix}.{}", names::CONVNEXT_NORM), dim, NORM_EPS)?;
    let y = b.linear_gelu(&y, &format!("{prefix}.{}", names::CONVNEXT_IN), [inner, dim])?;
    let y = scaled_linear(b, &y, prefix, dim, inner)?;
    Ok(b.op("Add", &[&y, x], &[]))
}

/// `γ · (pwconv2 · y + b)`, γ folded into the weights.
fn scaled_linear(b: &mut Builder, y: &Value, prefix: &str, dim: usize, inner: usize) -> Result<Value> {
    let gamma = b.values(&format!("{prefix}.{}", names::CONVNEXT_GAMMA))?;
    let output = format!("{prefix}.{}", names::CONVNEXT_OUT);
    let mut weight = b.values(&names::weight(&output))?; // [dim, inner]
    let mut bias = b.values(&names::bias(&output))?;
    for ((row, bias), gain) in weight.chunks_exact_mut(inner).zip(&mut bias).zip(&gamma) {
        row.iter_mut().for_each(|w| *w *= gain);
        *bias *= gain;
    }
    b.affine(y, &super::layers::transposed(&weight, [dim, inner]), &bias)
}
