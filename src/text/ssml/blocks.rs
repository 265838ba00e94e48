//! Text, words, pauses, turns of delivery and marks in, in reading order; blocks out.
//!
//! A block is what is said in one way without a pause that was asked for; sentences are found inside it later. Never
//! holds a block without a character.

use super::values::Break;
use super::xml::is_space;
use crate::text::segment::end_of_sentence;
use crate::text::{Pause, Prosody};

/// Marks of one document at most: each of a block has a character of its own.
pub const MAX_MARKS: usize = 65_000;
/// The first of those characters, for private use (Unicode plane 15).
const FIRST_MARK: u32 = 0xf_0000;

/// A stretch of text that is delivered in one way.
#[derive(Debug, Default)]
pub struct Block {
    /// As a person would write it, on one line, with a character for each mark, which [`mark_number`] knows.
    pub text: String,
    pub marks: Vec<String>,
    pub prosody: Prosody,
    /// The pause behind it; `None` leaves it to the punctuation.
    pub end: Option<Pause>,
}

/// Which mark of its block `c` stands for.
pub fn mark_number(c: char) -> Option<usize> {
    let number = usize::try_from(u32::from(c).checked_sub(FIRST_MARK)?).ok()?;
    (number < MAX_MARKS).then_some(number)
}

impl Block {
    fn mark(&mut self, name: String) {
        let number =
            u32::try_from(self.marks.len()).ok().and_then(|number| char::from_u32(FIRST_MARK + number));
        self.text.extend(number);
        self.marks.push(name);
    }
}

/// The blocks of a document in the making.
#[derive(Debug, Default)]
pub struct Blocks {
    pub done: Vec<Block>,
    /// Breaks before the first block, in milliseconds.
    pub lead_ms: u32,
    /// Marks that come before the next word.
    pub marks: Vec<String>,
    block: Block,
    space_due: bool,
    /// A space comes before the next letter or digit.
    word_ended: bool,
}

impl Blocks {
    pub fn prosody(&self) -> Prosody {
        self.block.prosody
    }

    /// Takes text; runs of space are one.
    pub fn text(&mut self, text: &str) {
        for c in text.chars() {
            if is_space(c) {
                self.space_due = true;
            } else if self.closes_previous(c) {
                if let Some(last) = self.done.last_mut() {
                    last.text.push(c);
                }
            } else {
                self.push(c);
            }
        }
    }

    /// Takes what is a word or several of its own.
    pub fn word(&mut self, words: &str) {
        self.word_ended = true;
        self.text(words);
        self.word_ended = true;
    }

    /// The end of a sentence or a paragraph, whatever its last mark.
    pub fn boundary(&mut self, pause: Pause) {
        if !self.block.text.is_empty() {
            self.end_block(None);
        }
        if let Some(last) = self.done.last_mut() {
            let closed = last.text.trim_end_matches(['"', '\'', ')', ']', '”', '’']);
            if last.end.is_none() && !closed.ends_with(['.', '!', '?', '…']) {
                last.text.push('.');
            }
            last.end = Some(last.end.map_or(pause, |end| end.and(pause)));
        }
        self.space_due = true;
    }

    /// A break.
    pub fn pause(&mut self, asked: Break) {
        let pause = match asked {
            Break::Lasting(ms) => Pause::Break(ms),
            Break::Prevented => Pause::Break(0),
        };
        let last = self.block.text.split_whitespace().next_back();
        if asked == Break::Prevented && last.is_some_and(|last| end_of_sentence(last, None).is_none()) {
            // Where there would be no pause, there is none to prevent.
            return;
        }
        if !self.block.text.is_empty() {
            self.end_block(None);
        }
        match self.done.last_mut() {
            Some(last) => {
                self.marks.drain(..).for_each(|mark| last.mark(mark));
                last.end = Some(last.end.map_or(pause, |end| end.and(pause)));
            }
            None => self.lead_ms = self.lead_ms.saturating_add(pause.duration_ms()),
        }
        self.space_due = true;
    }

    /// What comes next is delivered as `prosody` says.
    pub fn turn(&mut self, prosody: Prosody) {
        if prosody != self.block.prosody && !self.block.text.is_empty() {
            self.end_block(None);
        }
        self.block.prosody = prosody;
    }

    /// The end of the document.
    pub fn end(&mut self) {
        if !self.block.text.is_empty() {
            self.end_block(Some(Pause::Sentence));
        }
    }

    fn push(&mut self, c: char) {
        let ended = std::mem::take(&mut self.word_ended);
        let due = std::mem::take(&mut self.space_due);
        let joins = self.block.text.ends_with(char::is_alphanumeric) || self.block.text.ends_with(']');
        if !self.block.text.is_empty() && (due || (ended && joins && (c.is_alphanumeric() || c == '['))) {
            self.block.text.push(' ');
        }
        // Between two words, where they come between no word and its mark.
        if self.block.text.is_empty() || self.block.text.ends_with(' ') {
            self.marks.drain(..).for_each(|mark| self.block.mark(mark));
        }
        self.block.text.push(if mark_number(c).is_some() { char::REPLACEMENT_CHARACTER } else { c });
    }

    /// Whether `c` is the punctuation of a word that a turn has parted from it.
    fn closes_previous(&self, c: char) -> bool {
        let parted = self.done.last().is_some_and(|last| last.end.is_none());
        parted && self.block.text.is_empty() && !self.space_due && ".,;:!?…)]\"'”’".contains(c)
    }

    fn end_block(&mut self, end: Option<Pause>) {
        let next = Block { prosody: self.block.prosody, ..Block::default() };
        let block = std::mem::replace(&mut self.block, next);
        self.done.push(Block { end, ..block });
        self.word_ended = false;
    }
}
