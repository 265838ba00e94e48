//! The text of a say-as element in, the words that it stands for out.
//!
//! The kinds that the W3C note "SSML 1.0 say-as attribute values" defines, with the further names that other services
//! give them. Never guesses: text that is not of its kind has no words here.

use super::xml::quoted;
use crate::text::normalize::{date_words, month_name, month_of, of_day, year_words};
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

/// A part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Day,
    Month,
    Year,
}

use Part::{Day, Month, Year};

const DATE_FORMATS: [(&str, &[Part]); 11] = [
    ("mdy", &[Month, Day, Year]),
    ("dmy", &[Day, Month, Year]),
    ("ymd", &[Year, Month, Day]),
    ("yyyymmdd", &[Year, Month, Day]),
    ("md", &[Month, Day]),
    ("dm", &[Day, Month]),
    ("my", &[Month, Year]),
    ("ym", &[Year, Month]),
    ("d", &[Day]),
    ("m", &[Month]),
    ("y", &[Year]),
];
const TIME_FORMATS: [&str; 2] = ["hms12", "hms24"];

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
fn nth(text: &str) -> Option<String> {
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

fn is_digits(text: &str) -> bool {
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

/// A date with its parts in the order that is given, or that they show by themselves.
fn date(text: &str, parts: Option<&'static [Part]>, order: DateOrder) -> Option<String> {
    let mut fields: Vec<&str> = text
        .split(|c: char| matches!(c, '/' | '-' | '.' | ',') || c.is_whitespace())
        .filter(|f| !f.is_empty())
        .collect();
    if let [all] = fields.as_slice()
        && all.len() == 8
        && is_digits(all)
    {
        fields = vec![all.get(..4)?, all.get(4..6)?, all.get(6..)?];
    }
    let shown = || -> Option<&'static [Part]> {
        let is_year = |at: usize| fields.get(at).is_some_and(|field| field.len() == 4 && is_digits(field));
        let is_name =
            |at: usize| fields.get(at).is_some_and(|field| !is_digits(field) && month(field).is_some());
        let day_first = (order == DateOrder::DayFirst || is_name(1)) && !is_name(0);
        Some(match (fields.len(), day_first) {
            (3, _) if is_year(0) => &[Year, Month, Day],
            (3, true) => &[Day, Month, Year],
            (3, false) => &[Month, Day, Year],
            (2, _) if is_year(0) => &[Year, Month],
            (2, _) if is_year(1) => &[Month, Year],
            (2, true) => &[Day, Month],
            (2, false) => &[Month, Day],
            (1, _) if is_year(0) => &[Year],
            _ => return None,
        })
    };
    let parts = parts.or_else(shown)?;
    if parts.len() != fields.len() {
        return None;
    }
    let field = |part: Part| parts.iter().position(|own| *own == part).and_then(|at| fields.get(at).copied());
    let month = field(Month).map(|field| month(field).ok_or(())).transpose().ok()?;
    let day = field(Day).map(|field| field.trim_end_matches(|c: char| c.is_ascii_alphabetic()));
    let year =
        field(Year).map(|year| Some(year).filter(|year| is_digits(year)).ok_or(())).transpose().ok()?;
    match (month, day, year) {
        (Some(month), Some(day), year) => date_words(month, day, year),
        (Some(month), None, Some(year)) => Some(format!("{} {}", month_name(month)?, year_words(year))),
        (Some(month), None, None) => month_name(month).map(str::to_owned),
        (None, Some(day), _) => {
            day.parse().is_ok_and(|day: u32| (1..=31).contains(&day)).then(|| nth(day))?
        }
        (None, None, year) => year.map(year_words),
    }
}

fn month(field: &str) -> Option<u32> {
    if is_digits(field) {
        return field.parse().ok();
    }
    let mut letters = field.chars();
    let first = letters.next()?.to_uppercase();
    month_of(&first.chain(letters.flat_map(char::to_lowercase)).collect::<String>())
}

/// `10:30`, `10:30:15`, `10 am`.
fn time(text: &str) -> Option<String> {
    let packed: String =
        text.chars().filter(|c| !c.is_whitespace() && *c != '.').collect::<String>().to_lowercase();
    let has_half = packed.ends_with("am") || packed.ends_with("pm");
    let hours = packed.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()?;
    let is_time = if has_half { (1..=12).contains(&hours) } else { packed.contains(':') };
    is_time.then(|| of_day(&packed))?
}
