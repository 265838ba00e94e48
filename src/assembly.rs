//! The chunks of one passage in, its bytes and the account of them out: silences, encoding, spans and marks.
//!
//! What a served request and a line of a batch have in common. Never waits, and never knows where its bytes go.

use std::collections::HashSet;

use crate::codec::{AudioEncoder, AudioFormat};
use crate::decoder::End;
use crate::engine::{AudioChunk, SpokenSentence};
use crate::error::Result;
use crate::text::{Mark, Passage, Pause, Segment};

/// The longest silence that can be asked for.
pub const MAX_SILENCE_MS: u32 = 10_000;

/// Silences that are asked for beside those of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Silences {
    pub lead_ms: u32,
    pub tail_ms: u32,
    /// `None` leaves the silence between sentences to the punctuation.
    pub sentence_ms: Option<u32>,
}

/// A segment, without a pause of its own, and the silence between it and the one before it.
pub struct Spaced {
    pub after: Pause,
    pub segment: Segment,
}

/// A sentence of the audio, in samples at the output rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub first_sample: u64,
    pub samples: u64,
    pub capped: bool,
}

/// What became of a passage. Positions are samples at the output rate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    pub samples: u64,
    pub frames: u64,
    pub steps: u64,
    pub capped: bool,
    /// Characters without a sound, each once.
    pub unmapped: String,
    pub clipped_samples: u64,
    pub sentences: Vec<Span>,
    pub marks: Vec<(String, u64)>,
}

/// One passage in the making.
pub struct Assembly {
    encoder: AudioEncoder,
    voice_rate_hz: u32,
    output_rate_hz: u32,
    silences: Silences,
    /// Silences that markup asks for before and behind the text, in milliseconds.
    lead_ms: u32,
    tail_ms: u32,
    end_marks: Vec<String>,
    /// Silences before the segments that have been laid out, in milliseconds.
    gaps_ms: Vec<u32>,
    /// Segments that have been completed.
    completed: usize,
    /// The silence before the next segment has been encoded.
    gap_paid: bool,
    /// Samples taken so far, and where the present sentence began, at the voice's rate.
    position: u64,
    sentence_began: u64,
    account: Account,
    /// The characters of `account.unmapped`.
    unmapped: HashSet<char>,
}

impl Assembly {
    /// # Errors
    /// Those of a sample rate that is not served.
    pub fn new(voice_rate_hz: u32, format: AudioFormat, silences: Silences) -> Result<Self> {
        Ok(Self {
            encoder: AudioEncoder::new(voice_rate_hz, format, None)?,
            voice_rate_hz,
            output_rate_hz: format.sample_rate_hz,
            silences,
            lead_ms: 0,
            tail_ms: 0,
            end_marks: Vec::new(),
            gaps_ms: Vec::new(),
            completed: 0,
            gap_paid: true,
            position: 0,
            sentence_began: 0,
            account: Account::default(),
            unmapped: HashSet::new(),
        })
    }

    /// Lays out a whole text. -> its segments, for the engine; notices stay with the caller
    pub fn lay_out(&mut self, passage: Passage) -> Vec<Segment> {
        (self.lead_ms, self.end_marks) = (passage.lead_ms, passage.end_marks);
        let mut after = Pause::None;
        let mut laid_out = Vec::with_capacity(passage.segments.len());
        for mut segment in passage.segments {
            let pause = std::mem::replace(&mut segment.pause, Pause::None);
            laid_out.push(self.space(Spaced { after: std::mem::replace(&mut after, pause), segment }));
        }
        self.tail_ms = after.duration_ms();
        laid_out
    }

    /// Notes the silence before a segment. -> the segment, for the engine
    pub fn space(&mut self, Spaced { after, segment }: Spaced) -> Segment {
        let gap_ms = match (after, self.silences.sentence_ms) {
            (Pause::None | Pause::Clause | Pause::Break(_), _) | (_, None) => after.duration_ms(),
            (_, Some(silence_ms)) => silence_ms,
        };
        self.gaps_ms.push(gap_ms);
        segment
    }

    /// Samples taken so far, silences included, at the voice's rate.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Seconds of audio so far.
    pub fn audio_s(&self) -> f64 {
        self.position as f64 / f64::from(self.voice_rate_hz)
    }

    /// Encodes `chunk` with the silences around it. -> the bytes that are final
    pub fn take(&mut self, chunk: AudioChunk) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.position == 0 {
            self.silence(self.silences.lead_ms, &mut bytes)?;
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
        Ok(bytes)
    }

    /// Ends the audio. -> the bytes that are left, and the account of all
    pub fn finish(&mut self) -> Result<(Vec<u8>, Account)> {
        let mut bytes = Vec::new();
        self.silence(self.tail_ms, &mut bytes)?;
        let sample = self.output_samples(self.position);
        let end_marks = std::mem::take(&mut self.end_marks);
        self.account.marks.extend(end_marks.into_iter().map(|name| (name, sample)));
        self.silence(self.silences.tail_ms, &mut bytes)?;
        bytes.extend(self.encoder.finish()?);
        self.account.samples = self.encoder.samples();
        self.account.clipped_samples = self.encoder.clipped();
        Ok((bytes, std::mem::take(&mut self.account)))
    }

    /// Adds characters without a sound to the account.
    pub fn note_unmapped(&mut self, characters: impl Iterator<Item = char>) {
        let new = characters.filter(|c| self.unmapped.insert(*c));
        self.account.unmapped.extend(new);
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
        self.account.frames += sentence.ending.frames as u64;
        self.account.steps += sentence.ending.steps as u64;
        self.account.capped |= capped;
        self.note_unmapped(sentence.segment.unmapped.iter().copied());
        let symbols = sentence.segment.ids.len().max(1) as u64;
        for Mark { name, symbol } in &sentence.segment.marks {
            let within = (self.position - self.sentence_began) * *symbol as u64 / symbols;
            let sample = self.output_samples(self.sentence_began + within);
            self.account.marks.push((name.clone(), sample));
        }
        let text = sentence.segment.text.clone();
        self.account.sentences.push(Span { text, first_sample: first, samples: end - first, capped });
    }

    /// Where a sample of the voice's rate lies at the output rate.
    fn output_samples(&self, position: u64) -> u64 {
        let (from, to) = (u64::from(self.voice_rate_hz), u64::from(self.output_rate_hz));
        (position * to + from / 2) / from
    }
}
