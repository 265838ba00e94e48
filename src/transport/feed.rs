//! The text messages of one request in, spaced segments out, as the text is complete enough to be spoken.
//!
//! Two tasks: one takes the messages as fast as they come, the other reads all that has come since it last looked, so
//! that neither speech nor a text in small pieces holds up the connection. Never keeps more text than the limit allows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Notify, oneshot};
use tonic::Streaming;

use super::pb::{self, synthesize_incremental_request::Content};
use super::request::check_text_bytes;
use crate::assembly::Spaced;
use crate::error::{Error, Result};
use crate::repertoire::ServedVoice;
use crate::text::{IncrementalText, Reading};

/// Readings' worth of segments that may wait for the delivery.
const SEGMENTS_AHEAD: usize = 4;

/// What comes out of a feed.
pub enum Fed {
    Segments(Vec<Spaced>),
    /// The last segments, and characters that could not be spoken and belong to no segment.
    Rest(Vec<Spaced>, String),
}

/// Text that is still being written.
pub struct Feed(Receiver<Result<Fed>>);

/// How a text may come.
#[derive(Debug, Clone, Copy)]
pub struct FeedLimits {
    pub max_text_bytes: usize,
    /// A writer that says nothing for this long is given up: it holds a stream that others could use.
    pub text_timeout: Duration,
}

impl FeedLimits {
    /// The next message; `None` behind the last.
    pub async fn message(
        self,
        messages: &mut Streaming<pb::SynthesizeIncrementalRequest>,
        wanted: &str,
    ) -> Result<Option<pb::SynthesizeIncrementalRequest>> {
        let late = |_| {
            let reason = format!("no {wanted} has come for {} ms", self.text_timeout.as_millis());
            Error::DeadlineExceeded(reason)
        };
        let message = tokio::time::timeout(self.text_timeout, messages.message()).await.map_err(late)?;
        message.map_err(|status| Error::InvalidRequest(status.message().to_owned()))
    }
}

impl Feed {
    /// Reads `messages`, from the one behind the config on.
    pub fn start(
        messages: Streaming<pb::SynthesizeIncrementalRequest>,
        voice: Arc<ServedVoice>,
        reading: Reading,
        whole_sentences: bool,
        limits: FeedLimits,
    ) -> Self {
        let inbox = Arc::new(Inbox::default());
        let (listening, nobody_reads) = oneshot::channel();
        tokio::spawn(listen(messages, limits, Arc::clone(&inbox), nobody_reads));
        let (sender, receiver) = channel(SEGMENTS_AHEAD);
        let reader = Reader {
            inbox,
            voice,
            text: IncrementalText::new(reading, whole_sentences),
            _listening: listening,
        };
        tokio::spawn(reader.run(sender));
        Self(receiver)
    }

    /// What comes next. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Fed> {
        let died = || Error::Internal("the reader of the text has ended".to_owned());
        self.0.recv().await.ok_or_else(died)?
    }
}

/// What has come and has not been read.
#[derive(Default)]
struct Unread {
    text: String,
    /// The text is complete, or broke off.
    end: Option<Result<()>>,
}

#[derive(Default)]
struct Inbox {
    unread: Mutex<Unread>,
    news: Notify,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, end: Result<()>) {
        self.lock().end = Some(end);
        self.news.notify_one();
    }

    /// All that has come since the last call, at least a byte or the end.
    async fn take(&self) -> Unread {
        loop {
            let unread = std::mem::take(&mut *self.lock());
            if !unread.text.is_empty() || unread.end.is_some() {
                return unread;
            }
            self.news.notified().await;
        }
    }
}

/// Moves messages into `inbox` until their end, or until nobody reads there.
async fn listen(
    mut messages: Streaming<pb::SynthesizeIncrementalRequest>,
    limits: FeedLimits,
    inbox: Arc<Inbox>,
    mut nobody_reads: oneshot::Receiver<()>,
) {
    let mut bytes: usize = 0;
    loop {
        let piece = tokio::select! {
            _ = &mut nobody_reads => return,
            message = limits.message(&mut messages, "text") => message.and_then(piece),
        };
        match piece {
            Ok(Some(piece)) => {
                bytes = bytes.saturating_add(piece.len());
                if let Err(error) = check_text_bytes(bytes, limits.max_text_bytes) {
                    return inbox.end(Err(error));
                }
                inbox.lock().text.push_str(&piece);
                inbox.news.notify_one();
            }
            Ok(None) => return inbox.end(Ok(())),
            Err(error) => return inbox.end(Err(error)),
        }
    }
}

fn piece(message: Option<pb::SynthesizeIncrementalRequest>) -> Result<Option<String>> {
    let Some(message) = message else { return Ok(None) };
    match message.content {
        Some(Content::Text(piece)) => Ok(Some(piece)),
        Some(Content::Config(_)) => {
            Err(Error::InvalidRequest("config comes in the first message alone".to_owned()))
        }
        None => Err(Error::InvalidRequest("a message without text".to_owned())),
    }
}

struct Reader {
    inbox: Arc<Inbox>,
    voice: Arc<ServedVoice>,
    text: IncrementalText,
    /// Dropped with the reader, which ends the listening.
    _listening: oneshot::Sender<()>,
}

impl Reader {
    async fn run(mut self, sender: Sender<Result<Fed>>) {
        loop {
            let Unread { text, end } = tokio::select! {
                () = sender.closed() => return,
                unread = self.inbox.take() => unread,
            };
            let pieces = [(!text.is_empty()).then_some(Ok(Some(text))), end.map(|end| end.map(|()| None))];
            for piece in pieces.into_iter().flatten() {
                let fed = match piece {
                    Err(error) => Err(error),
                    Ok(piece) => match tokio::task::spawn_blocking(move || self.read(piece)).await {
                        Ok((reader, fed)) => {
                            self = reader;
                            fed
                        }
                        // The delivery reports that its feed has ended.
                        Err(_) => return,
                    },
                };
                let last = !matches!(fed, Ok(Fed::Segments(_)));
                if sender.send(fed).await.is_err() || last {
                    return;
                }
            }
        }
    }

    fn read(mut self, piece: Option<String>) -> (Self, Result<Fed>) {
        let frontend = self.voice.synthesizer.frontend();
        let space = |(after, segment)| Spaced { after, segment };
        let fed = match piece {
            Some(piece) => self
                .text
                .push(frontend, &piece)
                .map(|segments| Fed::Segments(segments.into_iter().map(space).collect())),
            None => self
                .text
                .finish(frontend)
                .map(|(segments, unmapped)| Fed::Rest(segments.into_iter().map(space).collect(), unmapped)),
        };
        (self, fed)
    }
}
