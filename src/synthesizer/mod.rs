//! A [`SynthesisRequest`] in, a stream of [`AudioChunk`]s out.
//!
//! Two threads own the sessions: one encodes and decodes, the other refines and vocodes what the first has
//! made, through a bounded channel. Dropping the stream cancels the request within one decoder step; a reader
//! that stalls pauses it. Never shortens, drops or clamps anything without saying so in the stream.

mod acoustic;
mod chunker;
mod threads;

pub use acoustic::{Acoustic, Ending, Sentence};
pub use chunker::{ChunkSizes, Chunker, Tail};
pub use threads::AudioStream;

use std::thread;

use crate::error::{Error, Result};
use crate::postnet::Postnet;
use crate::precision::Plan;
use crate::runtime::Runtime;
use crate::text::{Frontend, Pause, Segment};
use crate::vocoder::Vocoder;
use crate::voice::Voice;

/// The seed of a request that names none.
pub const DEFAULT_SEED: u64 = 42;

/// What to speak.
#[derive(Debug, Clone)]
pub enum Script {
    /// Text as a person would write it.
    Text(String),
    /// Phonemes in the voice's own symbols.
    Phonemes(String),
}

/// What to speak, and how.
#[derive(Debug, Clone)]
pub struct SynthesisRequest {
    pub script: Script,
    /// [speaker_embedding_dim], before its L2 normalisation
    pub speaker: Vec<f32>,
    /// Chooses the prenet's dropout masks: the same seed gives the same audio.
    pub seed: u64,
    pub chunk_sizes: ChunkSizes,
}

/// A run of samples, in playing order.
#[derive(Debug, Clone)]
pub struct AudioChunk {
    /// f32 in −1..1 at the voice's sample rate, one channel, a whole number of mel frames or a silence
    pub samples: Vec<f32>,
    /// The sentence that this chunk completes, if it does.
    pub completes: Option<SpokenSentence>,
}

/// What became of one sentence.
#[derive(Debug, Clone)]
pub struct SpokenSentence {
    /// The text that was spoken, its symbols, and what the voice could not pronounce.
    pub segment: Segment,
    pub ending: Ending,
}

/// How a voice is loaded.
#[derive(Debug, Clone)]
pub struct SynthesizerOptions {
    /// Threads in all, at least 1.
    pub threads: usize,
}

/// One voice, ready to speak one request at a time.
pub struct Synthesizer {
    frontend: Frontend,
    sample_rate_hz: u32,
    threads: threads::Threads,
}

impl Synthesizer {
    /// Builds every graph of `voice` as `plan` says and starts the threads that own them.
    pub fn load(runtime: &Runtime, voice: &Voice, plan: &Plan, options: &SynthesizerOptions) -> Result<Self> {
        let sample_rate_hz = voice.vocoder_config.sample_rate_hz();
        let decoder_threads = options.threads.saturating_sub(1).max(1);
        let stages = || -> Result<(Acoustic, Tail)> {
            let acoustic = Acoustic::load(runtime, voice, plan, options.threads, decoder_threads)?;
            let postnet = Postnet::load(runtime, voice, plan, 1)?;
            Ok((acoustic, Tail { postnet, vocoder: Vocoder::load(runtime, voice, plan, 1)? }))
        };
        let (frontend, stages) = thread::scope(|scope| {
            let frontend = scope.spawn(|| Frontend::load(voice));
            let stages = stages();
            (frontend.join(), stages)
        });
        let died = |_| Error::Internal("the text front-end died while it was loaded".to_owned());
        let frontend = frontend.map_err(died)??;
        let (acoustic, tail) = stages?;
        let threads = threads::Threads::start(acoustic, tail, sample_rate_hz)?;
        Ok(Self { frontend, sample_rate_hz, threads })
    }

    /// Samples a second of every chunk.
    pub fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    /// Starts to speak. Requests are served in the order of their calls.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when there is nothing to speak.
    pub fn speak(&self, request: &SynthesisRequest) -> Result<AudioStream> {
        let mut segments: Vec<Segment> = match &request.script {
            Script::Text(text) => self.frontend.segments(text)?,
            Script::Phonemes(phonemes) => self.frontend.phonemes(phonemes)?,
        };
        let nothing = || Error::InvalidRequest("there is nothing to speak".to_owned());
        segments.last_mut().ok_or_else(nothing)?.pause = Pause::None;
        self.threads.speak(threads::Job {
            segments,
            speaker: request.speaker.clone(),
            seed: request.seed,
            chunk_sizes: request.chunk_sizes,
        })
    }
}
