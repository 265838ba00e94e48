//! A time of day or a span of times in, its words out.
//!
//! Never reads a time that no clock shows.

use super::super::numbers::{cardinal, clock};
use super::token::{Cursor, Here, Said, value};

pub fn read(here: &Here) -> Option<Said> {
    span(here.part.core).map(Said::one).or_else(|| british(here)).or_else(|| ratio(here.part.core))
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
