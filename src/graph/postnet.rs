//! The postnet as a graph: raw mel frames of the decoder in, refined mel frames out.
//!
//! Each "same" convolution pads with zeros, so a frame is exact only where the window reaches
//! [`context_frames`] beyond it or to the sentence's own edge.

use super::layers::Kernel;
use super::{Builder, Dim};
use crate::error::Result;
use crate::precision::{Dtype, StagePlan};
use crate::voice::config::AcousticConfig;
use crate::voice::{Voice, names};

/// f32 [1, frames, n_mels]
pub const RAW_MEL: &str = "raw_mel";
/// f32 [1, frames, n_mels]
pub const MEL: &str = "mel";

/// How many frames on either side a refined frame depends on.
pub fn context_frames(config: &AcousticConfig) -> usize {
    config.speech_decoder_postnet_layers * (config.speech_decoder_postnet_kernel - 1) / 2
}

/// Builds the postnet of `voice` as `plan` says, batch norms folded into its convolutions.
pub fn postnet(voice: &Voice, plan: StagePlan) -> Result<Vec<u8>> {
    let config = &voice.config;
    let (mels, units) = (config.num_mel_bins, config.speech_decoder_postnet_units);
    let (layers, width) = (config.speech_decoder_postnet_layers, config.speech_decoder_postnet_kernel);
    let mut builder = Builder::new("postnet", &voice.acoustic, plan);
    let b = &mut builder;
    let dims = [Dim::Fixed(1), Dim::Free("frames"), Dim::Fixed(mels)];
    let raw = b.input(RAW_MEL, Dtype::F32, &dims)?;
    let mut x = b.narrowed(&raw)?;
    for layer in 0..layers {
        let inputs = if layer == 0 { mels } else { units };
        let outputs = if layer + 1 == layers { mels } else { units };
        let prefix = names::postnet_layer(layer);
        let kernel = Kernel::with_batch_norm(b, &prefix, [outputs, inputs, width])?;
        x = b.conv1d_of_rows(&x, &kernel)?;
        if layer + 1 < layers {
            x = b.op("Tanh", &[&x], &[]);
        }
    }
    let x = b.widened(&x)?;
    let mel = b.op("Add", &[&raw, &x], &[]);
    b.output(MEL, &mel, Dtype::F32, &dims)?;
    Ok(builder.finish())
}
