//! Pronunciations that a user gives in, what each written word then sounds like out.
//!
//! A lexicon comes as TSV, as PLS (W3C Pronunciation Lexicon 1.0) or as a request's `custom_dictionary`. A
//! grapheme is a word or a phrase; what it maps to is IPA, or an alias: text that is read in its place. Lexicons
//! apply to text as it was written, before numbers and signs become words, so that `K8s` and `C++` can be entries.
//!
//! An exact match wins, then one that ignores case; an entry in capitals alone never takes a function word (`US`
//! leaves `us` alone). An alias is not looked up again. Plurals are entries of their own.
//!
//! Never skips an entry without an error or a notice, and never asks which voice will speak.

mod custom_dictionary;
mod occurrences;
mod pls;
mod tsv;

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use super::clean::{Notation, PHONEMES, clean};
use super::function_words::function_word;
use super::{Reading, arpabet, ipa};
use crate::error::{Error, Result, shortened};

pub use occurrences::{Given, apply};

/// The largest lexicon file.
pub const MAX_LEXICON_BYTES: usize = 8 << 20;
/// The largest `custom_dictionary` of a request.
pub const MAX_CUSTOM_DICTIONARY_BYTES: usize = 64 << 10;
pub const MAX_ENTRIES: usize = 100_000;
pub const MAX_GRAPHEME_CHARACTERS: usize = 64;
pub const MAX_PRONUNCIATION_CHARACTERS: usize = 256;
/// A reason that repeats what was written is cut to this.
const MAX_REASON_BYTES: usize = 1000;
/// Notices beyond these are counted.
const MAX_NOTICES: usize = 16;

/// What a grapheme sounds like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pronunciation {
    /// IPA in espeak's convention.
    Phonemes(String),
    /// Text that is read instead.
    Alias(String),
}

/// Pronunciations by grapheme.
#[derive(Debug, Default)]
pub struct Lexicon {
    entries: HashMap<String, Pronunciation>,
    /// The graphemes by their lower case.
    folded: HashMap<String, String>,
    /// The first characters of graphemes, in lower case.
    initials: HashSet<char>,
    /// Characters of the longest grapheme.
    longest: usize,
    notices: Vec<String>,
    notices_left_out: usize,
}

/// Which of two entries for one grapheme is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duplicate {
    First,
    Last,
}

/// How the text of an entry says a pronunciation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    Ipa,
    Arpabet,
    Alias,
}

impl Lexicon {
    /// Reads the TSV or PLS file at `path`: `.pls` and `.xml` are PLS, `.tsv` and `.txt` TSV, and of other names
    /// PLS begins with `<`.
    ///
    /// # Errors
    /// `Io` when it cannot be read, else as [`Self::parse_tsv`] and [`Self::parse_pls`].
    pub fn load(path: &Path) -> Result<Self> {
        let file = std::fs::File::open(path).map_err(|e| Error::io(path, e))?;
        let mut bytes = Vec::new();
        let limit = MAX_LEXICON_BYTES as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
        let name = path.display().to_string();
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        let is_xml = match extension.as_deref() {
            Some("pls" | "xml") => true,
            Some("tsv" | "txt") => false,
            _ => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii_start().starts_with(b"<"),
        };
        if is_xml { Self::parse_pls(&bytes, &name) } else { Self::parse_tsv(&bytes, &name) }
    }

    /// Lines of `grapheme<TAB>pronunciation[<TAB>ipa|x-arpabet|alias]`, IPA where nothing is said; lines that
    /// begin with `#` and blank ones are skipped. Of two entries for a grapheme the last is taken, with a notice.
    ///
    /// # Errors
    /// `InvalidRequest` with `name`, line, column (in characters, from 1), the value and the rule it breaks.
    pub fn parse_tsv(bytes: &[u8], name: &str) -> Result<Self> {
        tsv::parse(text_of(bytes, name, MAX_LEXICON_BYTES)?, name)
    }

    /// A PLS 1.0 document in UTF-8 whose alphabet is `ipa` or `x-arpabet`. Of the pronunciations of a lexeme the
    /// first with `prefer="true"` is taken, else the first; of two lexemes for a grapheme the first, with a notice.
    ///
    /// # Errors
    /// As [`Self::parse_tsv`]; a document type declaration is refused.
    pub fn parse_pls(bytes: &[u8], name: &str) -> Result<Self> {
        pls::parse(text_of(bytes, name, MAX_LEXICON_BYTES)?, name)
    }

    /// `grapheme␠␠phonemes` pairs joined by commas, as Riva's `custom_dictionary`: IPA, ARPAbet as `{@HH}{@AH0}`,
    /// or in double quotes text that is read instead. Of two entries for a grapheme the last is taken, with a
    /// notice.
    ///
    /// # Errors
    /// As [`Self::parse_tsv`].
    pub fn parse_custom_dictionary(text: &str) -> Result<Self> {
        Self::parse_pairs(text, "custom_dictionary")
    }

    /// As [`Self::parse_custom_dictionary`], from a field that a message calls `name`.
    ///
    /// # Errors
    /// As [`Self::parse_tsv`].
    pub fn parse_pairs(text: &str, name: &str) -> Result<Self> {
        custom_dictionary::parse(text_of(text.as_bytes(), name, MAX_CUSTOM_DICTIONARY_BYTES)?, name)
    }

    /// What the grapheme `word` sounds like: an exact entry, or one that ignores case.
    pub fn find(&self, word: &str) -> Option<&Pronunciation> {
        if let Some(exact) = self.entries.get(word) {
            return Some(exact);
        }
        let lower = word.to_lowercase();
        let grapheme = self.folded.get(&lower)?;
        let is_capitals = !grapheme.chars().any(char::is_lowercase);
        if is_capitals && function_word(&lower, true).is_some() {
            return None;
        }
        self.entries.get(grapheme)
    }

    /// How many graphemes it has.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What a person should know of what was read: duplicates and what has no meaning here.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = self.notices.clone();
        if self.notices_left_out > 0 {
            notices.push(format!("and {} more notices", self.notices_left_out));
        }
        notices
    }

    /// The graphemes whose phonemes a voice that spells in characters cannot use, in order.
    pub fn phonemic(&self) -> Vec<&str> {
        let phonemic = |(grapheme, said): (_, &Pronunciation)| {
            matches!(said, Pronunciation::Phonemes(_)).then_some(grapheme)
        };
        let mut found: Vec<&str> =
            self.entries.iter().map(|(g, s)| (g.as_str(), s)).filter_map(phonemic).collect();
        found.sort_unstable();
        found
    }

    fn notice(&mut self, notice: impl FnOnce() -> String) {
        if self.notices.len() < MAX_NOTICES {
            self.notices.push(notice());
        } else {
            self.notices_left_out += 1;
        }
    }

    /// Adds an entry. -> whether there was one for `grapheme` already
    fn insert(
        &mut self,
        grapheme: &str,
        said: Pronunciation,
        duplicate: Duplicate,
    ) -> std::result::Result<bool, String> {
        let grapheme = canonical_grapheme(grapheme)?;
        if let Some(known) = self.entries.get_mut(&grapheme) {
            if duplicate == Duplicate::Last {
                *known = said;
            }
            return Ok(true);
        }
        if self.entries.len() == MAX_ENTRIES {
            return Err(format!("{grapheme:?} is one entry more than the limit of {MAX_ENTRIES}"));
        }
        let lower = grapheme.to_lowercase();
        self.initials.extend(lower.chars().next());
        self.longest = self.longest.max(grapheme.chars().count());
        let is_lower = lower == grapheme;
        let folded = self.folded.entry(lower).or_insert_with(|| grapheme.clone());
        // Other cases than the entries' own are read as the lower case, if that is an entry.
        if is_lower {
            folded.clone_from(&grapheme);
        }
        self.entries.insert(grapheme, said);
        Ok(false)
    }
}

/// A grapheme with the typography that text has where lexicons apply.
fn canonical_grapheme(grapheme: &str) -> std::result::Result<String, String> {
    let count = grapheme.chars().count();
    if count > MAX_GRAPHEME_CHARACTERS {
        return Err(format!("a grapheme of {count} characters, the limit is {MAX_GRAPHEME_CHARACTERS}"));
    }
    let cleaned = clean(grapheme, &Reading::default(), Notation { html: true, phonemes: false }).text;
    let words: Vec<&str> = cleaned.split_whitespace().collect();
    let plain = words.join(" ");
    if !plain.chars().any(char::is_alphanumeric) || plain.contains(PHONEMES) {
        return Err(format!("grapheme {grapheme:?} has no letter and no digit"));
    }
    Ok(plain)
}

/// The pronunciation that `text` gives in `alphabet`.
fn pronunciation(text: &str, alphabet: Alphabet) -> std::result::Result<Pronunciation, String> {
    let count = text.chars().count();
    if count > MAX_PRONUNCIATION_CHARACTERS {
        return Err(format!(
            "a pronunciation of {count} characters, the limit is {MAX_PRONUNCIATION_CHARACTERS}"
        ));
    }
    match alphabet {
        Alphabet::Ipa => match ipa::canonical(text) {
            Ok(ipa) => Ok(Pronunciation::Phonemes(ipa)),
            Err(reason) => Err(format!("{text:?} is not IPA: {reason}")),
        },
        Alphabet::Arpabet => match arpabet::to_ipa(text) {
            Ok(ipa) => Ok(Pronunciation::Phonemes(ipa)),
            Err(reason) => Err(format!("{text:?} is not ARPAbet: {reason}")),
        },
        Alphabet::Alias => {
            let cleaned = clean(text, &Reading::default(), Notation { html: true, phonemes: false }).text;
            let words: Vec<&str> = cleaned.split_whitespace().collect();
            let plain = words.join(" ");
            if !plain.chars().any(char::is_alphanumeric) || plain.contains(PHONEMES) {
                return Err(format!("alias {text:?} has no letter and no digit"));
            }
            Ok(Pronunciation::Alias(plain))
        }
    }
}

/// An error at a place; `line` and `column` count from 1.
fn at(name: &str, line: usize, column: usize, reason: impl std::fmt::Display) -> Error {
    let reason = shortened(reason.to_string(), MAX_REASON_BYTES);
    Error::InvalidRequest(format!("{name}:{line}:{column}: {reason}"))
}

/// `bytes` as UTF-8 without a byte order mark.
fn text_of<'a>(bytes: &'a [u8], name: &str, limit: usize) -> Result<&'a str> {
    if bytes.len() > limit {
        let reason = format!("{name} has more than {limit} bytes, which is the limit of a lexicon");
        return Err(Error::InvalidRequest(reason));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let (valid, rest) = bytes.split_at(error.valid_up_to());
        let valid = String::from_utf8_lossy(valid);
        let line = valid.split('\n').count();
        let column = valid.split('\n').next_back().unwrap_or_default().chars().count() + 1;
        let byte = rest.first().copied().unwrap_or_default();
        at(name, line, column, format!("byte {byte:#04x} is not UTF-8"))
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}
