//! The chunks of one request in, the messages of its response out, at the reader's pace.
//!
//! A task of its own for every request: it ends with the last message, with an error, or as soon as the reader has
//! gone, and the engine's row is free one step later. Never sends a part of a sample.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::feed::{Fed, Feed};
use super::pb::{self, synthesize_response::Event};
use super::refusal::status;
use super::request::{ENCODINGS, Wanted};
use super::responses::{InFlight, Interrupted, Outbox, Responses, response};
use crate::codec::AudioEncoder;
use crate::decoder::End;
use crate::engine::{AudioChunk, AudioStream, SpokenSentence, TextInlet};
use crate::error::{Error, Result};
use crate::repertoire::ServedVoice;
use crate::telemetry::Metrics;
use crate::text::{Lexicon, Mark, Passage, Pause, Segment};

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

/// A segment, without a pause of its own, and the silence between it and the one before it.
pub struct Spaced {
    pub after: Pause,
    pub segment: Segment,
}

/// One response in the making.
pub struct Delivery {
    accepted: Accepted,
    admitted: Admitted,
    stream: AudioStream,
    inlet: Option<TextInlet>,
    encoder: AudioEncoder,
    outbox: Outbox,
    voice_rate_hz: u32,
    /// Silences that markup asks for before and behind the text, in milliseconds.
    lead_ms: u32,
    tail_ms: u32,
    end_marks: Vec<String>,
    notices: Vec<String>,
    /// Silences before the segments that have been sent to the engine, in milliseconds.
    gaps_ms: Vec<u32>,
    /// Segments that have been completed.
    completed: usize,
    /// The silence before the next segment has been encoded.
    gap_paid: bool,
    /// Samples taken so far, and where the present sentence began, at the voice's rate.
    position: u64,
    sentence_began: u64,
    first_audio: Option<Instant>,
    summary: pb::Completed,
    /// The characters of `summary.unmapped`.
    unmapped: HashSet<char>,
}

impl Delivery {
    /// Opens a stream for `accepted`.
    ///
    /// # Errors
    /// Those of the engine's admission, and of a sample rate that is not served.
    pub fn open(accepted: Accepted, in_flight: InFlight) -> Result<(Self, Responses)> {
        let voice_rate_hz = accepted.voice.synthesizer.sample_rate_hz();
        let encoder = AudioEncoder::new(voice_rate_hz, accepted.wanted.format, None)?;
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
            encoder,
            outbox,
            voice_rate_hz,
            lead_ms: 0,
            tail_ms: 0,
            end_marks: Vec::new(),
            notices,
            gaps_ms: Vec::new(),
            completed: 0,
            gap_paid: true,
            position: 0,
            sentence_began: 0,
            first_audio: None,
            summary: pb::Completed::default(),
            unmapped: HashSet::new(),
        };
        Ok((delivery, responses))
    }

    /// Hands a whole text to the engine.
    pub fn speak_passage(&mut self, passage: Passage) -> Result<()> {
        let Passage { segments, lead_ms, end_marks, notices } = passage;
        self.notices.extend(notices);
        (self.lead_ms, self.end_marks) = (lead_ms, end_marks);
        let mut after = Pause::None;
        let space = |mut segment: Segment| {
            let pause = std::mem::replace(&mut segment.pause, Pause::None);
            Spaced { after: std::mem::replace(&mut after, pause), segment }
        };
        let spaced: Vec<Spaced> = segments.into_iter().map(space).collect();
        self.tail_ms = after.duration_ms();
        self.speak(spaced)
    }

    /// Hands `segments` to the engine.
    pub fn speak(&mut self, segments: Vec<Spaced>) -> Result<()> {
        let Some(inlet) = &self.inlet else { return Ok(()) };
        for Spaced { after, segment } in segments {
            let gap_ms = match (after, self.accepted.wanted.sentence_silence_ms) {
                (Pause::None | Pause::Clause | Pause::Break(_), _) | (_, None) => after.duration_ms(),
                (_, Some(silence_ms)) => silence_ms,
            };
            self.gaps_ms.push(gap_ms);
            inlet.push(segment)?;
        }
        Ok(())
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
        let audio_s = self.position as f64 / f64::from(self.voice_rate_hz);
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
                        self.note_unmapped(unmapped_at_end.chars());
                        return self.complete().await;
                    }
                },
            }
        }
    }

    fn started(&self, processed_text: String) -> pb::Started {
        let Accepted { id, voice, wanted, .. } = &self.accepted;
        let encoding = ENCODINGS.iter().find(|(encoding, _)| *encoding == wanted.format.encoding);
        let format = pb::AudioFormat {
            encoding: encoding.map_or(pb::AudioEncoding::Unspecified, |(_, named)| *named).into(),
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
        let mut bytes = Vec::new();
        if let Some(first_audio) = self.first_audio {
            let sent = Duration::from_secs_f64(self.position as f64 / f64::from(self.voice_rate_hz));
            let late = first_audio.elapsed().saturating_sub(sent);
            if !late.is_zero() {
                self.accepted.metrics.chunk_late(late);
            }
        }
        if self.position == 0 {
            self.silence(self.accepted.wanted.lead_silence_ms, &mut bytes)?;
            self.silence(self.lead_ms, &mut bytes)?;
            self.sentence_began = self.position;
        }
        self.pay_gap(&mut bytes)?;
        bytes.extend(self.encoder.push(&chunk.samples)?);
        self.position += chunk.samples.len() as u64;
        if let Some(sentence) = chunk.completes {
            self.note(&sentence);
            self.completed += 1;
            self.gap_paid = false;
            // Where the next segment is known, so is the silence before it.
            self.pay_gap(&mut bytes)?;
        }
        if self.first_audio.is_none() && !chunk.samples.is_empty() {
            self.first_audio = Some(Instant::now());
            let waited = self.accepted.arrived.elapsed();
            self.summary.first_audio_ms = waited.as_secs_f64() * 1e3;
            self.accepted.metrics.first_audio(waited);
            self.accepted.voice.spoke_after(waited);
        }
        self.outbox.send_audio(&bytes).await
    }

    /// Encodes the silence before the present segment, once, as soon as it is known.
    fn pay_gap(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        if self.gap_paid {
            return Ok(());
        }
        let Some(&gap_ms) = self.gaps_ms.get(self.completed) else { return Ok(()) };
        self.gap_paid = true;
        self.silence(gap_ms, bytes)?;
        self.sentence_began = self.position;
        Ok(())
    }

    fn silence(&mut self, silence_ms: u32, bytes: &mut Vec<u8>) -> Result<()> {
        let samples = silence_ms as usize * self.voice_rate_hz as usize / 1000;
        bytes.extend(self.encoder.push(&vec![0.0; samples])?);
        self.position += samples as u64;
        Ok(())
    }

    fn note(&mut self, sentence: &SpokenSentence) {
        let (first, end) = (self.output_samples(self.sentence_began), self.output_samples(self.position));
        let capped = sentence.ending.end == End::Cap;
        self.summary.frames += sentence.ending.frames as u64;
        self.summary.steps += sentence.ending.steps as u64;
        self.summary.capped |= capped;
        self.note_unmapped(sentence.segment.unmapped.iter().copied());
        let symbols = sentence.segment.ids.len().max(1) as u64;
        for Mark { name, symbol } in &sentence.segment.marks {
            let within = (self.position - self.sentence_began) * *symbol as u64 / symbols;
            let sample = self.output_samples(self.sentence_began + within);
            self.summary.marks.push(pb::MarkPosition { name: name.clone(), sample });
        }
        self.summary.sentences.push(pb::SentenceSpan {
            text: sentence.segment.text.clone(),
            first_sample: first,
            samples: end - first,
            capped,
        });
    }

    fn note_unmapped(&mut self, characters: impl Iterator<Item = char>) {
        let new = characters.filter(|c| self.unmapped.insert(*c));
        self.summary.unmapped.extend(new);
    }

    /// Where a sample of the voice's rate lies at the rate of the response.
    fn output_samples(&self, position: u64) -> u64 {
        let (from, to) =
            (u64::from(self.voice_rate_hz), u64::from(self.accepted.wanted.format.sample_rate_hz));
        (position * to + from / 2) / from
    }

    async fn complete(&mut self) -> Result<(), Interrupted> {
        let mut bytes = Vec::new();
        self.silence(self.tail_ms, &mut bytes)?;
        let sample = self.output_samples(self.position);
        let end_marks = std::mem::take(&mut self.end_marks);
        self.summary.marks.extend(end_marks.into_iter().map(|name| pb::MarkPosition { name, sample }));
        self.silence(self.accepted.wanted.tail_silence_ms, &mut bytes)?;
        bytes.extend(self.encoder.finish()?);
        self.outbox.send_audio(&bytes).await?;
        self.summary.samples = self.encoder.samples();
        self.summary.clipped_samples = self.encoder.clipped();
        let summary = std::mem::take(&mut self.summary);
        self.outbox.send(Event::Completed(summary)).await
    }
}

/// The next segments of `feed`; never, where there is none.
async fn next_text(feed: &mut Option<Feed>) -> Result<Fed> {
    match feed {
        Some(feed) => feed.next().await,
        None => std::future::pending().await,
    }
}
