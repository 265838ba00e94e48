//! A date or a time of day as somebody marked it in, its words out.
//!
//! The order of the parts is the one that is given, else the one that they show by themselves. Never reads a date or a
//! time that there is not.

use super::say_as::{is_digits, nth};
use crate::text::DateOrder;
use crate::text::normalize::{date_words, month_name, month_of, of_day, year_words};

/// A part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Day,
    Month,
    Year,
}

use Part::{Day, Month, Year};

pub const DATE_FORMATS: [(&str, &[Part]); 11] = [
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
pub const TIME_FORMATS: [&str; 2] = ["hms12", "hms24"];

/// A date with its parts in the order that is given, or that they show by themselves.
pub fn date(text: &str, parts: Option<&'static [Part]>, order: DateOrder) -> Option<String> {
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
pub fn time(text: &str) -> Option<String> {
    let packed: String =
        text.chars().filter(|c| !c.is_whitespace() && *c != '.').collect::<String>().to_lowercase();
    let has_half = packed.ends_with("am") || packed.ends_with("pm");
    let hours = packed.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()?;
    let is_time = if has_half { (1..=12).contains(&hours) } else { packed.contains(':') };
    is_time.then(|| of_day(&packed))?
}
