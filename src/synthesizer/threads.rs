//! Segments in, audio chunks out, by an acoustic thread and a vocoder thread.
//!
//! The acoustic thread owns encoder and decoder; the vocoder thread owns postnet and vocoder. Never shares a
//! session: what crosses between the threads is frames.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::acoustic::{Acoustic, Sentence};
use super::{AudioChunk, ChunkSizes, Chunker, SpokenSentence, Tail};
use crate::error::{Error, Result};
use crate::text::Segment;

/// Steps that the decoder may run ahead of the vocoder: some seconds of speech.
const STEPS_AHEAD: usize = 128;
/// Chunks that may wait for the reader before its stream pauses.
const CHUNKS_AHEAD: usize = 8;

/// The running threads; they end when this is dropped.
pub(super) struct Threads {
    jobs: SyncSender<(Job, StreamEnd)>,
}

/// One request on its way to the acoustic thread.
pub(super) struct Job {
    pub segments: Vec<Segment>,
    /// [speaker_embedding_dim]
    pub speaker: Vec<f32>,
    pub seed: u64,
    pub chunk_sizes: ChunkSizes,
}

/// The producing end of an [`AudioStream`].
#[derive(Clone)]
struct StreamEnd {
    chunks: SyncSender<Result<AudioChunk>>,
    cancelled: Arc<AtomicBool>,
}

impl StreamEnd {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn send(&self, chunk: Result<AudioChunk>) {
        if self.chunks.send(chunk).is_err() {
            self.cancelled.store(true, Ordering::Relaxed);
        }
    }
}

/// What the acoustic thread tells the vocoder thread.
enum Message {
    /// A sentence of this stream begins.
    Begin(StreamEnd, ChunkSizes),
    /// Its next raw frames, row-major [reduction_factor, n_mels].
    Frames(Vec<f32>),
    /// It has ended, and this is the silence that follows it.
    End(SpokenSentence),
    /// It cannot be finished.
    Fail(Error),
}

/// The chunks of one request, as they become ready. Dropping it cancels the request.
pub struct AudioStream {
    chunks: Receiver<Result<AudioChunk>>,
    cancelled: Arc<AtomicBool>,
    sentences: usize,
}

impl AudioStream {
    /// How many sentences the request has.
    pub fn sentences(&self) -> usize {
        self.sentences
    }
}

impl Iterator for AudioStream {
    type Item = Result<AudioChunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.chunks.recv().ok()
    }
}

impl Drop for AudioStream {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Threads {
    pub fn start(acoustic: Acoustic, tail: Tail, sample_rate_hz: u32) -> Result<Self> {
        let (jobs, queue) = sync_channel(1);
        let (messages, inbox) = sync_channel(STEPS_AHEAD);
        spawn("acoustic", move || run_acoustic(acoustic, &queue, &messages))?;
        spawn("vocoder", move || run_tail(tail, &inbox, sample_rate_hz))?;
        Ok(Self { jobs })
    }

    pub fn speak(&self, job: Job) -> Result<AudioStream> {
        let (chunks, receiver) = sync_channel(CHUNKS_AHEAD);
        let cancelled = Arc::new(AtomicBool::new(false));
        let stream = StreamEnd { chunks, cancelled: Arc::clone(&cancelled) };
        let sentences = job.segments.len();
        self.jobs
            .send((job, stream))
            .map_err(|_| Error::Internal("the acoustic thread has ended".to_owned()))?;
        Ok(AudioStream { chunks: receiver, cancelled, sentences })
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let fault = |e| Error::Internal(format!("the {name} thread did not start: {e}"));
    thread::Builder::new().name(name.to_owned()).spawn(body).map(drop).map_err(fault)
}

/// Speaks every job's sentences in turn; ends when no more jobs can come or nobody vocodes any more.
fn run_acoustic(mut acoustic: Acoustic, jobs: &Receiver<(Job, StreamEnd)>, messages: &SyncSender<Message>) {
    for (job, stream) in jobs {
        for (number, segment) in job.segments.into_iter().enumerate() {
            let begin = Message::Begin(stream.clone(), job.chunk_sizes);
            if stream.is_cancelled() || messages.send(begin).is_err() {
                break;
            }
            let sentence =
                Sentence { ids: &segment.ids, speaker: &job.speaker, seed: job.seed, number: number as u64 };
            let spoken = acoustic.speak(sentence, |frames| {
                let sent = messages.send(Message::Frames(frames.to_vec())).is_ok();
                if sent && !stream.is_cancelled() {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            let failed = spoken.is_err();
            let message = match spoken {
                Ok(Some(ending)) => Message::End(SpokenSentence { segment, ending }),
                Ok(None) => break,
                Err(error) => Message::Fail(error),
            };
            if messages.send(message).is_err() || failed {
                break;
            }
        }
    }
}

/// Turns frames into chunks, one sentence after the other.
fn run_tail(mut tail: Tail, inbox: &Receiver<Message>, sample_rate_hz: u32) {
    let mut current: Option<(StreamEnd, Chunker)> = None;
    for message in inbox {
        let (raw, spoken) = match message {
            Message::Begin(stream, sizes) => {
                current = Some((stream, Chunker::new(&tail, sizes)));
                continue;
            }
            Message::Fail(error) => {
                if let Some((stream, _)) = current.take() {
                    stream.send(Err(error));
                }
                continue;
            }
            Message::Frames(raw) => (raw, None),
            Message::End(sentence) => (Vec::new(), Some(sentence)),
        };
        let Some((stream, chunker)) = &mut current else { continue };
        if stream.is_cancelled() {
            current = None;
            continue;
        }
        let emit = |samples| stream.send(Ok(AudioChunk { samples, completes: None }));
        if let Err(error) = chunker.push(&mut tail, &raw, spoken.is_some(), emit) {
            stream.send(Err(error));
            current = None;
            continue;
        }
        if let Some(sentence) = spoken {
            let silence = sentence.segment.pause.duration_ms() as usize * sample_rate_hz as usize / 1000;
            stream.send(Ok(AudioChunk { samples: vec![0.0; silence], completes: Some(sentence) }));
            current = None;
        }
    }
}
