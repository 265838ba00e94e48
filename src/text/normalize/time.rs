//! A time of day or a span of times in, its words out.
//!
//! Never reads a time that no clock shows.

use super::super::numbers::{cardinal, clock};
use super::token::{Cursor, Here, Said, value};

pub fn read(here: &Here) -> Option<Said> {
    let core = here.part.core;
    span(core)
        .or_else(|| timetable(core))
        .or_else(|| zone(core))
        .map(Said::one)
        .or_else(|| british(here))
        .or_else(|| military(here))
        .or_else(|| ratio(core))
}

/// `15:30`, `3:05pm`, `noon`.
pub fn of_day(text: &str) -> Option<String> {
    if matches!(text, "noon" | "midnight") {
        return Some(text.into());
    }
    let mut rest = Cursor(text);
    let hours = rest.digits(1, 2).filter(|hours| value(hours).is_some_and(|hours| hours <= 24))?;
    let minutes = rest.eat(":").map(|()| rest.digits(2, 2).filter(|m| value(m).is_some_and(|m| m < 60)));
    let minutes = match minutes {
        Some(minutes) => Some(minutes?),
        None => None,
    };
    let seconds = rest.eat(":").map(|()| rest.digits(2, 2).filter(|s| value(s).is_some_and(|s| s < 60)));
    let half = match rest.0 {
        "" => "",
        "am" | "AM" | "a" => " A M",
        "pm" | "PM" | "p" => " P M",
        _ => return None,
    };
    let mut words = match minutes {
        Some(minutes) => clock(hours, minutes, !half.is_empty()),
        None => cardinal(hours),
    };
    if let Some(seconds) = seconds {
        let seconds = seconds?.trim_start_matches('0');
        if !seconds.is_empty() {
            let unit = if seconds == "1" { "second" } else { "seconds" };
            words.push_str(&format!(" and {} {unit}", cardinal(seconds)));
        }
    }
    words.push_str(half);
    Some(words)
}

/// `9-5pm`, `noon-1pm`, `10:30-11:45`: one side shows that these are times.
fn span(core: &str) -> Option<String> {
    let (from, to) = core.split_once(['-', '—'])?;
    let shows = |side: &str| side.ends_with(['m', 'M', 'n', 't']) || side.contains(':');
    (shows(from) || shows(to)).then_some(())?;
    Some(format!("{} to {}", of_day(from)?, of_day(to)?))
}

/// `6:05a`, as timetables have it.
fn timetable(core: &str) -> Option<String> {
    (core.contains(':') && core.ends_with(['a', 'p'])).then(|| of_day(core)).flatten()
}

/// `UTC-5` and `GMT+5:30`: the sign is no hyphen.
fn zone(core: &str) -> Option<String> {
    let name = ["UTC", "GMT"].into_iter().find(|name| core.starts_with(name))?;
    let mut rest = Cursor(core.get(name.len()..)?);
    let sign = if rest.any(&['+', '-'])? == '+' { "plus" } else { "minus" };
    let hours = cardinal(rest.digits(1, 2)?.trim_start_matches('0'));
    let minutes = match rest.eat(":") {
        Some(()) => format!(" {}", cardinal(rest.digits(2, 2)?)),
        None => String::new(),
    };
    rest.end()?;
    let letters: Vec<String> = name.chars().map(String::from).collect();
    let hours = if hours.is_empty() { "zero" } else { &hours };
    Some(format!("{} {sign} {hours}{minutes}", letters.join(" ")))
}

/// `0900 hrs`.
fn military(here: &Here) -> Option<Said> {
    let mut rest = Cursor(here.part.core);
    let (hours, minutes) = rest.digits(4, 4)?.split_at_checked(2)?;
    rest.end()?;
    let shown = value(hours).is_some_and(|hours| hours < 10) && value(minutes).is_some_and(|m| m < 60);
    let unit = here.ahead(1).filter(|_| shown && here.part.tail.is_empty())?;
    matches!(unit.core, "h" | "hr" | "hrs" | "hours").then_some(())?;
    let minutes = if minutes == "00" { "hundred".to_owned() } else { cardinal(minutes) };
    let hour = hours.trim_start_matches('0');
    let hour = if hour.is_empty() { "zero".to_owned() } else { format!("oh {}", cardinal(hour)) };
    Some(Said::new(format!("{hour} {minutes} hours"), 2))
}

/// `3.30 p.m.`
fn british(here: &Here) -> Option<Said> {
    let mut rest = Cursor(here.part.core);
    let hours =
        rest.digits(1, 2).filter(|hours| value(hours).is_some_and(|hours| (1..=12).contains(&hours)))?;
    rest.eat(".")?;
    let minutes = rest.digits(2, 2).filter(|minutes| value(minutes).is_some_and(|minutes| minutes < 60))?;
    rest.end()?;
    let next = here.ahead(1)?.core.to_ascii_lowercase();
    matches!(next.as_str(), "am" | "pm" | "a.m" | "p.m").then(|| Said::one(clock(hours, minutes, true)))
}

/// `3:1`, and no time.
fn ratio(core: &str) -> Option<Said> {
    let mut rest = Cursor(core);
    let (left, _, right) = (rest.digits(1, 3)?, rest.eat(":")?, rest.digits(1, 3)?);
    rest.end()?;
    let is_time = right.len() == 2 && left.len() <= 2;
    (!is_time).then(|| Said::one(format!("{} to {}", cardinal(left), cardinal(right))))
}
