//! IPA characters in, the ids of a voice's symbol table out.
//!
//! Never leaves out a character without naming it.

use std::collections::BTreeMap;

use super::report;
use crate::error::{Error, Result};

/// What stands in for a symbol that a table lacks, in the order in which it is tried.
const STAND_INS: &[(char, &str)] = &[
    ('ɡ', "g"),
    ('g', "ɡ"),
    ('ɝ', "ɜː"),
    ('ɜ', "ɝ"),
    ('ɚ', "əɹ"),
    ('ᵻ', "ɪ"),
    ('ɐ', "ə"),
    ('ɾ', "t"),
    ('r', "ɹ"),
    ('ʔ', "t"),
    ('ᵊ', "ə"),
    ('ɬ', "l"),
    ('ɫ', "l"),
    ('ʤ', "dʒ"),
    ('ʧ', "tʃ"),
    ('y', "iː"),
    ('ø', "ɜː"),
    ('œ', "ɜː"),
    ('ç', "h"),
    ('ʁ', "ɹ"),
    ('…', "."),
    ('’', "'"),
    ('—', ","),
    ('–', ","),
    ('\u{329}', ""),
    ('\u{303}', ""),
    ('ʰ', ""),
    ('\u{361}', ""),
    ('ˑ', "ː"),
];

/// A table of IPA characters with the symbols that open and close a sentence.
#[derive(Debug)]
pub struct IpaSymbols {
    ids: BTreeMap<char, i64>,
    start: i64,
    end: i64,
}

/// A string as a table can say it.
#[derive(Debug, Default)]
pub struct Fitted {
    pub spoken: String,
    pub unmapped: Vec<char>,
}

impl IpaSymbols {
    /// # Errors
    /// `InvalidVoice` when `^` or `$` is missing or an id lies outside `0..vocab_size`.
    pub fn new(ids: BTreeMap<char, i64>, vocab_size: usize, voice: &str) -> Result<Self> {
        let limit = i64::try_from(vocab_size).unwrap_or(i64::MAX);
        if let Some((symbol, id)) = ids.iter().find(|&(_, &id)| id < 0 || id >= limit) {
            return Err(Error::voice(
                voice,
                format!("symbol {symbol:?} has id {id}, the embedding has {vocab_size} rows"),
            ));
        }
        let mark = |c: char| {
            ids.get(&c)
                .copied()
                .ok_or_else(|| Error::voice(voice, format!("the symbol table lacks the sentence mark {c:?}")))
        };
        let (start, end) = (mark('^')?, mark('$')?);
        Ok(Self { ids, start, end })
    }

    /// `ipa` in the characters of this table; stand-ins replace what it lacks, the rest is reported.
    pub fn fit(&self, ipa: &str) -> Fitted {
        let mut fitted = Fitted::default();
        for c in ipa.chars() {
            let c = if c.is_whitespace() { ' ' } else { c };
            if self.says(c) {
                fitted.spoken.push(c);
                continue;
            }
            match STAND_INS.iter().find(|(lacking, _)| *lacking == c) {
                Some((_, stand_in)) if stand_in.chars().all(|c| self.says(c)) => {
                    fitted.spoken.push_str(stand_in)
                }
                _ => report(&mut fitted.unmapped, [c]),
            }
        }
        fitted
    }

    /// Start, the ids of a fitted string, end.
    pub fn ids(&self, fitted: &str) -> Vec<i64> {
        let inner = fitted.chars().filter_map(|c| self.ids.get(&c).copied());
        std::iter::once(self.start).chain(inner).chain(std::iter::once(self.end)).collect()
    }

    fn says(&self, c: char) -> bool {
        !matches!(c, '^' | '$' | '_') && self.ids.contains_key(&c)
    }
}
