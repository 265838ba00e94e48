//! A word as it is typed in, its marks and its neighbours out; a cursor for the shapes inside it.
//!
//! Never looks further than the word needs: a cursor stops at the longest run that its shape allows.

use super::super::DateOrder;

/// Marks that end a word, and what closes quotes, brackets and emphasis behind it.
const TAIL: [char; 14] = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '*', '_', '`'];
const OPEN: [char; 8] = ['(', '[', '{', '"', '\'', '*', '_', '`'];

/// One word and what stands around it.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    pub open: &'a str,
    pub core: &'a str,
    pub tail: &'a str,
}

impl<'a> Part<'a> {
    pub fn of(token: &'a str) -> Self {
        let bare = token.trim_start_matches(OPEN);
        let core = bare.trim_end_matches(TAIL);
        let (open, tail) = (token.len() - bare.len(), core.len());
        Self { open: token.get(..open).unwrap_or_default(), core, tail: bare.get(tail..).unwrap_or_default() }
    }

    /// Core and tail.
    pub fn bare(&self, token: &'a str) -> &'a str {
        token.get(self.open.len()..).unwrap_or_default()
    }
}

/// A word among the words of its sentence.
#[derive(Debug, Clone, Copy)]
pub struct Here<'a> {
    pub tokens: &'a [&'a str],
    pub at: usize,
    pub part: Part<'a>,
    pub date_order: DateOrder,
    /// A double quote has been opened and not closed before this word.
    pub in_quotes: bool,
}

impl<'a> Here<'a> {
    pub fn token(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    /// The word `ahead` places further on.
    pub fn ahead(&self, ahead: usize) -> Option<Part<'a>> {
        self.tokens.get(self.at + ahead).map(|token| Part::of(token))
    }

    /// The word before, when no mark parts it from this one.
    pub fn before(&self) -> Option<Part<'a>> {
        self.before_marked().filter(|part| part.tail.is_empty())
    }

    /// The word before, whatever stands between.
    pub fn before_marked(&self) -> Option<Part<'a>> {
        Some(Part::of(self.tokens.get(self.at.checked_sub(1)?)?))
    }
}

/// How many a number said: units and currencies have a form for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Amount {
    /// No number stands before.
    #[default]
    None,
    One,
    Many,
}

/// What some words are read as.
#[derive(Debug)]
pub struct Said {
    pub words: String,
    /// How many words of the sentence it is, one at least.
    pub taken: usize,
    /// What a unit behind it goes with.
    pub amount: Amount,
}

impl Said {
    pub fn new(words: String, taken: usize) -> Self {
        Self { words, taken, amount: Amount::None }
    }

    pub fn one(words: impl Into<String>) -> Self {
        Self::new(words.into(), 1)
    }
}

/// What is left of a word whose shape is being matched.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a>(pub &'a str);

impl<'a> Cursor<'a> {
    /// The run of digits here, if it has `min` to `max` of them.
    pub fn digits(&mut self, min: usize, max: usize) -> Option<&'a str> {
        let run = self.0.bytes().take(max + 1).take_while(u8::is_ascii_digit).count();
        (min..=max).contains(&run).then_some(())?;
        let (digits, rest) = self.0.split_at_checked(run)?;
        self.0 = rest;
        Some(digits)
    }

    pub fn any(&mut self, of: &[char]) -> Option<char> {
        let c = self.0.chars().next().filter(|c| of.contains(c))?;
        self.0 = self.0.get(c.len_utf8()..)?;
        Some(c)
    }

    pub fn eat(&mut self, literal: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(literal)?;
        Some(())
    }

    pub fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// `digits` as a number, when they are few enough to be one.
pub fn value(digits: &str) -> Option<u32> {
    digits.parse().ok()
}
