//! Chunks from the vocoder thread in, the same chunks at the reader's pace out.
//!
//! The channel is bounded: a reader that stalls pauses its own stream, and one that drops it cancels it. Never
//! blocks the thread that produces, and never ends early without saying so.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::admission::Permit;
use super::command::Command;
use super::{AudioChunk, StreamId};
use crate::error::{Error, Excerpt, Result};
use crate::tempo::SPEAKING_RATES;
use crate::text::{MAX_TEXT_BYTES, Segment};

/// Chunks that may wait for the reader before its stream pauses.
const CHUNKS_AHEAD: usize = 8;
/// Symbols of one stream that may wait for the encoder: what the longest text becomes, with room to spell out
/// its numbers.
const SYMBOLS_AHEAD: usize = 8 * MAX_TEXT_BYTES;

/// What reader, step loop and vocoder thread tell each other about one stream.
#[derive(Debug)]
pub(super) struct Flow {
    /// The reader has gone.
    left: AtomicBool,
    /// The reader has been given up for its slowness by whoever hands it the chunks.
    given_up: AtomicBool,
    /// Its early end has been counted.
    counted: AtomicBool,
    /// The vocoder thread has ended the stream.
    failed: AtomicBool,
    /// The vocoder thread has more frames of this stream than it can soon use.
    behind: AtomicBool,
    /// When the reader last took something while chunks waited, in microseconds since `born`, plus one; 0 while
    /// none waits.
    stalled_us: AtomicU64,
    born: Instant,
    /// Symbols that wait for the encoder.
    symbols: AtomicUsize,
    outcome: Mutex<Outcome>,
}

/// What a reader finds behind the last chunk.
#[derive(Debug)]
enum Outcome {
    /// The producing end has gone without a word.
    Lost,
    Finished,
    Failed(Error),
}

impl Flow {
    /// Whether the reader has gone.
    pub fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// Whether the reader was too slow for whoever hands it the chunks.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Counts an early end for `counter`, unless it has been counted already.
    pub fn count_once(&self, counter: &AtomicU64) {
        let news = !self.counted.swap(true, Ordering::Relaxed);
        counter.fetch_add(u64::from(news), Ordering::Relaxed);
    }

    /// Whether nobody waits for more of this stream.
    pub fn is_over(&self) -> bool {
        self.is_left() || self.failed.load(Ordering::Relaxed)
    }

    /// Whether more frames would only wait: for the reader, or for the vocoder thread.
    pub fn is_paused(&self) -> bool {
        self.stalled_for().is_some() || self.behind.load(Ordering::Relaxed)
    }

    /// -> whether that is news
    pub fn set_behind(&self, behind: bool) -> bool {
        self.behind.swap(behind, Ordering::Relaxed) != behind
    }

    /// For how long the reader has taken nothing; `None` while no chunk waits for it.
    pub fn stalled_for(&self) -> Option<Duration> {
        let since = self.stalled_us.load(Ordering::Relaxed);
        (since > 0).then(|| self.born.elapsed().saturating_sub(Duration::from_micros(since - 1)))
    }

    fn stall(&self, waiting: bool, progress: bool) {
        if !waiting {
            self.stalled_us.store(0, Ordering::Relaxed);
        } else if progress || self.stalled_us.load(Ordering::Relaxed) == 0 {
            self.stalled_us.store(self.born.elapsed().as_micros() as u64 + 1, Ordering::Relaxed);
        }
    }

    /// Symbols that have gone to the encoder make room for others.
    pub fn symbols_taken(&self, symbols: usize) {
        self.symbols.fetch_sub(symbols, Ordering::Relaxed);
    }

    fn conclude(&self, outcome: Outcome) -> Outcome {
        std::mem::replace(&mut self.outcome.lock().unwrap_or_else(PoisonError::into_inner), outcome)
    }

    /// What a reader is told after the last chunk, once.
    fn last_word(&self) -> Option<Result<AudioChunk>> {
        match self.conclude(Outcome::Finished) {
            Outcome::Finished => None,
            Outcome::Failed(error) => Some(Err(error)),
            Outcome::Lost => {
                Some(Err(Error::Unavailable("the engine ended before this stream did".to_owned())))
            }
        }
    }
}

/// The producing end: never blocks, keeps what the reader has no room for. Whoever drops it without a
/// [`Self::finish`] or [`Self::fail`] leaves the reader with an error.
#[derive(Debug)]
pub(super) struct Outlet {
    /// Dropped first: a reader that has seen the end finds its place free.
    _permit: Permit,
    chunks: Sender<AudioChunk>,
    waiting: VecDeque<AudioChunk>,
    flow: Arc<Flow>,
}

impl Outlet {
    pub fn send(&mut self, chunk: AudioChunk) {
        self.waiting.push_back(chunk);
        self.flush();
    }

    /// The stream has come to its own end.
    pub fn finish(self) {
        self.flow.conclude(Outcome::Finished);
    }

    /// Ends the stream with `error`, behind the chunks that have reached the reader's channel.
    pub fn fail(self, error: Error) {
        self.flow.conclude(Outcome::Failed(error));
        self.flow.failed.store(true, Ordering::Relaxed);
    }

    /// Hands over what the reader has room for.
    pub fn flush(&mut self) {
        let mut progress = false;
        while let Some(chunk) = self.waiting.pop_front() {
            match self.chunks.try_send(chunk) {
                Ok(()) => progress = true,
                Err(TrySendError::Full(chunk)) => {
                    self.waiting.push_front(chunk);
                    break;
                }
                Err(TrySendError::Closed(_)) => self.waiting.clear(),
            }
        }
        self.flow.stall(!self.waiting.is_empty(), progress);
    }

    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }
}

/// The chunks of one request, as they become ready. Dropping it cancels the request within one decoder step.
/// A stream that does not come to its own end yields an error last.
#[derive(Debug)]
pub struct AudioStream {
    chunks: Receiver<AudioChunk>,
    flow: Arc<Flow>,
    commands: SyncSender<Command>,
}

impl AudioStream {
    /// Counts the reader as too slow, rather than as one that leaves, when this is dropped.
    pub fn give_up_on_reader(&self) {
        self.flow.given_up.store(true, Ordering::Relaxed);
    }

    /// The next chunk, for a reader that must not block; `None` at the end.
    pub async fn recv(&mut self) -> Option<Result<AudioChunk>> {
        let chunk = self.chunks.recv().await;
        chunk.map(Ok).or_else(|| self.flow.last_word())
    }
}

/// For a reader on a thread of its own.
impl Iterator for AudioStream {
    type Item = Result<AudioChunk>;

    fn next(&mut self) -> Option<Self::Item> {
        let chunk = self.chunks.blocking_recv();
        chunk.map(Ok).or_else(|| self.flow.last_word())
    }
}

impl Drop for AudioStream {
    fn drop(&mut self) {
        self.flow.left.store(true, Ordering::Relaxed);
        // A loop that is busy looks at the flag before its next step; only one that sleeps must be woken.
        let _ = self.commands.try_send(Command::Wake);
    }
}

/// The text of one request on its way to the engine. Dropping it ends the text.
#[derive(Debug)]
pub struct TextInlet {
    id: StreamId,
    flow: Arc<Flow>,
    commands: SyncSender<Command>,
    /// Of the whole request.
    speaking_rate: f32,
}

impl TextInlet {
    /// Adds a segment to what is spoken.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when the text has more symbols than may wait or the segment's rate and that of the
    /// request together lie outside [`SPEAKING_RATES`], [`Error::Unavailable`] when the engine has ended.
    pub fn push(&self, segment: Segment) -> Result<()> {
        let rate = self.speaking_rate * segment.prosody.rate;
        if !SPEAKING_RATES.contains(&rate) {
            let (low, high) = SPEAKING_RATES.into_inner();
            return Err(Error::InvalidRequest(format!(
                "a rate of {} at a speaking rate of {} makes {rate}: it must be {low} to {high}, in `{}`",
                segment.prosody.rate,
                self.speaking_rate,
                Excerpt(&segment.text)
            )));
        }
        let symbols = segment.ids.len();
        let waiting = self.flow.symbols.fetch_add(symbols, Ordering::Relaxed);
        if waiting + symbols > SYMBOLS_AHEAD {
            self.flow.symbols_taken(symbols);
            return Err(Error::InvalidRequest(format!(
                "{waiting} symbols of this text wait to be spoken, with {symbols} more they pass the limit of \
                 {SYMBOLS_AHEAD} in one request: send it in parts"
            )));
        }
        let gone = |_| Error::Unavailable("the engine has ended".to_owned());
        self.commands.send(Command::Segment(self.id, segment)).map_err(gone)
    }
}

impl Drop for TextInlet {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::EndOfText(self.id));
    }
}

pub(super) fn stream(
    id: StreamId,
    permit: Permit,
    commands: &SyncSender<Command>,
    speaking_rate: f32,
) -> (TextInlet, AudioStream, Outlet) {
    let (sender, receiver) = channel(CHUNKS_AHEAD);
    let flow = Arc::new(Flow {
        left: AtomicBool::new(false),
        given_up: AtomicBool::new(false),
        counted: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        behind: AtomicBool::new(false),
        stalled_us: AtomicU64::new(0),
        born: Instant::now(),
        symbols: AtomicUsize::new(0),
        outcome: Mutex::new(Outcome::Lost),
    });
    let outlet =
        Outlet { _permit: permit, chunks: sender, waiting: VecDeque::new(), flow: Arc::clone(&flow) };
    let inlet = TextInlet { id, flow: Arc::clone(&flow), commands: commands.clone(), speaking_rate };
    (inlet, AudioStream { chunks: receiver, flow, commands: commands.clone() }, outlet)
}
