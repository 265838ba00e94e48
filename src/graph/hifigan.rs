//! A `SpeechT5HifiGan` vocoder as a graph: mel frames in, samples out, f32 throughout.
//!
//! Never emits samples that a window's edge has touched by itself: [`context_frames`] tells the caller how
//! far the edges reach.

use super::layers::Kernel;
use super::{Attribute, Builder, Dim, Value};
use crate::error::Result;
use crate::precision::{Dtype, StagePlan};
use crate::voice::config::HifiGanConfig;
use crate::voice::{Voice, names};

/// f32 [1, frames, n_mels]
pub const MEL: &str = "mel";
/// f32 [1, 1, frames · hop length]
pub const SAMPLES: &str = "samples";

/// PyTorch's default slope, used once, before the last convolution.
const LAST_SLOPE: f32 = 0.01;

/// How many frames on either side a frame's samples depend on.
///
/// Counted backwards from a sample, in samples of each stage: the last convolution reads 3 to either side, a
/// residual block `(k − 1)/2 · (d + 1)` for each dilation d, and a transposed convolution turns a reach of n
/// into `(n + (kernel − rate)/2) / rate` rounded up, plus the frame that the sample falls in.
pub fn context_frames(config: &HifiGanConfig) -> usize {
    let mut reach = names::HIFIGAN_OUTER_KERNEL / 2;
    for (rate, kernel) in config.upsample_rates.iter().zip(&config.upsample_kernel_sizes).rev() {
        let block = |(kernel, dilations): (&usize, &Vec<usize>)| {
            dilations.iter().map(|dilation| (kernel - 1) / 2 * (dilation + 1)).sum::<usize>()
        };
        reach += config
            .resblock_kernel_sizes
            .iter()
            .zip(&config.resblock_dilation_sizes)
            .map(block)
            .max()
            .unwrap_or(0);
        reach = (reach + kernel.saturating_sub(1)).div_ceil(*rate);
    }
    reach + names::HIFIGAN_OUTER_KERNEL / 2
}

/// Builds the vocoder of `voice`, whose configuration is `config`.
pub fn hifigan(voice: &Voice, config: &HifiGanConfig, plan: StagePlan) -> Result<Vec<u8>> {
    let mut builder = Builder::new("hifigan", &voice.vocoder, plan);
    let b = &mut builder;
    let mels = config.model_in_dim;
    let mut x = b.input(MEL, Dtype::F32, &[Dim::Fixed(1), Dim::Free("frames"), Dim::Fixed(mels)])?;
    if config.normalize_before {
        let mean = b.values(names::HIFIGAN_MEAN)?;
        let mean = b.constant(&mean, &[mels])?;
        let scale = b.values(names::HIFIGAN_SCALE)?;
        let scale = b.constant(&scale, &[mels])?;
        x = b.op("Sub", &[&x, &mean], &[]);
        x = b.op("Div", &[&x, &scale], &[]);
    }
    x = b.transpose(&x, &[0, 2, 1]);
    let mut channels = config.upsample_initial_channel;
    let first = Kernel::read(b, names::HIFIGAN_PRE, [channels, mels, names::HIFIGAN_OUTER_KERNEL])?;
    x = b.conv1d(&x, &first)?;
    for stage in 0..config.upsample_rates.len() {
        x = leaky_relu(b, &x, config.leaky_relu_slope);
        x = upsample(b, config, &x, stage, channels)?;
        channels /= 2;
        x = residual_blocks(b, config, &x, stage, channels)?;
    }
    x = leaky_relu(b, &x, LAST_SLOPE);
    let last = Kernel::read(b, names::HIFIGAN_POST, [1, channels, names::HIFIGAN_OUTER_KERNEL])?;
    x = b.conv1d(&x, &last)?;
    x = b.op("Tanh", &[&x], &[]);
    b.output(SAMPLES, &x, Dtype::F32, &[Dim::Fixed(1), Dim::Fixed(1), Dim::Free("samples")])?;
    Ok(builder.finish())
}

fn leaky_relu(b: &mut Builder, x: &Value, slope: f32) -> Value {
    b.op("LeakyRelu", &[x], &[("alpha", Attribute::Float(slope))])
}

/// The stage's transposed convolution: `channels` in, half as many out, `upsample_rates[stage]` times as long.
fn upsample(
    b: &mut Builder,
    config: &HifiGanConfig,
    x: &Value,
    stage: usize,
    channels: usize,
) -> Result<Value> {
    let (rate, width) = (config.upsample_rates[stage], config.upsample_kernel_sizes[stage]);
    let prefix = names::upsampler(stage);
    let weight = b.values(&names::weight(&prefix))?;
    let weight = b.weight(&weight, &[channels, channels / 2, width])?;
    let bias = b.values(&names::bias(&prefix))?;
    let bias = b.weight(&bias, &[channels / 2])?;
    let pad = ((width - rate) / 2) as i64;
    let attributes = [
        ("kernel_shape", Attribute::Ints(&[width as i64])),
        ("strides", Attribute::Ints(&[rate as i64])),
        ("pads", Attribute::Ints(&[pad, pad])),
    ];
    Ok(b.op("ConvTranspose", &[x, &weight, &bias], &attributes))
}

/// The mean of the stage's residual blocks, one for each kernel size.
fn residual_blocks(
    b: &mut Builder,
    config: &HifiGanConfig,
    x: &Value,
    stage: usize,
    channels: usize,
) -> Result<Value> {
    let kernels = config.resblock_kernel_sizes.len();
    let mut sum: Option<Value> = None;
    for (kernel, &width) in config.resblock_kernel_sizes.iter().enumerate() {
        let block = stage * kernels + kernel;
        let mut y = x.clone();
        for (i, &dilation) in config.resblock_dilation_sizes[kernel].iter().enumerate() {
            let shape = [channels, channels, width];
            let dilated =
                Kernel { dilation, ..Kernel::read(b, &names::resblock_conv(block, true, i), shape)? };
            let plain = Kernel::read(b, &names::resblock_conv(block, false, i), shape)?;
            let mut z = leaky_relu(b, &y, config.leaky_relu_slope);
            z = b.conv1d(&z, &dilated)?;
            z = leaky_relu(b, &z, config.leaky_relu_slope);
            z = b.conv1d(&z, &plain)?;
            y = b.op("Add", &[&z, &y], &[]);
        }
        sum = Some(match sum {
            Some(sum) => b.op("Add", &[&sum, &y], &[]),
            None => y,
        });
    }
    let Some(sum) = sum else { return Ok(x.clone()) };
    let count = b.constant(&[kernels as f32], &[])?;
    Ok(b.op("Div", &[&sum, &count], &[]))
}
