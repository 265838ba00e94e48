//! A trainer and one clip in, what the network makes of it as pictures out.
//!
//! Never drops anything out, and never moves a weight.

use burn::tensor::FloatDType;

use super::heat_map::{Picture, draw};
use super::network::{Batch, Dropout};
use super::trainer::Trainer;
use crate::error::{Error, Result};

/// What can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Tokens upwards, decoder steps to the right: the mean of the guided heads of all layers.
    pub attention: Picture,
    /// The mel of the recording above, that of the network, taught by the true frames, below.
    pub mel: Picture,
}

impl Trainer {
    /// Looks at the first clip of `batch`.
    ///
    /// # Errors
    /// [`Error::Internal`] when there is no clip or a tensor cannot be read.
    pub fn observe(&self, batch: &Batch) -> Result<Observation> {
        let (config, empty) = (self.config(), || Error::Internal("an empty batch to look at".to_owned()));
        let one = Batch {
            ids: batch.ids.first().cloned().into_iter().collect(),
            mels: batch.mels.first().cloned().into_iter().collect(),
            speakers: batch.speakers.first().cloned().into_iter().collect(),
        };
        let (ids, target) = one.ids.first().zip(one.mels.first()).ok_or_else(empty)?;
        let outputs = self.outputs(&one, &mut Dropout::none());
        let heads = config.training.guided_attention_loss_num_heads.clamp(1, config.decoder_attention_heads);
        let (layers, tokens) = (outputs.cross_attentions.len(), ids.len());
        let steps = target.len() / config.num_mel_bins / config.reduction_factor;
        let mut attention = vec![0.0; tokens * steps];
        for layer in outputs.cross_attentions {
            let mean = layer.narrow(1, 0, heads).cast(FloatDType::F32).mean_dim(1).into_data();
            for (at, share) in floats(mean)?.into_iter().enumerate() {
                let (step, token) = (at / tokens, at % tokens);
                if let Some(sum) = attention.get_mut(token * steps + step) {
                    *sum += share / layers as f32;
                }
            }
        }
        let mel = floats(outputs.after_postnet.cast(FloatDType::F32).into_data())?;
        let n_mels = config.num_mel_bins;
        Ok(Observation {
            attention: draw(&[&attention], steps)?,
            mel: draw(&[&upright(target, n_mels), &upright(&mel, n_mels)], target.len() / n_mels)?,
        })
    }
}

fn floats(data: burn::tensor::TensorData) -> Result<Vec<f32>> {
    data.try_into_vec().map_err(|e| Error::Internal(format!("a tensor could not be read: {e:?}")))
}

/// [frames, n_mels] -> [n_mels, frames]
fn upright(mel: &[f32], n_mels: usize) -> Vec<f32> {
    (0..n_mels).flat_map(|bin| mel.iter().skip(bin).step_by(n_mels).copied()).collect()
}
