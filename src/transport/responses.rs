//! The events of one response in at the pace of its making, the messages of its stream out at the reader's pace.
//!
//! A reader that takes nothing for too long is given up, and finds the reason behind what was made until then. Never
//! ends without a status or [`pb::Completed`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{oneshot, watch};
use tokio_stream::Stream;
use tonic::Status;

use super::pb::{self, synthesize_response::Event};
use crate::error::Error;

/// Messages that may wait for the connection.
const MESSAGES_AHEAD: usize = 4;
/// A multiple of every encoding's sample, far below the 4 MiB that a client takes by default.
const MAX_AUDIO_BYTES: usize = 256 << 10;

/// Why a response ended early.
pub enum Interrupted {
    ReaderGone,
    /// It has taken nothing for so long.
    ReaderSlow(Duration),
    Halted,
    Failed(Error),
}

impl From<Error> for Interrupted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// One response that has not ended, as the server counts them.
#[derive(Debug)]
pub struct InFlight(Arc<watch::Sender<usize>>);

impl InFlight {
    /// Counts into `count`.
    pub fn new(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(Arc::clone(count))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The producing end.
pub struct Outbox {
    messages: Sender<pb::SynthesizeResponse>,
    last_word: oneshot::Sender<Status>,
    /// Becomes true when the server waits no longer.
    halted: watch::Receiver<bool>,
    patience: Duration,
}

/// The messages of one response.
pub struct Responses {
    messages: Receiver<pb::SynthesizeResponse>,
    /// What the stream ends with instead of [`pb::Completed`].
    last_word: oneshot::Receiver<Status>,
    halted: watch::Receiver<bool>,
    ended: bool,
    _in_flight: InFlight,
}

/// Both ends of a response whose reader is given up when it takes nothing for `patience`.
pub fn response(
    halted: watch::Receiver<bool>,
    patience: Duration,
    in_flight: InFlight,
) -> (Outbox, Responses) {
    let (messages, receiver) = mpsc::channel(MESSAGES_AHEAD);
    let (last_word, last) = oneshot::channel();
    let outbox = Outbox { messages, last_word, halted: halted.clone(), patience };
    let responses =
        Responses { messages: receiver, last_word: last, halted, ended: false, _in_flight: in_flight };
    (outbox, responses)
}

impl Outbox {
    pub async fn send(&self, event: Event) -> Result<(), Interrupted> {
        let sending = self.messages.send(pb::SynthesizeResponse { event: Some(event) });
        tokio::select! {
            sent = tokio::time::timeout(self.patience, sending) => match sent {
                Ok(sent) => sent.map_err(|_| Interrupted::ReaderGone),
                Err(_) => Err(Interrupted::ReaderSlow(self.patience)),
            },
            () = self.halted() => Err(Interrupted::Halted),
        }
    }

    /// Sends `bytes` in messages that any client takes.
    pub async fn send_audio(&self, bytes: &[u8]) -> Result<(), Interrupted> {
        for part in bytes.chunks(MAX_AUDIO_BYTES) {
            self.send(Event::Audio(part.to_vec())).await?;
        }
        Ok(())
    }

    /// Ends when nobody reads any more or the server waits no longer.
    pub async fn interrupted(&self) -> Interrupted {
        tokio::select! {
            () = self.messages.closed() => Interrupted::ReaderGone,
            () = self.halted() => Interrupted::Halted,
        }
    }

    /// Ends the response with `status`, behind the messages that wait.
    pub fn end(self, status: Status) {
        // A reader that has gone asks no more.
        let _ = self.last_word.send(status);
    }

    async fn halted(&self) {
        let _ = self.halted.clone().wait_for(|halted| *halted).await;
    }
}

impl Stream for Responses {
    type Item = Result<pb::SynthesizeResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let message = match std::task::ready!(self.messages.poll_recv(context)) {
            Some(response) => {
                self.ended = matches!(response.event, Some(Event::Completed(_)));
                Ok(response)
            }
            None => {
                self.ended = true;
                Err(self.last_word.try_recv().unwrap_or_else(|_| self.cut_short()))
            }
        };
        Poll::Ready(Some(message))
    }
}

impl Responses {
    fn cut_short(&self) -> Status {
        let reason = "the response was cut short";
        if *self.halted.borrow() { Status::unavailable(reason) } else { Status::internal(reason) }
    }
}
