//! SSML in, a [`Passage`] out: the subset of SSML 1.1 that `document` lists.
//!
//! `xml` reads tags with their places, `document` knows the elements, `values`, `say_as` and `calendar` what is written
//! in them, `blocks` gathers text between two pauses or turns of delivery. Each block goes the way of plain text from
//! there.
//! Never reads a DTD, and takes time linear in the length of the document.

mod blocks;
mod calendar;
mod document;
mod say_as;
mod values;
mod xml;

use std::vec::IntoIter;

use blocks::{Block, mark_number};
pub use values::MAX_BREAK_MS;

use super::segment::{Pause, end_of_sentence, sentences};
use super::{Collector, Frontend, Mark, Passage, Reading, check_length, clean};
use crate::error::{Error, Result};

impl Frontend {
    /// The passage that `ssml` describes, its text read as `reading` says.
    ///
    /// # Errors
    /// `InvalidRequest`, with line and column where there is one: for XML that is malformed, holds a DTD or goes too
    /// deep, for a value that is not served, and as [`Frontend::segments`].
    pub fn ssml(&self, ssml: &str, reading: &Reading) -> Result<Passage> {
        check_length(ssml)?;
        self.check_reading(reading)?;
        let document = document::read(ssml, reading, self.speller.is_ipa())?;
        let mut speech = Speech { lead_ms: document.blocks.lead_ms, ..Speech::default() };
        let end_marks = document.blocks.marks;
        let mut blocks = document.blocks.done.into_iter().peekable();
        while let Some(block) = blocks.next() {
            let next = blocks.peek().and_then(|next| next.text.split_whitespace().next());
            self.block(block, next, reading, &mut speech);
        }
        let mut marks: Vec<String> = speech.marks;
        marks.extend(end_marks);
        let segments = speech.collector.finish()?;
        let pauses = segments.iter().map(|segment| segment.pause.duration_ms()).chain([speech.lead_ms]);
        if let Some(ms) = pauses.max().filter(|ms| *ms > MAX_BREAK_MS) {
            return Err(Error::InvalidRequest(format!(
                "SSML: breaks of {ms} ms in all between two words, the limit is {MAX_BREAK_MS}"
            )));
        }
        Ok(Passage { segments, lead_ms: speech.lead_ms, end_marks: marks, notices: document.notices })
    }

    fn block(&self, block: Block, next: Option<&str>, reading: &Reading, speech: &mut Speech) {
        let cleaned = clean::clean(
            &block.text,
            reading,
            clean::Notation { html: false, phonemes: self.speller.is_ipa() },
        );
        let mut phonemes = cleaned.phonemes.into_iter();
        let mut found = sentences(&cleaned.text);
        if let Some((last, pause)) = found.last_mut() {
            *pause = end(block.end, last, next);
        }
        let mut marks: Vec<Option<String>> = block.marks.into_iter().map(Some).collect();
        for (sentence, pause) in found {
            let first = speech.collector.segments.len();
            let places =
                self.marked_sentence(&sentence, reading, pause, &mut phonemes, &mut speech.collector);
            let segments = speech.collector.segments.get_mut(first..).unwrap_or_default();
            if segments.is_empty()
                && first == 0
                && let Pause::Break(ms) = pause
            {
                speech.lead_ms = speech.lead_ms.saturating_add(ms);
            }
            for segment in segments.iter_mut() {
                segment.prosody = block.prosody;
            }
            let named = places
                .into_iter()
                .filter_map(|(number, share)| Some((marks.get_mut(number).and_then(Option::take)?, share)));
            let early = speech.marks.drain(..).map(|name| (name, 0.0)).chain(named).collect();
            speech.marks = place(early, segments);
        }
        // What markup of the text has swallowed is not lost.
        speech.marks.extend(marks.into_iter().flatten());
    }

    /// Spells a sentence without its marks. -> the marks' numbers, and the share of the characters before each
    fn marked_sentence(
        &self,
        sentence: &str,
        reading: &Reading,
        pause: Pause,
        phonemes: &mut IntoIter<String>,
        out: &mut Collector,
    ) -> Vec<(usize, f32)> {
        let mut plain = String::with_capacity(sentence.len());
        let mut places = Vec::new();
        for c in sentence.chars() {
            match mark_number(c) {
                Some(number) => places.push((number, plain.len())),
                None => plain.push(c),
            }
        }
        self.sentence(&plain, reading, pause, phonemes, out);
        let bytes = plain.len().max(1) as f32;
        places.into_iter().map(|(number, at)| (number, at as f32 / bytes)).collect()
    }
}

/// What has been read.
#[derive(Debug, Default)]
struct Speech {
    collector: Collector,
    /// Breaks before the first segment, in milliseconds.
    lead_ms: u32,
    /// Marks that no segment has followed yet.
    marks: Vec<String>,
}

/// The pause behind a block that ends with the sentence `last` before the word `next`.
fn end(asked: Option<Pause>, last: &str, next: Option<&str>) -> Pause {
    let token = last.split_whitespace().next_back().unwrap_or_default();
    let token: String = token.chars().filter(|c| mark_number(*c).is_none()).collect();
    match asked {
        Some(Pause::Break(ms)) => Pause::Break(ms),
        Some(asked) => end_of_sentence(&token, None).map_or(asked, |natural| natural.and(asked)),
        None if token.ends_with([',', ';', ':', '—']) => Pause::Clause,
        None => end_of_sentence(&token, next).unwrap_or(Pause::None),
    }
}

/// Puts marks, each with the share of the symbols before it, into `segments`. -> the marks, where there is none
fn place(marks: Vec<(String, f32)>, segments: &mut [super::Segment]) -> Vec<String> {
    let total: usize = segments.iter().map(|segment| segment.ids.len()).sum();
    if total == 0 {
        return marks.into_iter().map(|(name, _)| name).collect();
    }
    for (name, share) in marks {
        let mut before = (share * total as f32).round() as usize;
        let last = segments.len() - 1;
        for (index, segment) in segments.iter_mut().enumerate() {
            if before < segment.ids.len() || index == last {
                segment.marks.push(Mark { name, symbol: before.min(segment.ids.len()) });
                break;
            }
            before -= segment.ids.len();
        }
    }
    Vec::new()
}
