//! The chunks of one request in, the messages of its response out, at the reader's pace.
//!
//! A task of its own for every request: it ends with the last message, with an error, or as soon as the reader has
//! gone, and the engine's row is free one step later. Never sends a part of a sample.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::feed::{Fed, Feed};
use super::pb::{self, synthesize_response::Event};
use super::refusal::status;
use super::request::{Wanted, named};
use super::responses::{InFlight, Interrupted, Outbox, Responses, response};
use crate::assembly::{Account, Assembly, Spaced, Span};
use crate::engine::{AudioChunk, AudioStream, TextInlet};
use crate::error::{Error, Result};
use crate::repertoire::ServedVoice;
use crate::telemetry::Metrics;
use crate::text::{Lexicon, Passage};

/// What is known of a request before it is spoken.
pub struct Accepted {
    pub id: String,
    pub arrived: Instant,
    pub voice: Arc<ServedVoice>,
    pub wanted: Wanted,
    pub metrics: Metrics,
    /// Becomes true when the server waits no longer.
    pub halted: watch::Receiver<bool>,
}

/// A request that has been counted as admitted; dropped, it is counted as finished.
struct Admitted {
    metrics: Metrics,
    arrived: Instant,
    outcome: &'static str,
    audio_s: f64,
}

impl Admitted {
    fn new(metrics: Metrics, arrived: Instant) -> Self {
        metrics.request_admitted();
        // What it is when its caller leaves before anything is decided.
        Self { metrics, arrived, outcome: "cancelled", audio_s: 0.0 }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.metrics.request_finished(self.outcome, self.audio_s, self.arrived.elapsed());
    }
}

/// One response in the making.
pub struct Delivery {
    accepted: Accepted,
    admitted: Admitted,
    stream: AudioStream,
    inlet: Option<TextInlet>,
    assembly: Assembly,
    outbox: Outbox,
    notices: Vec<String>,
    first_audio: Option<Instant>,
    first_audio_ms: f64,
}

impl Delivery {
    /// Opens a stream for `accepted`.
    ///
    /// # Errors
    /// Those of the engine's admission, and of a sample rate that is not served.
    pub fn open(accepted: Accepted, in_flight: InFlight) -> Result<(Self, Responses)> {
        let rate = accepted.voice.synthesizer.sample_rate_hz();
        let assembly = Assembly::new(rate, accepted.wanted.format, accepted.wanted.silences)?;
        let (inlet, stream) = accepted.voice.synthesizer.open(accepted.wanted.stream.clone())?;
        let admitted = Admitted::new(accepted.metrics.clone(), accepted.arrived);
        let patience = accepted.voice.synthesizer.engine().slow_client_timeout();
        let (outbox, responses) = response(accepted.halted.clone(), patience, in_flight);
        let dictionary = accepted.wanted.reading.lexicon.as_deref();
        let notices = dictionary.map(Lexicon::notices).unwrap_or_default();
        let delivery = Self {
            accepted,
            admitted,
            stream,
            inlet: Some(inlet),
            assembly,
            outbox,
            notices,
            first_audio: None,
            first_audio_ms: 0.0,
        };
        Ok((delivery, responses))
    }

    /// Hands a whole text to the engine.
    pub fn speak_passage(&mut self, mut passage: Passage) -> Result<()> {
        self.notices.append(&mut passage.notices);
        let segments = self.assembly.lay_out(passage);
        let Some(inlet) = &self.inlet else { return Ok(()) };
        segments.into_iter().try_for_each(|segment| inlet.push(segment))
    }

    /// Hands `segments` to the engine.
    pub fn speak(&mut self, segments: Vec<Spaced>) -> Result<()> {
        let Some(inlet) = &self.inlet else { return Ok(()) };
        segments.into_iter().try_for_each(|spaced| inlet.push(self.assembly.space(spaced)))
    }

    /// No segment comes any more.
    pub fn end_text(&mut self) {
        self.inlet = None;
    }

    /// Nothing of it will be spoken.
    pub fn refuse(mut self) {
        self.admitted.outcome = "refused";
    }

    /// Sends everything, taking more text from `feed` while there is one.
    pub async fn run(mut self, feed: Option<Feed>, processed_text: String) {
        let (outcome, error) = match self.deliver(feed, processed_text).await {
            Ok(()) => ("completed", None),
            Err(Interrupted::ReaderGone) => ("cancelled", None),
            Err(Interrupted::Halted) => ("halted", None),
            Err(Interrupted::ReaderSlow(patience)) => {
                self.stream.give_up_on_reader();
                let reason = format!("nothing was taken for {} ms", patience.as_millis());
                ("slow_reader", Some(Error::TooSlow(reason)))
            }
            Err(Interrupted::Failed(error @ Error::TooSlow(_))) => ("slow_reader", Some(error)),
            Err(Interrupted::Failed(error)) => ("failed", Some(error)),
        };
        let audio_s = self.assembly.audio_s();
        (self.admitted.outcome, self.admitted.audio_s) = (outcome, audio_s);
        let wall_ms = self.accepted.arrived.elapsed().as_millis() as u64;
        tracing::info!(outcome, audio_s, wall_ms, "request ended");
        if let Some(error) = error {
            let status = status(&error, &self.accepted.id);
            tracing::warn!(code = ?status.code(), "ended early: {error}");
            self.outbox.end(status);
        }
    }

    async fn deliver(&mut self, mut feed: Option<Feed>, processed_text: String) -> Result<(), Interrupted> {
        let started = self.started(processed_text);
        self.outbox.send(Event::Started(started)).await?;
        let mut unmapped_at_end = String::new();
        loop {
            tokio::select! {
                interrupted = self.outbox.interrupted() => return Err(interrupted),
                text = next_text(&mut feed) => match text? {
                    Fed::Segments(segments) => self.speak(segments)?,
                    Fed::Rest(segments, unmapped) => {
                        feed = None;
                        unmapped_at_end = unmapped;
                        self.speak(segments)?;
                        self.end_text();
                    }
                },
                chunk = self.stream.recv() => match chunk.transpose()? {
                    Some(chunk) => self.take(chunk).await?,
                    None => {
                        self.assembly.note_unmapped(unmapped_at_end.chars());
                        return self.complete().await;
                    }
                },
            }
        }
    }

    fn started(&self, processed_text: String) -> pb::Started {
        let Accepted { id, voice, wanted, .. } = &self.accepted;
        let format = pb::AudioFormat {
            encoding: named(wanted.format.encoding).into(),
            sample_rate_hz: wanted.format.sample_rate_hz,
            channels: 1,
        };
        pb::Started {
            request_id: id.clone(),
            format: Some(format),
            processed_text,
            voice: voice.name.clone(),
            seed: wanted.stream.seed,
            notices: self.notices.clone(),
        }
    }

    /// Encodes and sends `chunk`, with the silences around it.
    async fn take(&mut self, chunk: AudioChunk) -> Result<(), Interrupted> {
        if let Some(first_audio) = self.first_audio {
            let sent = Duration::from_secs_f64(self.assembly.audio_s());
            let late = first_audio.elapsed().saturating_sub(sent);
            if !late.is_zero() {
                self.accepted.metrics.chunk_late(late);
            }
        }
        let speaks = !chunk.samples.is_empty();
        let bytes = self.assembly.take(chunk)?;
        if self.first_audio.is_none() && speaks {
            self.first_audio = Some(Instant::now());
            let waited = self.accepted.arrived.elapsed();
            self.first_audio_ms = waited.as_secs_f64() * 1e3;
            self.accepted.metrics.first_audio(waited);
            self.accepted.voice.spoke_after(waited);
        }
        self.outbox.send_audio(&bytes).await
    }

    async fn complete(&mut self) -> Result<(), Interrupted> {
        let (bytes, account) = self.assembly.finish()?;
        self.outbox.send_audio(&bytes).await?;
        let completed = pb::Completed { first_audio_ms: self.first_audio_ms, ..account.into() };
        self.outbox.send(Event::Completed(completed)).await
    }
}

/// As it is told to clients.
impl From<Account> for pb::Completed {
    fn from(account: Account) -> Self {
        let Account { samples, frames, steps, capped, unmapped, clipped_samples, sentences, marks } = account;
        let span = |Span { text, first_sample, samples, capped }| pb::SentenceSpan {
            text,
            first_sample,
            samples,
            capped,
        };
        Self {
            samples,
            frames,
            steps,
            first_audio_ms: 0.0,
            capped,
            unmapped,
            clipped_samples,
            sentences: sentences.into_iter().map(span).collect(),
            marks: marks.into_iter().map(|(name, sample)| pb::MarkPosition { name, sample }).collect(),
        }
    }
}

/// The next segments of `feed`; never, where there is none.
async fn next_text(feed: &mut Option<Feed>) -> Result<Fed> {
    match feed {
        Some(feed) => feed.next().await,
        None => std::future::pending().await,
    }
}
