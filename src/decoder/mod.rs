//! An [`Encoded`] sentence in, mel frames and stop logits out, one step at a time.
//!
//! A [`Decoder`] holds one stream: its session, its tensors and its cache are allocated once and reused by
//! every sentence. Never decides when to stop, and never looks at more than the newest frame.

mod dropout;
mod kv_cache;
mod stop;

pub use dropout::PrenetDropout;
pub use kv_cache::KvCache;
pub use stop::{End, StopRule};

use crate::encoder::Encoded;
use crate::error::{Error, Result};
use crate::graph::{decoder as graph, encoder as encoder_graph};
use crate::precision::Plan;
use crate::runtime::{Binding, Runtime, Session, Tensor};
use crate::voice::Voice;

/// The mel decoder of one voice, stepping one stream.
pub struct Decoder {
    session: Session,
    binding: Binding,
    inputs: Inputs,
    /// f32 [1, reduction_factor · n_mels]
    frames: Tensor,
    /// f32 [1, reduction_factor]
    stop_logits: Tensor,
    n_mels: usize,
    positions: usize,
    /// Steps made in the present sentence; `None` before the first.
    steps: Option<usize>,
    /// Bound memory that must live as long as the binding.
    _cache: KvCache,
    sentence: Option<Encoded>,
}

/// What changes from step to step.
struct Inputs {
    /// f32 [1, n_mels]
    frame: Tensor,
    /// i64 [1]
    position: Tensor,
    /// i32 [1]
    past_length: Tensor,
    /// i32 [1]
    total_length: Tensor,
    /// By prenet layer, f32 [1, units]
    keep_masks: Vec<Tensor>,
}

/// What one step gave.
pub struct Step<'a> {
    /// [reduction_factor · n_mels]: the next frames, row by row
    pub frames: &'a [f32],
    /// [reduction_factor]
    pub stop_logits: &'a [f32],
}

impl Decoder {
    /// Builds the step graph of `voice` in the dtypes of `plan`, loads it and allocates its cache.
    pub fn load(runtime: &Runtime, voice: &Voice, plan: &Plan, threads: usize) -> Result<Self> {
        let config = &voice.config;
        let session = runtime.session("decoder step", &graph::decoder_step(voice, plan.decoder)?, threads)?;
        let mut binding = session.binding()?;

        let (n_mels, r) = (config.num_mel_bins, config.reduction_factor);
        let masks = 0..config.speech_decoder_prenet_layers;
        let units = config.speech_decoder_prenet_units;
        let inputs = Inputs {
            frame: Tensor::f32(&[1, n_mels], &vec![0.0; n_mels])?,
            position: Tensor::i64(&[1], &[0])?,
            past_length: Tensor::i32(&[1], &[0])?,
            total_length: Tensor::i32(&[1], &[0])?,
            keep_masks: masks.map(|_| Tensor::f32(&[1, units], &vec![0.0; units])).collect::<Result<_>>()?,
        };
        binding.input(graph::FRAME, &inputs.frame)?;
        binding.input(graph::POSITION, &inputs.position)?;
        binding.input(graph::PAST_LENGTH, &inputs.past_length)?;
        binding.input(graph::TOTAL_LENGTH, &inputs.total_length)?;
        for (layer, mask) in inputs.keep_masks.iter().enumerate() {
            binding.input(&graph::keep_mask(layer), mask)?;
        }
        let mut frames = Tensor::f32(&[1, r * n_mels], &vec![0.0; r * n_mels])?;
        binding.output(graph::FRAMES, &mut frames)?;
        let mut stop_logits = Tensor::f32(&[1, r], &vec![0.0; r])?;
        binding.output(graph::STOP_LOGITS, &mut stop_logits)?;

        let positions = config.max_speech_positions;
        let mut cache = KvCache::allocate(config, plan.decoder.executed.kv_cache, 1, positions)?;
        cache.bind(&mut binding)?;
        Ok(Self {
            session,
            binding,
            inputs,
            frames,
            stop_logits,
            n_mels,
            positions,
            steps: None,
            _cache: cache,
            sentence: None,
        })
    }

    /// Begins a sentence: the position returns to zero and the cache counts as empty.
    pub fn begin(&mut self, sentence: Encoded) -> Result<()> {
        self.binding.input(graph::SPEAKER_BIAS, &sentence.speaker_bias)?;
        for (layer, (key, value)) in sentence.cross_keys.iter().zip(&sentence.cross_values).enumerate() {
            self.binding.input(&encoder_graph::cross_key(layer), key)?;
            self.binding.input(&encoder_graph::cross_value(layer), value)?;
        }
        let mask = Tensor::i32(&[1, sentence.tokens], &vec![1; sentence.tokens])?;
        self.binding.input(graph::CROSS_MASK, &mask)?;
        self.inputs.frame.f32_mut()?.fill(0.0);
        self.sentence = Some(sentence);
        self.steps = Some(0);
        Ok(())
    }

    /// Makes one step. `fill_mask(layer, mask)` writes each prenet layer's dropout mask.
    ///
    /// # Errors
    /// [`Error::Internal`] before [`Self::begin`], past the position table, or when a frame is not finite.
    pub fn step(&mut self, mut fill_mask: impl FnMut(usize, &mut [f32])) -> Result<Step<'_>> {
        let steps =
            self.steps.ok_or_else(|| Error::Internal("a decoder step without a sentence".to_owned()))?;
        if steps >= self.positions {
            return Err(Error::Internal(format!("step {steps} lies past the {} positions", self.positions)));
        }
        for (layer, mask) in self.inputs.keep_masks.iter_mut().enumerate() {
            fill_mask(layer, mask.f32_mut()?);
        }
        self.inputs.position.i64_mut()?[0] = steps as i64;
        self.inputs.past_length.i32_mut()?[0] = steps as i32;
        self.inputs.total_length.i32_mut()?[0] = steps as i32 + 1;
        self.session.run_bound(&self.binding)?;

        let frames = self.frames.as_f32()?;
        if !frames.iter().all(|value| value.is_finite()) {
            return Err(Error::Internal(format!("step {steps} gave a mel frame that is not finite")));
        }
        let newest = frames.len() - self.n_mels;
        self.inputs.frame.f32_mut()?.copy_from_slice(&frames[newest..]);
        self.steps = Some(steps + 1);
        Ok(Step { frames, stop_logits: self.stop_logits.as_f32()? })
    }
}
