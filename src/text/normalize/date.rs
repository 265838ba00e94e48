//! A date as people write it in, the date as they say it out.
//!
//! Never reads a day that its month lacks.

use super::super::DateOrder;
use super::super::numbers::{cardinal, ordinal, year};
use super::time;
use super::token::{Cursor, Here, Said, value};

/// Name, short form, longest day.
const MONTHS: [(&str, &str, u32); 12] = [
    ("January", "Jan", 31),
    ("February", "Feb", 29),
    ("March", "Mar", 31),
    ("April", "Apr", 30),
    ("May", "May", 31),
    ("June", "Jun", 30),
    ("July", "Jul", 31),
    ("August", "Aug", 31),
    ("September", "Sep", 30),
    ("October", "Oct", 31),
    ("November", "Nov", 30),
    ("December", "Dec", 31),
];

/// Name and short forms.
const WEEKDAYS: [(&str, &[&str]); 7] = [
    ("Monday", &["Mon"]),
    ("Tuesday", &["Tue", "Tues"]),
    ("Wednesday", &["Wed"]),
    ("Thursday", &["Thu", "Thur", "Thurs"]),
    ("Friday", &["Fri"]),
    ("Saturday", &["Sat"]),
    ("Sunday", &["Sun"]),
];

/// Words after which `4 May` is a day: a month's name that is also a word is not one everywhere.
const BEFORE_DAY: [&str; 14] = [
    "after", "before", "by", "dated", "from", "of", "on", "since", "the", "through", "till", "to", "until",
    "was",
];

/// Two-digit years from here on are of the last century.
const FIRST_YEAR_OF_1900S: u32 = 70;

pub fn read(here: &Here) -> Option<Said> {
    let core = here.part.core;
    iso(core)
        .or_else(|| numeric(core, here.date_order))
        .or_else(|| span(core, here.date_order))
        .or_else(|| span_of_years(core))
        .or_else(|| span_of_weekdays(core))
        .map(Said::one)
        .or_else(|| weekday(here))
        .or_else(|| {
            let short = here.part.open == "'" && core.len() == 2 && core.starts_with('0');
            let digit = core.strip_prefix('0').filter(|d| short && d.chars().all(|c| c.is_ascii_digit()))?;
            Some(Said::one(format!("oh {}", cardinal(digit))))
        })
        .or_else(|| month_first(here))
        .or_else(|| day_first(here))
}

/// `2025-03-04`, with or without a time: `2025-03-04T15:30Z`.
fn iso(core: &str) -> Option<String> {
    let mut rest = Cursor(core);
    let year = rest.digits(4, 4)?;
    let mark = rest.any(&['-', '/', '.'])?;
    let month = rest.digits(1, 2)?;
    rest.any(&[mark])?;
    let date = spoken(value(month)?, rest.digits(1, 2)?, Some(year))?;
    if rest.end().is_some() {
        return Some(date);
    }
    rest.eat("T")?;
    let (time, zone) = match rest.0.find(['Z', '+', '-']).and_then(|at| rest.0.split_at_checked(at)) {
        None => (rest.0, String::new()),
        Some((time, "Z")) => (time, " U T C".to_owned()),
        Some((time, zone)) => {
            let mut rest = Cursor(zone);
            let sign = if rest.any(&['+', '-'])? == '+' { "plus" } else { "minus" };
            let hours = value(rest.digits(2, 2).or_else(|| rest.0.get(..2))?)?;
            let minutes =
                value(zone.get(zone.len().checked_sub(2)?..)?).filter(|_| zone.len() > 3).unwrap_or(0);
            let minutes =
                if minutes == 0 { String::new() } else { format!(" {}", cardinal(&minutes.to_string())) };
            (time, format!(" U T C {sign} {}{minutes}", cardinal(&hours.to_string())))
        }
    };
    // A fraction of a second is not said.
    let time = time.split_once('.').map_or(time, |(time, _)| time);
    Some(format!("{date} at {}{zone}", time::of_day(time)?))
}

/// `3/4/2025`, `3-4-2025`, and `4.3.2025`, which has its day first everywhere.
fn numeric(core: &str, order: DateOrder) -> Option<String> {
    let mut rest = Cursor(core);
    let first = rest.digits(1, 2)?;
    let mark = rest.any(&['/', '-', '.'])?;
    let second = rest.digits(1, 2)?;
    rest.any(&[mark])?;
    let year = rest.digits(if mark == '/' { 2 } else { 4 }, 4).filter(|year| year.len() != 3)?;
    rest.end()?;
    let day_first = mark == '.' || order == DateOrder::DayFirst;
    let (day, month) = if day_first { (first, second) } else { (second, first) };
    spoken(value(month)?, day, Some(year))
        .or_else(|| spoken(value(day)?, month, Some(year)).filter(|_| mark != '.'))
}

/// `1/1/2024-12/31/2024`: the hyphen stands in neither date.
fn span(core: &str, order: DateOrder) -> Option<String> {
    let mark = if core.contains('—') { '—' } else { '-' };
    let (from, to) = core.split_once(mark).filter(|(_, to)| !to.contains(mark))?;
    let date = |side: &str| iso(side).or_else(|| numeric(side, order));
    Some(format!("{} to {}", date(from)?, date(to)?))
}

/// `Mon-Fri`.
fn span_of_weekdays(core: &str) -> Option<String> {
    let (from, to) = core.split_once(['-', '—'])?;
    Some(format!("{} to {}", weekday_of(from)?, weekday_of(to)?))
}

/// `Mon.`, and `Tue` beside a date or a time: the short forms of some days are words.
fn weekday(here: &Here) -> Option<Said> {
    let name = weekday_of(here.part.core)?;
    let dated = here.ahead(1).is_some_and(|next| {
        month_of(next.core).is_some() || next.core.starts_with(|c: char| c.is_ascii_digit())
    });
    let short = !matches!(here.part.core, "Sat" | "Sun" | "Wed") && here.part.tail.starts_with('.');
    (dated && !name.is_empty() || short).then(|| Said::one(name))
}

fn weekday_of(word: &str) -> Option<&'static str> {
    WEEKDAYS.iter().find(|(_, shorts)| shorts.contains(&word)).map(|(name, _)| *name)
}

/// `1990-95`.
fn span_of_years(core: &str) -> Option<String> {
    let mut rest = Cursor(core);
    let from = rest.digits(4, 4)?;
    rest.any(&['-', '—'])?;
    let to = rest.digits(2, 2)?;
    rest.end()?;
    (value(from)? % 100 < value(to)?).then_some(())?;
    Some(format!("{} to {}", year(from)?, cardinal(to)))
}

/// `March 4, 2025`, `Mar. 4th`, `March 4-6`.
fn month_first(here: &Here) -> Option<Said> {
    let month = month_of(here.part.core)?;
    matches!(here.part.tail, "" | ".").then_some(())?;
    let next = here.ahead(1).filter(|next| next.open.is_empty())?;
    let mut rest = Cursor(next.core);
    let day = day(&mut rest)?;
    if rest.any(&['-', '—']).is_some() {
        if let Some(other) = month_of(rest.0) {
            // `Jan. 1-Feb. 2`
            let last = here.ahead(2).filter(|part| matches!(next.tail, "" | ".") && part.open.is_empty())?;
            let words = format!("{} to {}", spoken(month, day, None)?, spoken(other, last.core, None)?);
            return Some(Said::new(words, 3));
        }
        let last = self::day(&mut rest)?;
        rest.end()?;
        let words = format!("{} to {}", spoken(month, day, None)?, ordinal_day(month, last)?);
        return Some(Said::new(words, 2));
    }
    rest.end()?;
    let year = here.ahead(2).filter(|part| matches!(next.tail, "" | ",") && part.open.is_empty());
    match year.map(|part| part.core).filter(|core| is_year(core)) {
        Some(year) => Some(Said::new(spoken(month, day, Some(year))?, 3)),
        None => Some(Said::new(spoken(month, day, None)?, 2)),
    }
}

/// `4 March 2025` and `4th of March`.
fn day_first(here: &Here) -> Option<Said> {
    here.part.tail.is_empty().then_some(())?;
    let mut rest = Cursor(here.part.core);
    let day = day(&mut rest)?;
    rest.end()?;
    let next = here.ahead(1).filter(|next| next.open.is_empty())?;
    let month = month_of(next.core)?;
    let year = here.ahead(2).filter(|part| matches!(next.tail, "" | "," | ".") && part.open.is_empty());
    let year = year.map(|part| part.core).filter(|core| is_year(core));
    let before = here.before().map(|part| part.core.to_lowercase());
    let expected = before.as_deref().is_some_and(|before| BEFORE_DAY.contains(&before));
    (year.is_some() || expected || !matches!(next.core, "May" | "March")).then_some(())?;
    let article = if before.as_deref() == Some("the") { "" } else { "the " };
    let mut words = format!("{article}{} of {}", ordinal_day(month, day)?, name(month)?);
    if let Some(year) = year {
        words.push_str(&format!(", {}", year_words(year)));
    }
    Some(Said::new(words, if year.is_some() { 3 } else { 2 }))
}

/// The number of a month that is written out or shortened.
pub fn month_of(word: &str) -> Option<u32> {
    let at = MONTHS
        .iter()
        .position(|(name, short, _)| *name == word || *short == word)
        .or((word == "Sept").then_some(8))?;
    u32::try_from(at + 1).ok()
}

fn month(number: u32) -> Option<&'static (&'static str, &'static str, u32)> {
    MONTHS.get(usize::try_from(number.checked_sub(1)?).ok()?)
}

/// The month's name.
pub fn name(number: u32) -> Option<&'static str> {
    month(number).map(|(name, ..)| *name)
}

/// The digits of `4` and `4th`.
fn day<'a>(rest: &mut Cursor<'a>) -> Option<&'a str> {
    let digits = rest.digits(1, 2)?;
    ["st", "nd", "rd", "th"].iter().find_map(|suffix| rest.eat(suffix));
    Some(digits)
}

fn ordinal_day(of: u32, day: &str) -> Option<String> {
    let (_, _, longest) = month(of)?;
    let number = value(day).filter(|number| (1..=*longest).contains(number))?;
    Some(ordinal(&number.to_string()))
}

fn is_year(core: &str) -> bool {
    core.len() == 4 && value(core).is_some_and(|year| (1000..3000).contains(&year))
}

/// A year of four digits, or of two that leave the century out.
pub fn year_words(digits: &str) -> String {
    let century = match value(digits) {
        Some(short) if digits.len() == 2 && short < FIRST_YEAR_OF_1900S => "20",
        Some(_) if digits.len() == 2 => "19",
        _ => "",
    };
    let full = format!("{century}{digits}");
    year(&full).unwrap_or_else(|| cardinal(&full))
}

/// `March fourth, twenty twenty five`; `None` for a day that the month lacks.
pub fn spoken(month: u32, day: &str, year: Option<&str>) -> Option<String> {
    let date = format!("{} {}", name(month)?, ordinal_day(month, day)?);
    let leap = |year: u32| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let is_29th = month == 2 && value(day) == Some(29);
    match year {
        Some(year) if is_29th && year.len() == 4 && !value(year).is_some_and(leap) => None,
        Some(year) if year.len() == 4 && !is_year(year) => None,
        Some(year) => Some(format!("{date}, {}", year_words(year))),
        None => Some(date),
    }
}
