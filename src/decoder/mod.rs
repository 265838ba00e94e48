//! [`Encoded`] sentences in, mel frames and stop logits out, one step of a whole batch at a time.
//!
//! A stream is a row. Rows are allocated once; the first of them step together, and what a row yields does not
//! depend on the others. Never decides when to stop, whom to admit or which rows step: the engine does.

mod cross_cache;
mod dropout;
mod kv_cache;
mod stop;

use std::collections::HashMap;

pub use dropout::PrenetDropout;
pub use stop::{End, StopRule};

use cross_cache::CrossCache;
use kv_cache::KvCache;

use crate::encoder::Encoded;
use crate::error::{Error, Result};
use crate::graph::decoder as graph;
use crate::precision::{Dtype, Plan};
use crate::runtime::{Binding, Runtime, Session, Tensor};
use crate::voice::config::AcousticConfig;
use crate::voice::{FiniteCheck, Voice};

/// The mel decoder of one voice.
pub struct Decoder {
    session: Session,
    /// By the number of rows and the cross-attention capacity that they were made for.
    bindings: HashMap<(usize, usize), Binding>,
    rows: Rows,
    cache: KvCache,
    cross: CrossCache,
    /// Steps made in each row's present sentence.
    steps: Vec<usize>,
    slots: usize,
    positions: usize,
    finite: FiniteCheck,
}

/// What goes into a step and what comes out, a row a stream.
struct Rows {
    n_mels: usize,
    reduction_factor: usize,
    hidden: usize,
    units: usize,
    /// f32 [slots, n_mels]
    frame: Tensor,
    /// f32 [slots, hidden]
    speaker_bias: Tensor,
    /// i64 [slots]
    position: Tensor,
    /// i32 [slots]
    past_length: Tensor,
    /// i32 [1]
    total_length: Tensor,
    /// By prenet layer, f32 [slots, units]
    keep_masks: Vec<Tensor>,
    /// f32 [slots, reduction_factor · n_mels]
    frames: Tensor,
    /// f32 [slots, reduction_factor]
    stop_logits: Tensor,
}

/// What a step gave one row.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// [reduction_factor · n_mels]: the next frames, row by row
    pub frames: &'a [f32],
    /// [reduction_factor]
    pub stop_logits: &'a [f32],
}

/// Bytes of cache that one stream of a voice takes.
pub fn cache_bytes_per_stream(voice: &Voice, dtype: Dtype) -> usize {
    KvCache::bytes_per_stream(&voice.config, dtype, longest_sentence(voice))
        + CrossCache::bytes_per_stream(&voice.config, dtype, voice.segment_symbols)
}

/// Steps after which the cap has ended every sentence of `voice`: positions beyond it are never used.
fn longest_sentence(voice: &Voice) -> usize {
    let config = &voice.config;
    let (r, positions) = (config.reduction_factor, config.max_speech_positions);
    StopRule::cap(voice.segment_symbols, voice.max_frames_per_symbol, r, positions)
}

impl Decoder {
    /// Builds the step graph of `voice` as `plan` says, loads it and allocates `slots` rows.
    pub fn load(runtime: &Runtime, voice: &Voice, plan: &Plan, threads: usize, slots: usize) -> Result<Self> {
        let (config, positions) = (&voice.config, longest_sentence(voice));
        let model = graph::decoder_step(voice, plan.decoder, positions)?;
        let session = runtime.session("decoder step", &model, threads)?;
        let dtype = plan.decoder.executed.kv_cache;
        Ok(Self {
            session,
            bindings: HashMap::new(),
            rows: Rows::allocate(config, slots)?,
            cache: KvCache::allocate(config, dtype, slots, positions)?,
            cross: CrossCache::allocate(config, dtype, slots, voice.segment_symbols)?,
            steps: Vec::with_capacity(slots),
            slots,
            positions,
            finite: FiniteCheck::new(voice, plan.precision),
        })
    }

    /// Rows in use.
    pub fn occupied(&self) -> usize {
        self.steps.len()
    }

    /// Begins `sentence` in the first free row. -> the row
    ///
    /// # Errors
    /// [`Error::Internal`] when every row is in use.
    pub fn join(&mut self, sentence: Encoded) -> Result<usize> {
        let row = self.occupied();
        if row == self.slots {
            return Err(Error::Internal(format!("all {} rows of the decoder are in use", self.slots)));
        }
        self.rows.begin(row, &sentence)?;
        self.cross.push(sentence)?;
        self.steps.push(0);
        Ok(row)
    }

    /// Begins the next sentence of the stream in `row`.
    pub fn begin(&mut self, row: usize, sentence: Encoded) -> Result<()> {
        self.rows.begin(row, &sentence)?;
        self.cross.replace(row, sentence)?;
        self.steps[row] = 0;
        Ok(())
    }

    /// Frees the last row.
    pub fn leave_last(&mut self) {
        self.steps.pop();
        self.cross.pop();
    }

    /// Exchanges two rows.
    pub fn swap(&mut self, a: usize, b: usize) -> Result<()> {
        if a == b {
            return Ok(());
        }
        self.cache.swap(a, b, self.steps[a].max(self.steps[b]))?;
        self.cross.swap(a, b)?;
        self.rows.swap(a, b)?;
        self.steps.swap(a, b);
        Ok(())
    }

    /// Makes one step of the first `active` rows. `fill_mask(row, step, layer, mask)` writes the dropout masks.
    ///
    /// # Errors
    /// [`Error::Internal`] when a row lies past the position table or the runtime fails.
    pub fn step(
        &mut self,
        active: usize,
        mut fill_mask: impl FnMut(usize, usize, usize, &mut [f32]),
    ) -> Result<()> {
        let steps =
            self.steps.get(..active).ok_or_else(|| Error::Internal(format!("no {active} rows to step")))?;
        let Some(&longest) = steps.iter().max() else { return Ok(()) };
        if longest >= self.positions {
            return Err(Error::Internal(format!(
                "step {longest} lies past the {} positions",
                self.positions
            )));
        }
        self.rows.prepare(steps, longest, &mut fill_mask)?;
        let key = (active, self.cross.capacity());
        if !self.bindings.contains_key(&key) {
            // Bindings of another capacity view memory that has a new meaning now.
            self.bindings.retain(|&(_, capacity), _| capacity == key.1);
            let binding = self.bind(active)?;
            self.bindings.insert(key, binding);
        }
        self.session.run_bound(&self.bindings[&key])?;
        for row in 0..active {
            self.rows.feed_back(row)?;
            self.steps[row] += 1;
        }
        Ok(())
    }

    /// What the last step gave `row`.
    ///
    /// # Errors
    /// [`Error::InvalidVoice`] when a frame or a stop logit is not finite.
    pub fn output(&self, row: usize) -> Result<Step<'_>> {
        let step = self.rows.output(row)?;
        self.finite.check("the decoder's mel frames", step.frames)?;
        self.finite.check("the decoder's stop logits", step.stop_logits)?;
        Ok(step)
    }

    fn bind(&self, rows: usize) -> Result<Binding> {
        let mut binding = self.session.binding()?;
        // SAFETY: everything bound lives in `self` as the session that runs the binding does, is allocated once,
        // and is accessed between runs only; bindings of an old capacity are dropped before they could run.
        unsafe {
            self.rows.bind(&mut binding, rows)?;
            self.cache.bind(&mut binding, rows)?;
            self.cross.bind(&mut binding, rows)?;
        }
        Ok(binding)
    }
}

impl Rows {
    fn allocate(config: &AcousticConfig, slots: usize) -> Result<Self> {
        let (n_mels, r, hidden) = (config.num_mel_bins, config.reduction_factor, config.hidden_size);
        let units = config.speech_decoder_prenet_units;
        let zeros = |width: usize| Tensor::f32(&[slots, width], &vec![0.0; slots * width]);
        let keep_masks =
            (0..config.speech_decoder_prenet_layers).map(|_| zeros(units)).collect::<Result<_>>()?;
        Ok(Self {
            n_mels,
            reduction_factor: r,
            hidden,
            units,
            frame: zeros(n_mels)?,
            speaker_bias: zeros(hidden)?,
            position: Tensor::i64(&[slots], &vec![0; slots])?,
            past_length: Tensor::i32(&[slots], &vec![0; slots])?,
            total_length: Tensor::i32(&[1], &[0])?,
            keep_masks,
            frames: zeros(r * n_mels)?,
            stop_logits: zeros(r)?,
        })
    }

    fn begin(&mut self, row: usize, sentence: &Encoded) -> Result<()> {
        let speaker_bias = sentence.speaker_bias.as_f32()?;
        self.speaker_bias.f32_mut()?[row * self.hidden..][..self.hidden].copy_from_slice(speaker_bias);
        self.frame.f32_mut()?[row * self.n_mels..][..self.n_mels].fill(0.0);
        Ok(())
    }

    fn swap(&mut self, a: usize, b: usize) -> Result<()> {
        swap_rows(self.frame.f32_mut()?, self.n_mels, a, b);
        swap_rows(self.speaker_bias.f32_mut()?, self.hidden, a, b);
        swap_rows(self.frames.f32_mut()?, self.reduction_factor * self.n_mels, a, b);
        swap_rows(self.stop_logits.f32_mut()?, self.reduction_factor, a, b);
        Ok(())
    }

    fn prepare(
        &mut self,
        steps: &[usize],
        longest: usize,
        fill_mask: &mut impl FnMut(usize, usize, usize, &mut [f32]),
    ) -> Result<()> {
        for (layer, masks) in self.keep_masks.iter_mut().enumerate() {
            let rows = masks.f32_mut()?.chunks_exact_mut(self.units);
            for ((row, mask), &step) in rows.enumerate().zip(steps) {
                fill_mask(row, step, layer, mask);
            }
        }
        self.position.i64_mut()?.iter_mut().zip(steps).for_each(|(position, &step)| *position = step as i64);
        self.past_length.i32_mut()?.iter_mut().zip(steps).for_each(|(length, &step)| *length = step as i32);
        self.total_length.i32_mut()?[0] = longest as i32 + 1;
        Ok(())
    }

    /// Makes the newest frame of `row` the next step's input.
    fn feed_back(&mut self, row: usize) -> Result<()> {
        let width = self.reduction_factor * self.n_mels;
        let newest = &self.frames.as_f32()?[(row + 1) * width - self.n_mels..(row + 1) * width];
        self.frame.f32_mut()?[row * self.n_mels..][..self.n_mels].copy_from_slice(newest);
        Ok(())
    }

    fn output(&self, row: usize) -> Result<Step<'_>> {
        let (width, r) = (self.reduction_factor * self.n_mels, self.reduction_factor);
        Ok(Step {
            frames: &self.frames.as_f32()?[row * width..][..width],
            stop_logits: &self.stop_logits.as_f32()?[row * r..][..r],
        })
    }

    /// Binds the first `rows` rows.
    ///
    /// # Safety
    /// The tensors must outlive every run of `binding`, and nobody may access them during one.
    unsafe fn bind(&self, binding: &mut Binding, rows: usize) -> Result<()> {
        let (mels, r) = (self.n_mels, self.reduction_factor);
        // SAFETY: passed on to the caller.
        unsafe {
            binding.input_rows(graph::FRAME, &self.frame, &[rows, mels])?;
            binding.input_rows(graph::SPEAKER_BIAS, &self.speaker_bias, &[rows, self.hidden])?;
            binding.input_rows(graph::POSITION, &self.position, &[rows])?;
            binding.input_rows(graph::PAST_LENGTH, &self.past_length, &[rows])?;
            binding.input_rows(graph::TOTAL_LENGTH, &self.total_length, &[1])?;
            for (layer, masks) in self.keep_masks.iter().enumerate() {
                binding.input_rows(&graph::keep_mask(layer), masks, &[rows, self.units])?;
            }
            binding.output_rows(graph::FRAMES, &self.frames, &[rows, r * mels])?;
            binding.output_rows(graph::STOP_LOGITS, &self.stop_logits, &[rows, r])
        }
    }
}

/// Exchanges two rows of row-major [rows, width] values.
fn swap_rows(values: &mut [f32], width: usize, a: usize, b: usize) {
    let (low, high) = (a.min(b), a.max(b));
    let (before, from_high) = values.split_at_mut(high * width);
    before[low * width..][..width].swap_with_slice(&mut from_high[..width]);
}
