//! Chunks from the vocoder thread in, the same chunks at the reader's pace out.
//!
//! The channel is bounded: a reader that stalls pauses its own stream, and one that drops it cancels it. Never
//! blocks the thread that produces.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::admission::Permit;
use super::step_loop::Command;
use super::{AudioChunk, StreamId};
use crate::error::{Error, Result};
use crate::text::Segment;

/// Chunks that may wait for the reader before its stream pauses.
const CHUNKS_AHEAD: usize = 8;

/// What reader, step loop and vocoder thread tell each other about one stream.
#[derive(Debug)]
pub(super) struct Flow {
    /// The reader has gone.
    cancelled: AtomicBool,
    /// When the reader's channel became full, in microseconds since `born`, plus one; 0 while it has room.
    stalled_us: AtomicU64,
    born: Instant,
}

impl Flow {
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// For how long the reader has taken nothing; `None` while its channel has room.
    pub fn stalled_for(&self) -> Option<std::time::Duration> {
        let since = self.stalled_us.load(Ordering::Relaxed);
        (since > 0).then(|| self.born.elapsed().saturating_sub(std::time::Duration::from_micros(since - 1)))
    }

    fn stall(&self, stalled: bool) {
        if !stalled {
            self.stalled_us.store(0, Ordering::Relaxed);
        } else if self.stalled_us.load(Ordering::Relaxed) == 0 {
            self.stalled_us.store(self.born.elapsed().as_micros() as u64 + 1, Ordering::Relaxed);
        }
    }
}

/// The producing end: never blocks, keeps what the reader has no room for.
pub(super) struct Outlet {
    /// Dropped first: a reader that has seen the end finds its place free.
    _permit: Permit,
    chunks: Sender<Result<AudioChunk>>,
    waiting: VecDeque<Result<AudioChunk>>,
    flow: Arc<Flow>,
}

impl Outlet {
    pub fn send(&mut self, chunk: Result<AudioChunk>) {
        self.waiting.push_back(chunk);
        self.flush();
    }

    /// Ends the stream with `error`.
    pub fn fail(&mut self, error: Error) {
        self.send(Err(error));
        self.flow.cancelled.store(true, Ordering::Relaxed);
    }

    /// Hands over what the reader has room for. -> whether anything still waits
    pub fn flush(&mut self) -> bool {
        while let Some(chunk) = self.waiting.pop_front() {
            match self.chunks.try_send(chunk) {
                Ok(()) => {}
                Err(TrySendError::Full(chunk)) => {
                    self.waiting.push_front(chunk);
                    break;
                }
                Err(TrySendError::Closed(_)) => {
                    self.waiting.clear();
                    self.flow.cancelled.store(true, Ordering::Relaxed);
                }
            }
        }
        self.flow.stall(!self.waiting.is_empty());
        !self.waiting.is_empty()
    }

    pub fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }
}

/// The chunks of one request, as they become ready. Dropping it cancels the request within one decoder step.
#[derive(Debug)]
pub struct AudioStream {
    chunks: Receiver<Result<AudioChunk>>,
    flow: Arc<Flow>,
    commands: SyncSender<Command>,
}

impl AudioStream {
    /// The next chunk, for a reader that must not block; `None` at the end.
    pub async fn recv(&mut self) -> Option<Result<AudioChunk>> {
        self.chunks.recv().await
    }
}

/// For a reader on a thread of its own.
impl Iterator for AudioStream {
    type Item = Result<AudioChunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.chunks.blocking_recv()
    }
}

impl Drop for AudioStream {
    fn drop(&mut self) {
        self.flow.cancelled.store(true, Ordering::Relaxed);
        // A loop that is busy looks at the flag before its next step; only one that sleeps must be woken.
        let _ = self.commands.try_send(Command::Wake);
    }
}

/// The text of one request on its way to the engine. Dropping it ends the text.
#[derive(Debug)]
pub struct TextInlet {
    id: StreamId,
    commands: SyncSender<Command>,
}

impl TextInlet {
    /// Adds a segment to what is spoken.
    ///
    /// # Errors
    /// [`Error::Internal`] when the engine has ended.
    pub fn push(&self, segment: Segment) -> Result<()> {
        let gone = |_| Error::Internal("the engine has ended".to_owned());
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
) -> (TextInlet, AudioStream, Outlet) {
    let (sender, receiver) = channel(CHUNKS_AHEAD);
    let flow = Arc::new(Flow {
        cancelled: AtomicBool::new(false),
        stalled_us: AtomicU64::new(0),
        born: Instant::now(),
    });
    let outlet =
        Outlet { _permit: permit, chunks: sender, waiting: VecDeque::new(), flow: Arc::clone(&flow) };
    let inlet = TextInlet { id, commands: commands.clone() };
    (inlet, AudioStream { chunks: receiver, flow, commands: commands.clone() }, outlet)
}
