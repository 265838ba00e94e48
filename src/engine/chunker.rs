//! Raw mel frames of one sentence in, [`AudioChunk`]-sized runs of samples out.
//!
//! The joined chunks equal the whole: every stage behind the decoder sees as much context as it needs, so a
//! chunk is cut, never cross-faded. Never waits for anything: it gives what is final.

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
    tempo: Tempo,
    /// Refined frames that wait to fill a chunk, row-major [frames, n_mels].
    mel: Vec<f32>,
    audio: VocoderStream,
    /// Frames of the next chunk.
    chunk_frames: usize,
    max_frames: usize,
    /// Frames that the vocoder still holds back as context.
    owed_frames: usize,
}

impl Chunker {
    /// A sentence at a speaking rate within [`SPEAKING_RATES`](crate::tempo::SPEAKING_RATES). Chunks are
    /// counted in frames after the change of pace.
    pub fn new(tail: &Tail, sizes: ChunkSizes, speaking_rate: f32) -> Self {
        Self {
            raw: tail.postnet.begin(),
            tempo: Tempo::new(speaking_rate, tail.postnet.n_mels()),
            mel: Vec::new(),
            audio: tail.vocoder.begin(),
            chunk_frames: sizes.first_frames.max(1),
            max_frames: sizes.max_frames.max(1),
            owed_frames: tail.vocoder.look_ahead_frames(),
        }
    }

    /// Takes raw frames, row-major [any, n_mels], and hands every chunk that they complete to `emit`. Once the
    /// sentence has `ended`, everything is handed out.
    pub fn push(
        &mut self,
        tail: &mut Tail,
        raw: &[f32],
        ended: bool,
        mut emit: impl FnMut(Vec<f32>),
    ) -> Result<()> {
        self.raw.push(raw);
        let n_mels = tail.postnet.n_mels();
        loop {
            let wanted = self.chunk_frames + self.owed_frames;
            let waiting = self.mel.len() / n_mels;
            let enough = waiting + self.tempo.ready(self.raw.ready(ended), ended) >= wanted;
            if !enough && !ended {
                return Ok(());
            }
            if waiting < wanted {
                let refined = tail.postnet.refine(&mut self.raw, ended)?;
                self.mel.extend(self.tempo.push(&refined));
                if ended {
                    self.mel.extend(self.tempo.finish());
                }
            }
            let last = self.mel.len() / n_mels <= wanted && ended;
            let fed = wanted.min(self.mel.len() / n_mels) * n_mels;
            let samples = tail.vocoder.push(&mut self.audio, &self.mel[..fed], last)?;
            self.mel.drain(..fed);
            self.owed_frames = 0;
            self.chunk_frames = (self.chunk_frames * 2).min(self.max_frames);
            if !samples.is_empty() {
                emit(samples);
            }
            if last {
                return Ok(());
            }
        }
    }
}
