//! A height, a place on the globe, a power of ten or a number to another base in, its words out.
//!
//! Never reads a plain number: that is `number`'s work.

use super::super::numbers::{cardinal, fraction, ordinal, spelled};
use super::money::ungrouped;
use super::token::{Amount, Cursor, Here, Said, value};

pub fn read(here: &Here) -> Option<Said> {
    let core = here.part.core;
    feet_and_inches(here)
        .or_else(|| primes(here))
        .or_else(|| mixed(core).map(|words| Said { amount: Amount::Many, ..Said::one(words) }))
        .or_else(|| position(core))
        .or_else(|| power_of_ten(core))
        .or_else(|| hexadecimal(core))
        .or_else(|| grouped(core))
}

/// `5'10"` and `5' 10"`; the double prime is part of the tail.
fn feet_and_inches(here: &Here) -> Option<Said> {
    let (feet, inches, tail, taken) = match here.part.core.split_once('\'') {
        Some((feet, inches)) => (feet, inches, here.part.tail, 1),
        None => {
            (here.part.tail == "'" && here.part.open.is_empty()).then_some(())?;
            let next = here.ahead(1)?;
            (here.part.core, next.core, next.tail, 2)
        }
    };
    let measure = |digits: &str, most: u32| value(digits).filter(|v| digits.len() <= 2 && *v < most);
    let (feet_count, inch_count) = (measure(feet, 100)?, measure(inches, 12)?);
    (tail.starts_with('"') || (taken == 1 && tail.is_empty()) || tail.starts_with("''")).then_some(())?;
    let unit = |count, one, many| if count == 1 { one } else { many };
    Some(Said::new(
        format!(
            "{} {} {} {}",
            cardinal(feet),
            unit(feet_count, "foot", "feet"),
            cardinal(inches),
            unit(inch_count, "inch", "inches")
        ),
        taken,
    ))
}

/// `12"` and `5'`, where the mark closes no quote.
fn primes(here: &Here) -> Option<Said> {
    let (core, tail) = (here.part.core, here.part.tail);
    (here.part.open.is_empty() && !here.in_quotes).then_some(())?;
    let many = if tail.starts_with('"') && !tail.starts_with("\"\"") {
        "inches"
    } else {
        let next = here.ahead(1)?.core;
        (tail == "'" && AFTER_FEET.contains(&next)).then_some("feet")?
    };
    let (words, one) = match core.split_once(['/', '⁄']) {
        Some((above, below)) => (mixed(core).or_else(|| fraction(above, below, false))?, false),
        None => {
            let mut rest = Cursor(core);
            let whole = rest.digits(1, 3)?;
            let words = match rest.eat(".") {
                Some(()) => format!("{} point {}", cardinal(whole), spelled(rest.digits(1, 3)?)),
                None => cardinal(whole),
            };
            rest.end()?;
            (words, core == "1")
        }
    };
    let unit = match (many, one) {
        ("feet", true) => "foot",
        (_, true) => "inch",
        (many, false) => many,
    };
    Some(Said::one(format!("{words} {unit}")))
}

/// Words after which `5'` has been a length.
const AFTER_FEET: [&str; 8] = ["by", "deep", "high", "long", "tall", "wide", "x", "×"];

/// `1-3/4`, as recipes and carpenters write it.
fn mixed(core: &str) -> Option<String> {
    let mut rest = Cursor(core);
    let whole = rest.digits(1, 3)?;
    rest.eat("-")?;
    let above = rest.digits(1, 2)?;
    rest.any(&['/', '⁄'])?;
    let below = rest.digits(1, 3)?;
    rest.end()?;
    Some(format!("{} and {}", cardinal(whole), fraction(above, below, true)?))
}

/// `40°42'46"N` and `74.5°W`: a place on the globe.
fn position(core: &str) -> Option<Said> {
    let mut rest = Cursor(core);
    let mut words = cardinal(rest.digits(1, 3)?);
    if rest.eat(".").is_some() {
        words.push_str(&format!(" point {}", spelled(rest.digits(1, 8)?)));
    }
    rest.eat("°")?;
    words.push_str(" degrees");
    let parts: [(&[&str], &str); 2] = [(&["'"], "minutes"), (&["\"", "''"], "seconds")];
    for (marks, name) in parts {
        let mut ahead = rest;
        let Some(digits) = ahead.digits(1, 2) else { continue };
        marks.iter().find_map(|mark| ahead.eat(mark))?;
        words.push_str(&format!(" {} {name}", cardinal(digits)));
        rest = ahead;
    }
    let side = rest.any(&['N', 'S', 'E', 'W'])?;
    rest.end()?;
    let side = match side {
        'N' => "north",
        'S' => "south",
        'E' => "east",
        _ => "west",
    };
    Some(Said::one(format!("{words} {side}")))
}

/// `1e-5` and `6.02E23`.
fn power_of_ten(core: &str) -> Option<Said> {
    let mut rest = Cursor(core);
    let minus = rest.any(&['-']).map_or("", |_| "minus ");
    let whole = rest.digits(1, 3)?;
    let fraction = match rest.eat(".") {
        Some(()) => format!(" point {}", spelled(rest.digits(1, 15)?)),
        None => String::new(),
    };
    rest.any(&['e', 'E'])?;
    let sign = rest.any(&['-', '+']);
    let exponent = rest.digits(1, 3)?;
    // `3E` is a seat and `1e5` a hash as often as a number: without a sign or a fraction only `e` counts.
    rest.end()?;
    let exponent = value(exponent)?.to_string();
    let power = ordinal(&exponent);
    let below = if sign == Some('-') { "minus " } else { "" };
    let said = format!("{minus}{}{fraction} times ten to the {below}{power}", cardinal(whole));
    Some(Said { amount: Amount::Many, ..Said::one(said) })
}

/// `0x1F`.
fn hexadecimal(core: &str) -> Option<Said> {
    let digits = core.strip_prefix("0x").or_else(|| core.strip_prefix("0X"))?;
    ((1..=16).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_hexdigit())).then_some(())?;
    let names = digits.chars().map(|c| match c.is_ascii_digit() {
        true => spelled(&c.to_string()),
        false => c.to_uppercase().to_string(),
    });
    Some(Said::one(format!("hex {}", names.collect::<Vec<_>>().join(" "))))
}

/// `1.000.000`, `1.000,50`, `12,34,567` and `1'000`: groups as other countries write them.
fn grouped(core: &str) -> Option<Said> {
    if core.contains(['\'', '_']) {
        let plain = ungrouped(core)?;
        let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), ""), |parts| parts);
        let tail = if fraction.is_empty() { String::new() } else { format!(" point {}", spelled(fraction)) };
        return Some(Said { amount: Amount::Many, ..Said::one(format!("{}{tail}", cardinal(whole))) });
    }
    let mut rest = Cursor(core);
    let minus = rest.any(&['-']).map_or("", |_| "minus ");
    let mut whole = rest.digits(1, 3)?.to_string();
    let mark = rest.any(&['.', ','])?;
    let joined = if mark == '.' { 3 } else { 2 };
    let mut groups = 0;
    let mut ahead = Cursor(rest.0);
    while let Some(group) = ahead.digits(joined, joined) {
        whole.push_str(group);
        groups += 1;
        rest = ahead;
        if ahead.any(&[mark]).is_none() {
            break;
        }
    }
    let fraction = match mark {
        '.' if groups > 0 && rest.0.starts_with(',') => {
            rest.eat(",")?;
            Some(rest.digits(1, 2)?)
        }
        '.' => (groups > 1).then_some(None)?,
        _ => {
            (groups > 0 && whole.len() <= 2 + 2 * groups).then_some(())?;
            rest.eat(",")?;
            whole.push_str(rest.digits(3, 3)?);
            None
        }
    };
    rest.end()?;
    (whole.len() <= 15 && !whole.starts_with('0')).then_some(())?;
    let tail = fraction.map_or(String::new(), |digits| format!(" point {}", spelled(digits)));
    Some(Said { amount: Amount::Many, ..Said::one(format!("{minus}{}{tail}", cardinal(&whole))) })
}
