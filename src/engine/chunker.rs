//! Raw mel frames of one sentence in, [`AudioChunk`](super::AudioChunk)-sized runs of samples out.
//!
//! The joined chunks equal the whole: every stage behind the decoder sees as much context as it needs, so a
//! chunk is cut, never cross-faded. Where chunks are cut follows from the frames alone: never from when somebody
//! asks for a chunk.

use crate::error::Result;
use crate::postnet::Postnet;
use crate::tempo::Tempo;
use crate::vocoder::{Vocoder, VocoderStream};
use crate::window::Window;

/// How many mel frames go into a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSizes {
    /// The first chunk of a sentence: the shorter, the earlier the first audio.
    pub first_frames: usize,
    /// Every next chunk is twice as long, up to this: the longer, the less context is computed twice.
    pub max_frames: usize,
}

impl ChunkSizes {
    /// Chunks that all have `frames` frames.
    pub fn fixed(frames: usize) -> Self {
        Self { first_frames: frames, max_frames: frames }
    }
}

impl Default for ChunkSizes {
    fn default() -> Self {
        Self { first_frames: 6, max_frames: 96 }
    }
}

/// The stages behind the decoder.
pub struct Tail {
    pub postnet: Postnet,
    pub vocoder: Vocoder,
}

/// One sentence on its way through the [`Tail`].
pub struct Chunker {
    raw: Window,
    ended: bool,
    tempo: Tempo,
    /// Refined frames at the speaking rate that wait to fill a chunk, row-major [frames, n_mels].
    mel: Vec<f32>,
    n_mels: usize,
    audio: VocoderStream,
    /// Frames of the next chunk.
    chunk_frames: usize,
    max_frames: usize,
    /// Frames that the vocoder still holds back as context.
    owed_frames: usize,
    done: bool,
}

impl Chunker {
    /// A sentence at a speaking rate within [`SPEAKING_RATES`](crate::tempo::SPEAKING_RATES). Chunks are
    /// counted in frames after the change of pace.
    pub fn new(tail: &Tail, sizes: ChunkSizes, speaking_rate: f32) -> Self {
        let n_mels = tail.postnet.n_mels();
        Self {
            raw: tail.postnet.begin(),
            ended: false,
            tempo: Tempo::new(speaking_rate, n_mels),
            mel: Vec::new(),
            n_mels,
            audio: tail.vocoder.begin(),
            chunk_frames: sizes.first_frames.max(1),
            max_frames: sizes.max_frames.max(1),
            owed_frames: tail.vocoder.look_ahead_frames(),
            done: false,
        }
    }

    /// Takes raw frames, row-major [any, n_mels].
    pub fn push(&mut self, raw: &[f32]) {
        self.raw.push(raw);
    }

    /// The sentence has no more frames.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Whether the next chunk can be made now.
    pub fn is_ready(&self) -> bool {
        !self.done && (self.ended || self.available_frames() >= self.wanted())
    }

    /// Whether every chunk has been made.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Frames that are there beyond those of the next chunk.
    pub fn surplus_frames(&self) -> usize {
        self.available_frames().saturating_sub(self.wanted())
    }

    /// The next chunk; `None` while it is not ready. An empty one is the end of a sentence that had nothing left.
    pub fn next(&mut self, tail: &mut Tail) -> Result<Option<Vec<f32>>> {
        if !self.is_ready() {
            return Ok(None);
        }
        let wanted = self.wanted();
        if self.ended || self.mel.len() / self.n_mels < wanted {
            let refined = tail.postnet.refine(&mut self.raw, self.ended)?;
            self.mel.extend(self.tempo.push(&refined));
        }
        if self.ended {
            self.mel.extend(self.tempo.finish());
        }
        let waiting = self.mel.len() / self.n_mels;
        self.done = self.ended && waiting <= wanted;
        let fed = waiting.min(wanted) * self.n_mels;
        let samples = tail.vocoder.push(&mut self.audio, &self.mel[..fed], self.done)?;
        self.mel.drain(..fed);
        self.owed_frames = 0;
        self.chunk_frames = self.chunk_frames.saturating_mul(2).min(self.max_frames);
        Ok(Some(samples))
    }

    /// Frames at the speaking rate that are there, or that what is there can be made into.
    fn available_frames(&self) -> usize {
        self.mel.len() / self.n_mels + self.tempo.ready(self.raw.ready(self.ended), self.ended)
    }

    fn wanted(&self) -> usize {
        self.chunk_frames.saturating_add(self.owed_frames)
    }
}
