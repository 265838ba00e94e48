//! Refined mel frames in, samples out, f32 from end to end.
//!
//! Two kinds of vocoder stand behind one door: HiFi-GAN gives samples from its graph, Vocos gives a spectrum
//! that is inverted here. Never narrows a sample, and never holds a sentence: that is the caller's
//! [`VocoderStream`].

mod istft;

use istft::{InverseStft, Overlap};

use crate::error::Result;
use crate::graph::{hifigan, vocos};
use crate::precision::Plan;
use crate::runtime::{Runtime, Session, Tensor};
use crate::voice::Voice;
use crate::voice::config::VocoderConfig;
use crate::window::Window;

/// The vocoder of one voice.
pub struct Vocoder {
    session: Session,
    /// What turns the graph's output into samples; `None` where the graph gives samples.
    inverse: Option<InverseStft>,
    n_mels: usize,
    context_frames: usize,
    look_ahead_frames: usize,
    hop_length: usize,
}

/// What one sentence still needs.
pub struct VocoderStream {
    window: Window,
    overlap: Option<Overlap>,
    /// Final samples that do not fill a frame yet.
    samples: Vec<f32>,
}

/// How many mel frames on either side a frame's output depends on.
fn context_frames(config: &VocoderConfig) -> usize {
    match config {
        VocoderConfig::HifiGan(config) => hifigan::context_frames(config),
        VocoderConfig::Vocos(config) => vocos::context_frames(config),
    }
}

/// How many frames the samples of a vocoder lag behind the mel, in whole frames.
pub fn look_ahead_frames(config: &VocoderConfig) -> usize {
    let overlap = match config {
        VocoderConfig::HifiGan(_) => 0,
        VocoderConfig::Vocos(config) => istft::overlap_frames(config.n_fft, config.hop_length),
    };
    context_frames(config) + overlap
}

impl Vocoder {
    /// Builds the vocoder graph of `voice` in the dtypes of `plan` and loads it.
    pub fn load(runtime: &Runtime, voice: &Voice, plan: &Plan, threads: usize) -> Result<Self> {
        let stage = plan.vocoder;
        let (model, inverse) = match &voice.vocoder_config {
            VocoderConfig::HifiGan(config) => (hifigan::hifigan(voice, config, stage)?, None),
            VocoderConfig::Vocos(config) => {
                (vocos::vocos(voice, config, stage)?, Some(InverseStft::new(config.n_fft, config.hop_length)))
            }
        };
        Ok(Self {
            session: runtime.session("vocoder", &model, threads)?,
            inverse,
            n_mels: voice.config.num_mel_bins,
            context_frames: context_frames(&voice.vocoder_config),
            look_ahead_frames: look_ahead_frames(&voice.vocoder_config),
            hop_length: voice.vocoder_config.hop_length(),
        })
    }

    /// The state of a new sentence.
    pub fn begin(&self) -> VocoderStream {
        let overlap = self.inverse.as_ref().map(InverseStft::begin);
        VocoderStream { window: Window::new(self.n_mels, self.context_frames), overlap, samples: Vec::new() }
    }

    /// How many frames the samples lag behind the mel, in whole frames.
    pub fn look_ahead_frames(&self) -> usize {
        self.look_ahead_frames
    }

    /// Takes mel frames, row-major [any, n_mels], and gives the samples of every frame that is final: the last
    /// [`Self::look_ahead_frames`] stay behind until the sentence has `ended`. Always whole frames.
    pub fn push(&mut self, stream: &mut VocoderStream, mel: &[f32], ended: bool) -> Result<Vec<f32>> {
        stream.window.push(mel);
        if let Some(view) = stream.window.take(ended, usize::MAX) {
            let frames = Tensor::f32(&[1, view.frames.len() / self.n_mels, self.n_mels], view.frames)?;
            let exact = Exact { skip: view.skip, count: view.count };
            match (&self.inverse, &mut stream.overlap) {
                (Some(inverse), Some(overlap)) => {
                    let names = [vocos::MAGNITUDE, vocos::PHASE];
                    let spectrum = self.session.run(&[(vocos::MEL, &frames)], &names)?;
                    let bins = inverse.bins();
                    let (magnitude, phase) =
                        (exact.of(spectrum[0].as_f32()?, bins), exact.of(spectrum[1].as_f32()?, bins));
                    inverse.push(overlap, magnitude, phase, &mut stream.samples)?;
                }
                _ => {
                    let samples = self.session.run(&[(hifigan::MEL, &frames)], &[hifigan::SAMPLES])?;
                    stream.samples.extend_from_slice(exact.of(samples[0].as_f32()?, self.hop_length));
                }
            }
        }
        if ended && let (Some(inverse), Some(overlap)) = (&self.inverse, stream.overlap.take()) {
            inverse.finish(overlap, &mut stream.samples);
        }
        let whole = stream.samples.len() - stream.samples.len() % self.hop_length;
        Ok(stream.samples.drain(..whole).collect())
    }
}

/// The frames of a window that are exact.
struct Exact {
    skip: usize,
    count: usize,
}

impl Exact {
    /// Their part of row-major `values` with `width` values a frame.
    fn of<'a>(&self, values: &'a [f32], width: usize) -> &'a [f32] {
        &values[self.skip * width..(self.skip + self.count) * width]
    }
}
