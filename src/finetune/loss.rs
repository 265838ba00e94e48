//! What the network gave for a batch and the batch in, one number to make smaller out.
//!
//! The spectrogram loss of SpeechT5 (`modeling_speecht5.py`, transformers 5.24): the mean absolute error of the mel
//! before and after the postnet, binary cross-entropy of the stop logits, and guided attention (Tachibana et al.
//! 2018). Always f32. Never counts a padded frame.

use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData, activation};

use super::network::{Batch, Outputs};
use crate::voice::config::AcousticConfig;

/// How much more a missed end weighs than a frame that goes on.
const STOP_WEIGHT: f64 = 5.0;

/// The parts of the loss, each a tensor of one value.
pub struct Loss {
    pub before_postnet: Tensor<1>,
    pub after_postnet: Tensor<1>,
    pub stop: Tensor<1>,
    pub guided_attention: Option<Tensor<1>>,
}

impl Loss {
    pub fn new(outputs: Outputs, batch: &Batch, config: &AcousticConfig, device: &Device) -> Self {
        let n_mels = config.num_mel_bins;
        let frames = batch.frames(n_mels);
        let rows = batch.mels.len();
        let tensor = |values: Vec<f32>, shape: [usize; 3]| -> Tensor<3> {
            Tensor::from_data(TensorData::new(values, shape), (device, DType::F32))
        };
        let lengths: Vec<usize> = batch.mels.iter().map(|mel| mel.len() / n_mels).collect();
        let padded = |mel: &Vec<f32>| {
            let padding = frames * n_mels - mel.len();
            mel.iter().copied().chain(std::iter::repeat_n(0.0, padding)).collect::<Vec<_>>()
        };
        let labels = tensor(batch.mels.iter().flat_map(padded).collect(), [rows, frames, n_mels]);
        let inside: Vec<f32> =
            lengths.iter().flat_map(|&len| (0..frames).map(move |at| flag(at < len))).collect();
        let counted = inside.iter().sum::<f32>();
        let mask = tensor(inside.clone(), [rows, frames, 1]);
        let error = |mel: Tensor<3>| {
            let error = (mel.cast(FloatDType::F32) - labels.clone()).abs() * mask.clone();
            error.sum() / f64::from(counted) / n_mels as f64
        };

        // The frame that ends a sentence is its last true one; at the end of a full row it is the last.
        let last = lengths.iter().flat_map(|&len| (0..frames).map(move |at| flag(at + 1 == len)));
        let last = tensor(last.collect(), [rows, frames, 1]).reshape([rows, frames]);
        let mask = mask.clone().reshape([rows, frames]);
        let logits = outputs.stop_logits.cast(FloatDType::F32);
        let goes_on = (last.clone() * -1.0 + 1.0) * activation::softplus(logits.clone(), 1.0);
        let ends = last * activation::softplus(logits.neg(), 1.0) * STOP_WEIGHT;
        let stop = ((goes_on + ends) * mask).sum() / f64::from(counted);

        let guided = config.training.use_guided_attention_loss;
        Self {
            before_postnet: error(outputs.before_postnet),
            after_postnet: error(outputs.after_postnet),
            stop,
            guided_attention: guided
                .then(|| guided_attention(outputs.cross_attentions, batch, &lengths, config, device)),
        }
    }

    pub fn total(&self) -> Tensor<1> {
        let total = self.before_postnet.clone() + self.after_postnet.clone() + self.stop.clone();
        match &self.guided_attention {
            Some(guided) => total + guided.clone(),
            None => total,
        }
    }
}

/// The parts of a loss as numbers, or of the mean of several.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Losses {
    pub before_postnet: f32,
    pub after_postnet: f32,
    pub stop: f32,
    pub guided_attention: f32,
}

impl Losses {
    pub fn total(&self) -> f32 {
        self.before_postnet + self.after_postnet + self.stop + self.guided_attention
    }

    /// The first part that is not finite.
    pub fn not_finite(&self) -> Option<&'static str> {
        let parts = [
            ("the loss before the postnet", self.before_postnet),
            ("the loss after the postnet", self.after_postnet),
            ("the loss of the stops", self.stop),
            ("the loss of the guided attention", self.guided_attention),
            ("the loss", self.total()),
        ];
        parts.into_iter().find(|(_, value)| !value.is_finite()).map(|(name, _)| name)
    }

    pub fn of(loss: &Loss) -> Self {
        let value = |part: &Tensor<1>| part.clone().into_scalar::<f32>();
        Self {
            before_postnet: value(&loss.before_postnet),
            after_postnet: value(&loss.after_postnet),
            stop: value(&loss.stop),
            guided_attention: loss.guided_attention.as_ref().map_or(0.0, value),
        }
    }

    /// Adds `other`, of which there are `count`.
    pub fn add_mean(&mut self, other: Self, count: usize) {
        let share = 1.0 / count as f32;
        self.before_postnet += other.before_postnet * share;
        self.after_postnet += other.after_postnet * share;
        self.stop += other.stop * share;
        self.guided_attention += other.guided_attention * share;
    }
}

/// The attention of the first heads of every layer, weighed by its distance from the diagonal.
fn guided_attention(
    attentions: Vec<Tensor<4>>,
    batch: &Batch,
    frames: &[usize],
    config: &AcousticConfig,
    device: &Device,
) -> Tensor<1> {
    let training = &config.training;
    let heads = training.guided_attention_loss_num_heads.min(config.decoder_attention_heads);
    let steps = batch.frames(config.num_mel_bins) / config.reduction_factor;
    let tokens = batch.tokens();
    let spread = 2.0 * training.guided_attention_loss_sigma.powi(2);
    let mut counted = 0;
    let mut weights = vec![0.0_f32; frames.len() * steps * tokens];
    for ((ids, frames), row) in batch.ids.iter().zip(frames).zip(weights.chunks_mut(steps * tokens)) {
        let (length, tokens_here) = (frames / config.reduction_factor, ids.len());
        counted += length * tokens_here;
        for (step, weights) in row.chunks_mut(tokens).take(length).enumerate() {
            for (token, weight) in weights.iter_mut().take(tokens_here).enumerate() {
                let apart = token as f32 / tokens_here as f32 - step as f32 / length as f32;
                *weight = 1.0 - (-apart * apart / spread).exp();
            }
        }
    }
    let shape = [frames.len(), 1, steps, tokens];
    let weights: Tensor<4> = Tensor::from_data(TensorData::new(weights, shape), (device, DType::F32));
    let layers = attentions.len();
    let sums = attentions
        .into_iter()
        .map(|attention| (attention.narrow(1, 0, heads).cast(FloatDType::F32) * weights.clone()).sum());
    let sum = sums.reduce(|a, b| a + b).unwrap_or_else(|| Tensor::zeros([1], device));
    sum / (counted * layers * heads) as f64 * f64::from(training.guided_attention_loss_scale)
}

fn flag(set: bool) -> f32 {
    if set { 1.0 } else { 0.0 }
}
