//! The text of a say-as element in, the words that it stands for out.
//!
//! The kinds that the W3C note "SSML 1.0 say-as attribute values" defines, with the further names that other services
//! give them. Never guesses: text that is not of its kind has no words here.

use super::calendar::{DATE_FORMATS, Part, TIME_FORMATS, date, time};
use super::xml::quoted;
use crate::text::numbers::{cardinal, ordinal, spelled};
use crate::text::signs::SIGNS;
use crate::text::{DateOrder, Reading, letters};

/// Characters of one say-as element at most: what is longer is no date, number or code.
const MAX_CHARACTERS: usize = 1000;

/// Signs that are named where every character counts.
const MORE_SIGNS: [(char, &str); 16] = [
    ('.', "dot"),
    (',', "comma"),
    ('-', "dash"),
    ('_', "underscore"),
    (':', "colon"),
    (';', "semicolon"),
    ('!', "exclamation mark"),
    ('?', "question mark"),
    ('#', "hash"),
    ('*', "asterisk"),
    ('(', "open parenthesis"),
    (')', "close parenthesis"),
    ('\'', "apostrophe"),
    ('"', "quote"),
    ('$', "dollar"),
    ('~', "tilde"),
];

/// What a text is to be read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SayAs {
    Cardinal,
    Ordinal,
    Characters,
    Telephone,
    /// The order of the parts where none is given.
    Date(Option<&'static [Part]>, DateOrder),
    Time,
}

/// The kind that `interpret-as` names; `None` where it is not served.
///
/// # Errors
/// The rule that `format` breaks.
pub fn kind(interpret_as: &str, format: Option<&str>, reading: &Reading) -> Result<Option<SayAs>, String> {
    let unknown = |format: &str, known: Vec<&str>| {
        Err(format!("the format {} of a {interpret_as} is none of {}", quoted(format), known.join(", ")))
    };
    Ok(Some(match (interpret_as.trim(), format.map(str::trim)) {
        ("cardinal" | "number", _) => SayAs::Cardinal,
        ("ordinal", _) => SayAs::Ordinal,
        ("characters" | "spell-out" | "verbatim" | "digits", _) => SayAs::Characters,
        ("telephone", _) => SayAs::Telephone,
        ("date", None) => SayAs::Date(None, reading.date_order),
        ("date", Some(format)) => match DATE_FORMATS.iter().find(|(name, _)| *name == format) {
            Some((_, parts)) => SayAs::Date(Some(parts), reading.date_order),
            None => return unknown(format, DATE_FORMATS.iter().map(|(name, _)| *name).collect()),
        },
        ("time", Some(format)) if !TIME_FORMATS.contains(&format) => {
            return unknown(format, TIME_FORMATS.to_vec());
        }
        ("time", _) => SayAs::Time,
        _ => return Ok(None),
    }))
}

impl SayAs {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cardinal => "cardinal",
            Self::Ordinal => "ordinal",
            Self::Characters => "run of characters",
            Self::Telephone => "telephone number",
            Self::Date(..) => "date",
            Self::Time => "time",
        }
    }

    /// The words for `text`; `None` where it is not of this kind. With `phonemes`, a letter that is also a word is
    /// given by its sound.
    pub fn words(self, text: &str, phonemes: bool) -> Option<String> {
        let text = text.trim();
        if text.is_empty() || text.chars().nth(MAX_CHARACTERS).is_some() {
            return None;
        }
        match self {
            Self::Cardinal => number(text),
            Self::Ordinal => nth(text),
            Self::Characters => characters(text, phonemes),
            Self::Telephone => telephone(text),
            Self::Date(parts, order) => date(text, parts, order),
            Self::Time => time(text),
        }
    }
}

/// `-1,234.5`: a sign, digits that may be grouped, a fraction.
fn number(text: &str) -> Option<String> {
    let (sign, rest) = match text.chars().next()? {
        '-' | '−' => ("minus ", text.get(text.chars().next()?.len_utf8()..)?),
        '+' => ("plus ", text.get(1..)?),
        _ => ("", text),
    };
    let (whole, fraction) =
        rest.split_once('.').map_or((rest, None), |(whole, fraction)| (whole, Some(fraction)));
    let whole = digits(whole)?;
    let fraction = match fraction {
        Some(fraction) if is_digits(fraction) => format!(" point {}", spelled(fraction)),
        Some(_) => return None,
        None => String::new(),
    };
    Some(format!("{sign}{}{fraction}", cardinal(&whole)))
}

/// `22` or `22nd`.
pub fn nth(text: &str) -> Option<String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = text.get(number.len()..)?.to_ascii_lowercase();
    matches!(ending.as_str(), "" | "st" | "nd" | "rd" | "th")
        .then(|| digits(number).map(|digits| ordinal(&digits)))?
}

/// Digits without their grouping and leading zeros.
fn digits(text: &str) -> Option<String> {
    let mut groups = text.split(',');
    let first = groups.next()?;
    let grouped: Vec<&str> = groups.collect();
    let well_grouped =
        grouped.is_empty() || (first.len() <= 3 && grouped.iter().all(|group| group.len() == 3));
    let joined = [first].into_iter().chain(grouped).collect::<String>();
    (well_grouped && is_digits(&joined)).then(|| match joined.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    })
}

pub fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Every character by its name.
fn characters(text: &str, phonemes: bool) -> Option<String> {
    let name = |c: char| match c {
        '0'..='9' => spelled(c.encode_utf8(&mut [0; 4])),
        c if c.is_alphabetic() => c.to_uppercase().collect(),
        c => SIGNS
            .iter()
            .chain(&MORE_SIGNS)
            .find(|(sign, _)| *sign == c)
            .map_or(String::from(c), |(_, n)| (*n).into()),
    };
    let mut names: Vec<String> = text.chars().filter(|c| !c.is_whitespace()).map(name).collect();
    // Beside another letter an A is read by its name, alone it is an article.
    let is_letter = |at: Option<usize>| at.and_then(|at| names.get(at)).is_some_and(|name| name.len() == 1);
    let alone: Vec<usize> = (0..names.len())
        .filter(|&at| names.get(at).is_some_and(|name| name == "A"))
        .filter(|&at| !is_letter(at.checked_sub(1)) && !is_letter(Some(at + 1)))
        .collect();
    for at in alone.into_iter().filter(|_| phonemes) {
        if let Some(name) = names.get_mut(at) {
            *name = format!("[[{}]]", letters::spell("A"));
        }
    }
    (!names.is_empty()).then(|| names.join(" "))
}

/// Digits one by one, a comma between two groups.
fn telephone(text: &str) -> Option<String> {
    let mut groups: Vec<Vec<String>> = vec![Vec::new()];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let extension = ["extension", "ext.", "ext", "x"].iter().find(|word| {
            rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
                && rest
                    .get(word.len()..)
                    .is_some_and(|tail| tail.trim_start().starts_with(|c: char| c.is_ascii_digit()))
        });
        rest = rest.get(extension.map_or(c.len_utf8(), |word| word.len())..)?;
        let said = match c {
            _ if extension.is_some() => {
                groups.push(vec!["extension".into()]);
                continue;
            }
            '0'..='9' => spelled(c.encode_utf8(&mut [0; 4])),
            '+' => "plus".into(),
            '*' => "star".into(),
            '#' => "pound".into(),
            c if c.is_ascii_alphabetic() => c.to_ascii_uppercase().to_string(),
            ' ' | '\t' | '\n' | '\r' | '\u{a0}' | '-' | '.' | '/' | '(' | ')' | '‑' | '–' => {
                let named = groups
                    .last()
                    .is_some_and(|group| group.first().is_some_and(|first| first == "extension"));
                if !named || groups.last().is_some_and(|group| group.len() > 1) {
                    groups.push(Vec::new());
                }
                continue;
            }
            _ => return None,
        };
        groups.last_mut()?.push(said);
    }
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    let groups: Vec<String> =
        groups.iter().filter(|group| !group.is_empty()).map(|group| group.join(" ")).collect();
    has_digit.then(|| groups.join(", "))
}
