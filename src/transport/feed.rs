//! The text messages of one request in, spaced segments out, as the text is complete enough to be spoken.
//!
//! A task of its own, so that waiting for text never holds up audio. Never keeps more text than the limit allows.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tonic::Streaming;

use super::delivery::Spaced;
use super::pb::{self, synthesize_incremental_request::Content};
use super::request::check_text_bytes;
use crate::error::{Error, Result};
use crate::repertoire::ServedVoice;
use crate::text::{IncrementalText, Reading};

/// Pieces' worth of segments that may wait for the delivery.
const SEGMENTS_AHEAD: usize = 4;
/// A writer that says nothing for this long is given up: it holds a stream that others could use.
const PATIENCE: Duration = Duration::from_secs(120);

/// What comes out of a feed.
pub enum Fed {
    Segments(Vec<Spaced>),
    /// The last segments, and characters that could not be spoken and belong to no segment.
    Rest(Vec<Spaced>, String),
}

/// Text that is still being written.
pub struct Feed(Receiver<Result<Fed>>);

struct Writer {
    messages: Streaming<pb::SynthesizeIncrementalRequest>,
    voice: Arc<ServedVoice>,
    text: IncrementalText,
    bytes: usize,
    max_text_bytes: usize,
}

impl Feed {
    /// Reads `messages`, from the one behind the config on.
    pub fn start(
        messages: Streaming<pb::SynthesizeIncrementalRequest>,
        voice: Arc<ServedVoice>,
        whole_sentences: bool,
        max_text_bytes: usize,
    ) -> Self {
        let (sender, receiver) = channel(SEGMENTS_AHEAD);
        let text = IncrementalText::new(Reading::default(), whole_sentences);
        let writer = Writer { messages, voice, text, bytes: 0, max_text_bytes };
        tokio::spawn(writer.run(sender));
        Self(receiver)
    }

    /// What comes next. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Fed> {
        let died = || Error::Internal("the reader of the text has ended".to_owned());
        self.0.recv().await.ok_or_else(died)?
    }
}

impl Writer {
    async fn run(mut self, sender: Sender<Result<Fed>>) {
        loop {
            let fed = tokio::select! {
                _ = sender.closed() => return,
                piece = self.piece() => piece,
            };
            let fed = match fed {
                Ok(piece) => {
                    let (writer, fed) = match tokio::task::spawn_blocking(move || self.read(piece)).await {
                        Ok(read) => read,
                        // The delivery reports that its feed has ended.
                        Err(_) => return,
                    };
                    self = writer;
                    fed
                }
                Err(error) => Err(error),
            };
            let last = !matches!(fed, Ok(Fed::Segments(_)));
            if sender.send(fed).await.is_err() || last {
                return;
            }
        }
    }

    /// The next piece of text; `None` at its end.
    async fn piece(&mut self) -> Result<Option<String>> {
        let message = tokio::time::timeout(PATIENCE, self.messages.message())
            .await
            .map_err(|_| Error::DeadlineExceeded(format!("no text has come for {} s", PATIENCE.as_secs())))?;
        let refused = |status: tonic::Status| Error::InvalidRequest(status.message().to_owned());
        let Some(message) = message.map_err(refused)? else { return Ok(None) };
        match message.content {
            Some(Content::Text(piece)) => {
                self.bytes = self.bytes.saturating_add(piece.len());
                check_text_bytes(self.bytes, self.max_text_bytes)?;
                Ok(Some(piece))
            }
            Some(Content::Config(_)) => {
                Err(Error::InvalidRequest("config comes in the first message alone".to_owned()))
            }
            None => Err(Error::InvalidRequest("a message without text".to_owned())),
        }
    }

    fn read(mut self, piece: Option<String>) -> (Self, Result<Fed>) {
        let frontend = self.voice.synthesizer.frontend();
        let space = |(after, segment)| Spaced { after, segment };
        let fed = match piece {
            Some(piece) => {
                Ok(Fed::Segments(self.text.push(frontend, &piece).into_iter().map(space).collect()))
            }
            None => self
                .text
                .finish(frontend)
                .map(|(segments, unmapped)| Fed::Rest(segments.into_iter().map(space).collect(), unmapped)),
        };
        (self, fed)
    }
}
