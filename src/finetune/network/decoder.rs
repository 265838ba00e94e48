//! Encoded tokens and the true frames in, the mel beside each frame out.
//!
//! Never feeds back its own frames.

use burn::tensor::{FloatDType, Tensor, activation};

use super::arithmetic::to;
use super::{Batch, Dropout, MASKED, Network, Outputs, Parameters, Speaker, learned_speaker};
use crate::voice::names::{
    CROSS_ATTENTION, CROSS_ATTENTION_NORM, DECODER_ALPHA, FEAT_OUT, POSTNET_CONV, POSTNET_NORM, PRENET_FINAL,
    PRENET_SPEAKER, PROB_OUT, SELF_ATTENTION, SELF_ATTENTION_NORM, decoder_layer, postnet_layer,
    prenet_layer,
};

/// Of torch's BatchNorm1d, which SpeechT5 leaves as it is.
const BATCH_NORM_EPS: f64 = 1e-5;

impl Network<'_> {
    pub(super) fn decode(
        &self,
        weights: &Parameters,
        batch: &Batch,
        hidden: Tensor<3>,
        mask: Tensor<4>,
        dropout: &mut Dropout,
    ) -> Outputs {
        let mut x = self.prenet(weights, batch, dropout);
        let masks = [self.causal_mask(x.dims()[1]), mask];
        let mut cross_attentions = Vec::new();
        for layer in 0..self.config.decoder_layers {
            let (next, attention) =
                self.decoder_layer(weights, layer, [x, hidden.clone()], masks.clone(), dropout);
            x = next;
            cross_attentions.push(attention);
        }
        self.heads(weights, x, cross_attentions, dropout)
    }

    /// Very negative for what comes later. -> [1, 1, steps, steps]
    pub(super) fn causal_mask(&self, steps: usize) -> Tensor<4> {
        let mask = (0..steps * steps).map(|at| if at % steps > at / steps { MASKED } else { 0.0 }).collect();
        self.tensor(mask, [1, 1, steps, steps])
    }

    /// One layer over the steps and what they attend to; the masks of either attention.
    /// -> [batch, steps, hidden], and the cross-attention
    pub(super) fn decoder_layer(
        &self,
        weights: &Parameters,
        layer: usize,
        [x, hidden]: [Tensor<3>; 2],
        [causal, mask]: [Tensor<4>; 2],
        dropout: &mut Dropout,
    ) -> (Tensor<3>, Tensor<4>) {
        let (math, config) = (&self.arithmetic, self.config);
        let (rates, heads) = (&config.training, config.decoder_attention_heads);
        let layer = decoder_layer(layer);
        let module = format!("{layer}.{SELF_ATTENTION}");
        let (attended, _) =
            self.attention(weights, &module, heads, [x.clone(), x.clone()], |_| causal, dropout);
        let attended = dropout.apply(attended, rates.hidden_dropout);
        let x = self.norm(weights, &format!("{layer}.{SELF_ATTENTION_NORM}"), math.add(x, attended));

        let module = format!("{layer}.{CROSS_ATTENTION}");
        let (attended, attention) =
            self.attention(weights, &module, heads, [x.clone(), hidden], |_| mask, dropout);
        let attended = dropout.apply(attended, rates.hidden_dropout);
        let x = self.norm(weights, &format!("{layer}.{CROSS_ATTENTION_NORM}"), math.add(x, attended));
        (self.feed_forward(weights, &layer, x, dropout), attention)
    }

    /// What the last layer gave, as frames and stops.
    pub(super) fn heads(
        &self,
        weights: &Parameters,
        x: Tensor<3>,
        cross_attentions: Vec<Tensor<4>>,
        dropout: &mut Dropout,
    ) -> Outputs {
        let (math, config) = (&self.arithmetic, self.config);
        let [rows, steps, _] = x.dims();
        let frames = steps * config.reduction_factor;
        let before = math.linear(weights, FEAT_OUT, x.clone()).reshape([rows, frames, config.num_mel_bins]);
        let stop_logits = math.linear(weights, PROB_OUT, x).reshape([rows, frames]);
        let after = before.clone() + self.postnet(weights, before.clone(), dropout);
        Outputs { before_postnet: before, after_postnet: after, stop_logits, cross_attentions }
    }

    /// The last true frame of every step, moved one step to the right, and who speaks. -> [batch, steps, hidden]
    pub(super) fn prenet(&self, weights: &Parameters, batch: &Batch, dropout: &mut Dropout) -> Tensor<3> {
        let (math, config) = (&self.arithmetic, self.config);
        let n_mels = config.num_mel_bins;
        let (rows, stride) = (batch.mels.len(), n_mels * config.reduction_factor);
        let steps = batch.frames(n_mels) / config.reduction_factor;
        let mut frames = vec![0.0; rows * steps * n_mels];
        for (mel, row) in batch.mels.iter().zip(frames.chunks_mut(steps * n_mels)) {
            let next = row.chunks_mut(n_mels).skip(1);
            for (step, input) in mel.chunks_exact(stride).zip(next) {
                input.copy_from_slice(&step[stride - n_mels..]);
            }
        }
        let mut x = math.stream(self.tensor(frames, [rows, steps, n_mels]));
        for index in 0..config.speech_decoder_prenet_layers {
            x = activation::relu(math.linear(weights, &prenet_layer(index), x));
            x = dropout.apply_alike(x, config.speech_decoder_prenet_dropout);
        }
        let x = math.stream(math.linear(weights, PRENET_FINAL, x));
        let alpha: Tensor<1> = weights.get(DECODER_ALPHA);
        let positions = math.stream(self.positions(steps)) * math.stream(alpha).unsqueeze();
        let x = dropout.apply(x + positions, config.training.positional_dropout);
        let speakers = self.speakers(weights, batch).unsqueeze_dim::<3>(1).repeat_dim(1, steps);
        let x = Tensor::cat(vec![x, math.stream(speakers)], 2);
        math.stream(activation::relu(math.linear(weights, PRENET_SPEAKER, x)))
    }

    /// Every speaker, of length 1. -> [batch, speaker_dim]
    fn speakers(&self, weights: &Parameters, batch: &Batch) -> Tensor<2> {
        let row = |speaker: &Speaker| match speaker {
            Speaker::Given(values) => {
                let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt().max(1e-12);
                let unit = values.iter().map(|v| v / norm).collect();
                self.tensor(unit, [1, self.config.speaker_embedding_dim])
            }
            Speaker::Learned(name) => {
                let values: Tensor<1> = weights.get(&learned_speaker(name));
                let norm = (values.clone() * values.clone()).sum().sqrt().clamp_min(1e-12);
                (values / norm).unsqueeze()
            }
        };
        Tensor::cat(batch.speakers.iter().map(row).collect(), 0)
    }

    /// What the postnet adds to `mel`.
    fn postnet(&self, weights: &Parameters, mel: Tensor<3>, dropout: &mut Dropout) -> Tensor<3> {
        let mut x = mel.swap_dims(1, 2);
        let layers = self.config.speech_decoder_postnet_layers;
        for index in 0..layers {
            let layer = postnet_layer(index);
            x = self.arithmetic.conv1d(weights.get(&format!("{layer}.{POSTNET_CONV}")), x);
            x = self.batch_norm(weights, &layer, x);
            if index + 1 < layers {
                x = x.tanh();
            }
            x = dropout.apply(x, self.config.training.speech_decoder_postnet_dropout);
        }
        x.swap_dims(1, 2)
    }

    /// Normalises channels by the voice's own statistics, in f32. [batch, channels, frames]
    fn batch_norm(&self, weights: &Parameters, layer: &str, x: Tensor<3>) -> Tensor<3> {
        let dtype = FloatDType::from(x.dtype());
        let [gain, shift, mean, variance] = POSTNET_NORM.map(|name| {
            let values = to(weights.get::<1>(&format!("{layer}.{name}")), FloatDType::F32);
            let channels = values.dims()[0];
            values.reshape([1, channels, 1])
        });
        let scaled = (to(x, FloatDType::F32) - mean) / (variance + BATCH_NORM_EPS).sqrt();
        to(scaled * gain + shift, dtype)
    }
}
