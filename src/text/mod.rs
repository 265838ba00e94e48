//! Text in, segments of symbol ids out, each short enough to be spoken in one go.
//!
//! `clean` takes typography and markup away, `segment` finds the sentences, `normalize` writes
//! numbers, signs and abbreviations as words, `g2p` gives an IPA voice its phonemes, and `symbols`
//! or `spm` turn the result into ids. A sentence over the voice's budget is split at a clause mark,
//! else between words, else inside a word.
//!
//! Never drops text silently: what a voice cannot say is in [`Segment::unmapped`]. Time is linear
//! in the length of the text.

mod abbreviations;
pub mod arpabet;
mod clean;
mod espeak;
mod forms;
mod function_words;
mod g2p;
mod heteronyms;
mod html;
mod incremental;
mod ipa;
mod letters;
pub mod lexicon;
mod markdown;
mod normalize;
mod numbers;
mod passage;
mod reading;
mod segment;
mod signs;
mod speller;
pub mod spm;
mod ssml;
mod symbols;

pub use g2p::Source;
pub use incremental::IncrementalText;
pub use lexicon::Lexicon;
pub use passage::{Mark, Passage, Prosody};
pub use reading::{DateOrder, Markup, Reading};
pub use segment::Pause;
pub use ssml::MAX_BREAK_MS;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::voice::config::AcousticConfig;
use crate::voice::{MIN_SEGMENT_SYMBOLS, SymbolTable, Voice};
use speller::{Atom, Speller};

/// The longest text of one request, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// The most that lexicons may say in one text, in bytes of UTF-8: a short word can have a long entry.
pub const MAX_LEXICON_SPEECH_BYTES: usize = MAX_TEXT_BYTES;

/// The most characters that one [`Segment`] reports as unmapped.
pub const MAX_UNMAPPED: usize = 64;

/// One piece of speech.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The words that are spoken, normalised.
    pub text: String,
    /// The symbols: IPA, or the characters that the tokenizer read.
    pub spoken: String,
    /// What the encoder takes: start and end included, `Voice::segment_symbols` at most.
    pub ids: Vec<i64>,
    /// Characters of this piece (and of unspeakable pieces beside it) that the voice has no symbol for, as they
    /// were written: each once, in order of appearance, the first [`MAX_UNMAPPED`] of them.
    pub unmapped: Vec<char>,
    /// The silence that should follow.
    pub pause: Pause,
    pub prosody: Prosody,
    /// Named places in it, in order.
    pub marks: Vec<Mark>,
}

/// The text front-end of one voice.
#[derive(Debug)]
pub struct Frontend {
    speller: Speller,
    /// Ids per segment at most, start and end included.
    budget: usize,
    lexicon: Option<Arc<Lexicon>>,
}

impl Frontend {
    /// The front-end of `voice`. An IPA voice parses the English lexicons here.
    ///
    /// # Errors
    /// As [`Frontend::with_symbols`].
    pub fn load(voice: &Voice) -> Result<Self> {
        Self::with_symbols(&voice.symbols, &voice.config, voice.segment_symbols, &voice.name)
    }

    /// A front-end for `symbols` alone: segments of `segment_symbols` ids at most (never more than
    /// `config.max_text_positions`). `name` is the voice that an error names.
    ///
    /// # Errors
    /// `InvalidVoice` when the symbol table is malformed, its ids exceed `config.vocab_size`, or the
    /// budget is too small for a word.
    pub fn with_symbols(
        symbols: &SymbolTable,
        config: &AcousticConfig,
        segment_symbols: usize,
        name: &str,
    ) -> Result<Self> {
        let budget = segment_symbols.min(config.max_text_positions);
        if budget < MIN_SEGMENT_SYMBOLS {
            let needed = MIN_SEGMENT_SYMBOLS;
            return Err(Error::voice(
                name,
                format!("segments of {budget} symbols, at least {needed} are needed"),
            ));
        }
        Ok(Self { speller: Speller::load(symbols, config, name)?, budget, lexicon: None })
    }

    /// Lets `lexicon` say how its words sound in every text; that of a request comes before it.
    pub fn with_lexicon(mut self, lexicon: Arc<Lexicon>) -> Self {
        let unusable = self.unusable(&lexicon);
        if !unusable.is_empty() {
            let named = first_of(&unusable);
            tracing::warn!("this voice reads letters, it cannot use the lexicon's phonemes for {named}");
        }
        self.lexicon = Some(lexicon);
        self
    }

    /// Whether this voice can read as `reading` says.
    ///
    /// # Errors
    /// `InvalidRequest` when the lexicon gives phonemes and the voice spells in characters: it takes aliases alone.
    pub fn check_reading(&self, reading: &Reading) -> Result<()> {
        let unusable = reading.lexicon.as_deref().map(|lexicon| self.unusable(lexicon)).unwrap_or_default();
        if unusable.is_empty() {
            return Ok(());
        }
        Err(Error::InvalidRequest(format!(
            "this voice reads letters, it cannot use the phonemes for {}: give text that is read instead",
            first_of(&unusable)
        )))
    }

    /// The graphemes of `lexicon` that this voice cannot use, and so reads as if they were not in it.
    pub fn unusable<'a>(&self, lexicon: &'a Lexicon) -> Vec<&'a str> {
        if self.speller.is_ipa() { Vec::new() } else { lexicon.phonemic() }
    }

    /// A text as people write it, cleaned.
    fn clean(&self, text: &str, reading: &Reading) -> clean::Cleaned {
        clean::clean(text, reading, clean::Notation { html: true, phonemes: self.speller.is_ipa() })
    }

    /// The segments of `text`, in order, read as `reading` says.
    ///
    /// # Errors
    /// `InvalidRequest` when the text is over [`MAX_TEXT_BYTES`] or holds nothing that the voice can say, and as
    /// [`Self::check_reading`].
    pub fn segments(&self, text: &str, reading: &Reading) -> Result<Vec<Segment>> {
        check_length(text)?;
        self.check_reading(reading)?;
        let cleaned = self.clean(text, reading);
        let mut phonemes = cleaned.phonemes.into_iter();
        let mut out = Collector::default();
        for (sentence, pause) in segment::sentences(&cleaned.text) {
            self.sentence(&sentence, reading, pause, &mut phonemes, &mut out);
        }
        out.finish()
    }

    fn sentence(
        &self,
        sentence: &str,
        reading: &Reading,
        pause: Pause,
        phonemes: &mut std::vec::IntoIter<String>,
        out: &mut Collector,
    ) {
        if let Some(atoms) = self.spelled(sentence, reading, phonemes, out) {
            self.pack(atoms, pause, out);
        }
    }

    /// The words of `sentence`, spelled; `None` once lexicons had too much to say.
    fn spelled(
        &self,
        sentence: &str,
        reading: &Reading,
        phonemes: &mut std::vec::IntoIter<String>,
        out: &mut Collector,
    ) -> Option<Vec<Atom>> {
        if out.overflowed {
            return None;
        }
        let lexicons: Vec<&Lexicon> =
            [&reading.lexicon, &self.lexicon].into_iter().filter_map(Option::as_deref).collect();
        let applied =
            lexicon::apply(sentence, &lexicons, self.speller.is_ipa(), phonemes, &mut out.lexicon_room);
        let Some((sentence, given)) = applied else {
            out.overflowed = true;
            return None;
        };
        let verbal = normalize::verbalize(&sentence, reading);
        report(&mut out.unmapped, verbal.unmapped);
        Some(self.speller.atoms(&verbal.text, given))
    }

    /// All sentences of `text` in one segment, as a recording holds them. It may be longer than what is spoken in one go.
    ///
    /// # Errors
    /// As [`Self::segments`].
    pub fn one_segment(&self, text: &str, reading: &Reading) -> Result<Segment> {
        check_length(text)?;
        self.check_reading(reading)?;
        let cleaned = self.clean(text, reading);
        let mut phonemes = cleaned.phonemes.into_iter();
        let (mut out, mut atoms) = (Collector::default(), Vec::new());
        for (sentence, _) in segment::sentences(&cleaned.text) {
            atoms.extend(self.spelled(&sentence, reading, &mut phonemes, &mut out).unwrap_or_default());
        }
        let spelled = self.speller.segment(&atoms, Pause::Sentence, &mut out.unmapped);
        spelled.into_iter().for_each(|segment| out.push(segment));
        out.finish()?.into_iter().next().ok_or_else(|| Error::Internal("no segment".into()))
    }

    /// The segments of text that is given as IPA already; marks of punctuation end them.
    ///
    /// # Errors
    /// As [`Frontend::segments`], and when the voice does not spell in IPA.
    pub fn phonemes(&self, ipa: &str) -> Result<Vec<Segment>> {
        check_length(ipa)?;
        let mut out = Collector::default();
        for line in ipa.lines() {
            for sentence in line.split_inclusive(['.', '!', '?']) {
                let atoms = self.speller.ipa_atoms(sentence)?;
                self.pack(atoms, Pause::Sentence, &mut out);
            }
        }
        out.finish()
    }

    /// The phonemes of one word and where they came from; `None` for voices that spell in characters.
    pub fn pronounce(&self, word: &str) -> Option<(String, Source)> {
        let own = self.lexicon.as_ref().filter(|_| self.speller.is_ipa()).and_then(|own| own.find(word));
        match own {
            Some(lexicon::Pronunciation::Phonemes(ipa)) => Some((ipa.clone(), Source::User)),
            _ => self.speller.pronounce(word),
        }
    }

    /// Joins atoms into segments within the budget, at the latest clause mark that fits.
    fn pack(&self, atoms: Vec<Atom>, pause: Pause, out: &mut Collector) {
        let room = self.budget - self.speller.fixed_ids();
        let mut line: Vec<Atom> = Vec::new();
        let mut used = 0;
        let mut queue: std::collections::VecDeque<Atom> = atoms.into();
        while let Some(atom) = queue.pop_front() {
            let joint = if line.is_empty() { 0 } else { self.speller.joint_ids() };
            if used + joint + atom.ids <= room {
                used += joint + atom.ids;
                line.push(atom);
                continue;
            }
            if line.is_empty() {
                for part in self.speller.halves(atom).into_iter().rev() {
                    queue.push_front(part);
                }
                continue;
            }
            queue.push_front(atom);
            let clause = line.iter().rposition(Atom::ends_clause).map_or(line.len(), |last| last + 1);
            for atom in line.split_off(clause).into_iter().rev() {
                queue.push_front(atom);
            }
            let pause = if line.last().is_some_and(Atom::ends_clause) { Pause::Clause } else { Pause::None };
            self.emit(std::mem::take(&mut line), pause, out);
            used = 0;
        }
        self.emit(line, pause, out);
    }

    fn emit(&self, atoms: Vec<Atom>, pause: Pause, out: &mut Collector) {
        let Some(segment) = self.speller.segment(&atoms, pause, &mut out.unmapped) else {
            out.skipped(pause);
            return;
        };
        if segment.ids.len() > self.budget && atoms.len() > 1 {
            // Joined, a tokenizer may read two words longer than each alone.
            let mut head = atoms;
            let tail = head.split_off(head.len() / 2);
            self.emit(head, Pause::None, out);
            return self.emit(tail, pause, out);
        }
        out.push(segment);
    }
}

/// Adds those of `characters` that are not yet in the report `unmapped`.
fn report(unmapped: &mut Vec<char>, characters: impl IntoIterator<Item = char>) {
    for c in characters {
        if unmapped.len() == MAX_UNMAPPED {
            break;
        }
        if !unmapped.contains(&c) {
            unmapped.push(c);
        }
    }
}

/// Some of `graphemes`, for a message.
fn first_of(graphemes: &[&str]) -> String {
    const NAMED: usize = 5;
    let named: Vec<String> = graphemes.iter().take(NAMED).map(|grapheme| format!("`{grapheme}`")).collect();
    let others = match graphemes.len().saturating_sub(NAMED) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    format!("{}{others}", named.join(", "))
}

fn check_length(text: &str) -> Result<()> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(Error::InvalidRequest(format!(
            "the text has {} bytes, the limit is {MAX_TEXT_BYTES}: send it in parts",
            text.len()
        )));
    }
    Ok(())
}

#[derive(Debug)]
struct Collector {
    segments: Vec<Segment>,
    /// Reported with the next segment.
    unmapped: Vec<char>,
    /// Bytes that lexicons may still say.
    lexicon_room: usize,
    /// They had more to say: what follows is not read, and the text is refused.
    overflowed: bool,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            segments: Vec::new(),
            unmapped: Vec::new(),
            lexicon_room: MAX_LEXICON_SPEECH_BYTES,
            overflowed: false,
        }
    }
}

impl Collector {
    fn check(&self) -> Result<()> {
        if self.overflowed {
            return Err(Error::InvalidRequest(format!(
                "the lexicon's entries for this text have more than {MAX_LEXICON_SPEECH_BYTES} bytes in all: send \
                 it in parts"
            )));
        }
        Ok(())
    }

    fn push(&mut self, mut segment: Segment) {
        segment.unmapped = std::mem::take(&mut self.unmapped);
        self.segments.push(segment);
    }

    /// A piece without speech lengthens the pause before it.
    fn skipped(&mut self, pause: Pause) {
        if let Some(last) = self.segments.last_mut() {
            last.pause = last.pause.and(pause);
        }
    }

    fn finish(mut self) -> Result<Vec<Segment>> {
        self.check()?;
        match self.segments.last_mut() {
            Some(last) => report(&mut last.unmapped, self.unmapped),
            None if self.unmapped.is_empty() => {
                return Err(Error::InvalidRequest("the text holds nothing to speak".into()));
            }
            None => {
                let lacking: String = self.unmapped.iter().take(20).collect();
                return Err(Error::InvalidRequest(format!(
                    "the text holds nothing that this voice can speak: it has no symbols for {lacking:?}"
                )));
            }
        }
        Ok(self.segments)
    }
}
