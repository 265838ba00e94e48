//! One sentence's symbols in, raw mel frames out, step by step: the synthesis loop.
//!
//! Never runs twice: whatever wants a whole utterance collects what this hands out.

use std::ops::ControlFlow;

use crate::decoder::{Decoder, End, PrenetDropout, StopRule};
use crate::encoder::Encoder;
use crate::error::Result;
use crate::precision::Plan;
use crate::runtime::Runtime;
use crate::voice::Voice;

/// The acoustic model of one voice: encoder, decoder and the rule that ends a sentence.
pub struct Acoustic {
    encoder: Encoder,
    decoder: Decoder,
    dropout: f32,
    reduction_factor: usize,
    positions: usize,
    stop_threshold: f32,
    max_frames_per_symbol: f32,
}

/// One sentence as the acoustic model takes it.
#[derive(Debug, Clone, Copy)]
pub struct Sentence<'a> {
    pub ids: &'a [i64],
    /// [speaker_embedding_dim]
    pub speaker: &'a [f32],
    pub seed: u64,
    /// Its number within the request, so that equal sentences are not spoken with equal masks.
    pub number: u64,
}

/// How a sentence came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub steps: usize,
    pub frames: usize,
    pub end: End,
}

impl Acoustic {
    /// Loads encoder and decoder; the encoder computes with `encoder_threads`, a step with `decoder_threads`.
    pub fn load(
        runtime: &Runtime,
        voice: &Voice,
        plan: &Plan,
        encoder_threads: usize,
        decoder_threads: usize,
    ) -> Result<Self> {
        Ok(Self {
            encoder: Encoder::load(runtime, voice, plan, encoder_threads)?,
            decoder: Decoder::load(runtime, voice, plan, decoder_threads)?,
            dropout: voice.config.speech_decoder_prenet_dropout,
            reduction_factor: voice.config.reduction_factor,
            positions: voice.config.max_speech_positions,
            stop_threshold: voice.stop_threshold,
            max_frames_per_symbol: voice.max_frames_per_symbol,
        })
    }

    /// Speaks `sentence` and hands the frames of every step, row-major [reduction_factor, n_mels], to
    /// `on_frames`. `None` when `on_frames` broke off.
    pub fn speak(
        &mut self,
        sentence: Sentence,
        mut on_frames: impl FnMut(&[f32]) -> ControlFlow<()>,
    ) -> Result<Option<Ending>> {
        let encoded = self.encoder.encode(sentence.ids, sentence.speaker)?;
        let cap =
            StopRule::cap(encoded.tokens, self.max_frames_per_symbol, self.reduction_factor, self.positions);
        let rule = StopRule::new(self.stop_threshold, cap);
        let dropout = PrenetDropout::new(self.dropout, sentence.seed, sentence.number);
        self.decoder.begin(encoded)?;
        let mut steps = 0;
        loop {
            let step = self.decoder.step(|layer, mask| dropout.fill(steps as u64, layer as u64, mask))?;
            steps += 1;
            let end = rule.after(steps, step.stop_logits);
            if on_frames(step.frames).is_break() {
                return Ok(None);
            }
            if let Some(end) = end {
                return Ok(Some(Ending { steps, frames: steps * self.reduction_factor, end }));
            }
        }
    }
}
