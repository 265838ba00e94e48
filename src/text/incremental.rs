//! Pieces of a text that is still being written in, segments out as soon as they are certain.
//!
//! A sentence is certain once no text to come could lengthen it; then its segments are those that the whole text
//! gives. Pieces may end anywhere, inside a word or a number too. Time is linear in the length of the text. Never
//! speaks a word before its end is seen.

use super::html::MAX_TAG_CHARACTERS;
use super::segment::{Pause, end_of_sentence, needs_whole_word, sentences};
use super::{Collector, Frontend, Markup, Reading, Segment};
use crate::error::Result;

/// A link's target holds no cut for so many bytes.
const MAX_TARGET_BYTES: usize = 2048;

/// How a stretch of text ended that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Sentence,
    Ellipsis,
    Line,
    Clause,
}

impl Cut {
    /// What stands for the text before the cut when the text behind it is cleaned and split.
    fn stand_in(self) -> &'static str {
        match self {
            Self::Sentence => "ok.",
            Self::Ellipsis => "ok...",
            Self::Line => "ok",
            Self::Clause => "ok,",
        }
    }
}

/// What the scanner is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// `[[...]]`
    Phonemes,
    /// `[...`: what follows may turn it into a link.
    Label,
    /// `](...`, from this byte on.
    Target(usize),
    /// `<...`, from this byte on: it may turn out to be a tag.
    Tag(usize),
}

/// A text that comes in pieces.
#[derive(Debug)]
pub struct IncrementalText {
    reading: Reading,
    whole_sentences: bool,
    /// Text that has been cut off already, up to `start`, and text that has not.
    pending: String,
    start: usize,
    /// Bytes of `pending` that have been looked at.
    scanned: usize,
    previous: char,
    /// Where the present word of `pending` begins, if there is one.
    word: Option<usize>,
    /// There is no word between `start` and `scanned`.
    blank: bool,
    inside: Inside,
    /// The end of a word that may end a sentence, and the word: the next one decides.
    held: Option<(usize, String)>,
    /// How the text before `start` ended; `None` at the beginning.
    cut: Option<Cut>,
    /// The last sentence before `start` had nothing to speak.
    silent: bool,
    /// Its first segment is the last one that was given out, if one was.
    collected: Collector,
    given: usize,
}

impl IncrementalText {
    /// The first speech is the first clause, or with `whole_sentences` the first sentence.
    pub fn new(reading: Reading, whole_sentences: bool) -> Self {
        Self {
            reading,
            whole_sentences,
            pending: String::new(),
            start: 0,
            scanned: 0,
            previous: ' ',
            word: None,
            blank: true,
            inside: Inside::Nothing,
            held: None,
            cut: None,
            silent: false,
            collected: Collector::default(),
            given: 0,
        }
    }

    /// Takes the next piece of text. -> the segments that have become certain, each with the pause between it and
    /// the one before; they have none of their own, since that is not known yet
    ///
    /// # Errors
    /// `InvalidRequest` when lexicons say more than [`super::MAX_LEXICON_SPEECH_BYTES`].
    pub fn push(&mut self, frontend: &Frontend, piece: &str) -> Result<Vec<(Pause, Segment)>> {
        self.pending.push_str(piece);
        while let Some(c) = self.pending.get(self.scanned..).and_then(|rest| rest.chars().next()) {
            self.scan(frontend, c);
            self.scanned += c.len_utf8();
            self.previous = c;
        }
        self.pending.drain(..self.start);
        self.scanned -= self.start;
        self.word = self.word.map(|word| word - self.start);
        self.held = self.held.take().map(|(end, word)| (end - self.start, word));
        if let Inside::Target(from) | Inside::Tag(from) = &mut self.inside {
            *from = from.saturating_sub(self.start);
        }
        self.start = 0;
        self.collected.check()?;
        Ok(self.new_segments())
    }

    /// Ends the text. -> the segments that are left, as [`Self::push`] gives them, and the characters that the voice
    /// has no symbol for and that belong to no segment
    ///
    /// # Errors
    /// As [`Frontend::segments`], when the whole text held nothing to speak.
    pub fn finish(&mut self, frontend: &Frontend) -> Result<(Vec<(Pause, Segment)>, String)> {
        if !self.blank {
            self.cut_off(frontend, self.pending.len(), Cut::Line);
        }
        self.collected.check()?;
        if self.collected.segments.is_empty() {
            std::mem::take(&mut self.collected).finish()?;
        }
        let unmapped = std::mem::take(&mut self.collected.unmapped).into_iter().collect();
        Ok((self.new_segments(), unmapped))
    }

    /// Looks at the character at `scanned`.
    fn scan(&mut self, frontend: &Frontend, c: char) {
        let at = self.scanned;
        self.inside = match (self.inside, self.previous, c) {
            (Inside::Phonemes, ']', ']') => Inside::Nothing,
            (Inside::Phonemes, ..) => Inside::Phonemes,
            (_, '[', '[') => Inside::Phonemes,
            (Inside::Label, ']', '(') => Inside::Target(at),
            (Inside::Target(from), ..) if !matches!(c, ')' | ' ') && at < from + MAX_TARGET_BYTES => {
                Inside::Target(from)
            }
            (Inside::Tag(from), ..) if c != '>' && at < from + 4 * MAX_TAG_CHARACTERS => Inside::Tag(from),
            (_, _, '<') if self.reading.markup == Markup::Strip => Inside::Tag(at),
            (_, _, '[') => Inside::Label,
            (Inside::Label, previous, _) if previous != ']' => Inside::Label,
            _ => Inside::Nothing,
        };
        if self.inside == Inside::Phonemes {
            self.word.get_or_insert(at);
            self.blank = false;
        } else if is_line_break(c) {
            self.inside = Inside::Nothing;
            self.end_line(frontend, at);
        } else if c.is_whitespace() {
            self.end_word(frontend, at);
        } else {
            let word = *self.word.get_or_insert(at);
            self.blank = false;
            let early = self.held.as_ref().is_some_and(|(_, token)| !needs_whole_word(token));
            if early && c.is_alphanumeric() {
                self.decide(frontend, word, at + c.len_utf8());
            }
        }
    }

    /// The word that ends at `at` may end a sentence or a clause.
    fn end_word(&mut self, frontend: &Frontend, at: usize) {
        let Some(word) = self.word.take() else { return };
        self.decide(frontend, word, at);
        if self.has_markup(word, at) {
            return;
        }
        let Some(token) = self.cleaned(frontend, word, at).pop() else { return };
        if self.inside != Inside::Nothing {
            return;
        }
        // A word, a name, a number, a dash: whatever can make a difference.
        let futures = [None, Some("a"), Some("Zq"), Some("The"), Some("1"), Some("-")];
        let [first, others @ ..] = futures.map(|next| end_of_sentence(&token, next));
        match first {
            _ if others.iter().any(|other| *other != first) => self.held = Some((at, token)),
            Some(Pause::Ellipsis) => self.cut_off(frontend, at, Cut::Ellipsis),
            Some(_) => self.cut_off(frontend, at, Cut::Sentence),
            None if self.begins_here() && ends_clause(&token) => self.cut_off(frontend, at, Cut::Clause),
            None => {}
        }
    }

    /// The line ends at `at`, and with it its sentence.
    fn end_line(&mut self, frontend: &Frontend, at: usize) {
        let word = self.word.take();
        if let Some(word) = word {
            self.decide(frontend, word, at);
        }
        let last = word.and_then(|word| self.cleaned(frontend, word, at).pop());
        let last = last.or(self.held.take().map(|(_, token)| token));
        if self.blank {
            return;
        }
        let ellipsis = last.is_some_and(|token| end_of_sentence(&token, None) == Some(Pause::Ellipsis));
        self.cut_off(frontend, at, if ellipsis { Cut::Ellipsis } else { Cut::Line });
    }

    /// The word between `word` and `end` decides about the one that is held.
    fn decide(&mut self, frontend: &Frontend, word: usize, end: usize) {
        let Some((cut, token)) = self.held.take() else { return };
        if self.has_markup(word, end) {
            return;
        }
        let Some(next) = self.cleaned(frontend, word, end).into_iter().next() else {
            self.held = Some((cut, token));
            return;
        };
        match end_of_sentence(&token, Some(&next)) {
            Some(Pause::Ellipsis) => self.cut_off(frontend, cut, Cut::Ellipsis),
            Some(_) => self.cut_off(frontend, cut, Cut::Sentence),
            None => return,
        }
        self.blank = false;
    }

    /// The words of `pending` between two bytes, cleaned.
    fn cleaned(&self, frontend: &Frontend, from: usize, to: usize) -> Vec<String> {
        let raw = self.pending.get(from..to).unwrap_or_default();
        let cleaned = frontend.clean(raw, &self.reading);
        cleaned.text.split_whitespace().map(str::to_owned).collect()
    }

    /// A tag or an entity, or a part of one, stands between two bytes. No text is cut there: the words may lie apart.
    fn has_markup(&self, from: usize, to: usize) -> bool {
        let raw = self.pending.get(from..to).unwrap_or_default();
        self.reading.markup == Markup::Strip && raw.contains(['<', '>', '&'])
    }

    fn begins_here(&self) -> bool {
        !self.whole_sentences && self.collected.segments.is_empty()
    }

    /// Spells the text from `start` to `at`, which ended as `cut` says.
    fn cut_off(&mut self, frontend: &Frontend, at: usize, cut: Cut) {
        let before = self.cut.replace(cut);
        let stand_in = before.map_or("", Cut::stand_in);
        let text = self.pending.get(self.start..at).unwrap_or_default();
        let cleaned = frontend.clean(&format!("{stand_in}{text}"), &self.reading);
        (self.start, self.blank, self.held) = (at, true, None);

        let mut phonemes = cleaned.phonemes.into_iter();
        let mut found = sentences(&cleaned.text);
        if cut == Cut::Clause
            && let Some((_, pause)) = found.last_mut()
        {
            *pause = Pause::Clause;
        }
        if before.is_some()
            && let Some((first, pause)) = found.first_mut()
        {
            let rest = first.strip_prefix(stand_in).unwrap_or(first).trim().to_owned();
            self.settle(if rest.is_empty() { *pause } else { Pause::Clause });
            *first = rest;
        }
        let last = found.len().saturating_sub(1);
        for (index, (sentence, pause)) in found.iter().enumerate().filter(|(_, (text, _))| !text.is_empty()) {
            self.spell(frontend, sentence, *pause, index == last, &mut phonemes);
        }
    }

    /// Spells a sentence; the pause behind the `last` one is not known yet.
    fn spell(
        &mut self,
        frontend: &Frontend,
        sentence: &str,
        pause: Pause,
        last: bool,
        phonemes: &mut std::vec::IntoIter<String>,
    ) {
        let segments = self.collected.segments.len();
        let before = self.collected.segments.last().map(|segment| segment.pause);
        frontend.sentence(sentence, &self.reading, pause, phonemes, &mut self.collected);
        self.silent = self.collected.segments.len() == segments;
        if self.silent
            && last
            && let Some(segment) = self.collected.segments.last_mut()
        {
            segment.pause = before.unwrap_or(pause);
        }
    }

    /// The pause behind the last sentence has become known.
    fn settle(&mut self, pause: Pause) {
        if self.silent {
            self.collected.skipped(pause);
        } else if let Some(last) = self.collected.segments.last_mut() {
            last.pause = pause;
        }
    }

    /// The segments that have not been given out.
    fn new_segments(&mut self) -> Vec<(Pause, Segment)> {
        let segments = &mut self.collected.segments;
        let after = |index: usize| match index.checked_sub(1).and_then(|before| segments.get(before)) {
            Some(before) => before.pause,
            None => Pause::None,
        };
        let given: Vec<_> = segments
            .iter()
            .enumerate()
            .skip(self.given)
            .map(|(index, segment)| (after(index), Segment { pause: Pause::None, ..segment.clone() }))
            .collect();
        segments.drain(..segments.len().saturating_sub(1));
        self.given = segments.len();
        given
    }
}

fn is_line_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn ends_clause(token: &str) -> bool {
    token.trim_end_matches(['"', '\'', ')', ']', '}', '*', '_', '`']).ends_with([',', ';', ':', '—'])
}
