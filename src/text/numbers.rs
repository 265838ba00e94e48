//! Digits in, English number words out.
//!
//! Never fails: what is too long for a cardinal is read digit by digit.

/// Longest run of digits that is read as one cardinal.
pub const MAX_CARDINAL_DIGITS: usize = 15;

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const SCALES: [&str; 5] = ["", " thousand", " million", " billion", " trillion"];

/// `"3497"` as "three thousand four hundred ninety seven". Codes (a leading zero) and runs beyond
/// [`MAX_CARDINAL_DIGITS`] are read digit by digit.
pub fn cardinal(digits: &str) -> String {
    if digits.len() > MAX_CARDINAL_DIGITS || (digits.len() > 1 && digits.starts_with('0')) {
        return spelled(digits);
    }
    match digits.parse::<u64>() {
        Ok(value) => cardinal_of(value),
        Err(_) => spelled(digits),
    }
}

/// Every digit by its name.
pub fn spelled(digits: &str) -> String {
    let names: Vec<&str> = digits
        .chars()
        .filter_map(|c| c.to_digit(10).and_then(|d| ONES.get(usize::try_from(d).ok()?).copied()))
        .collect();
    names.join(" ")
}

/// `"22"` as "twenty second".
pub fn ordinal(digits: &str) -> String {
    let words = cardinal(digits);
    let (head, last) = words.rsplit_once(' ').map_or(("", words.as_str()), |(h, l)| (h, l));
    let last = match last {
        "one" => "first".to_string(),
        "two" => "second".to_string(),
        "three" => "third".to_string(),
        "five" => "fifth".to_string(),
        "eight" => "eighth".to_string(),
        "nine" => "ninth".to_string(),
        "twelve" => "twelfth".to_string(),
        other => match other.strip_suffix('y') {
            Some(stem) => format!("{stem}ieth"),
            None => format!("{other}th"),
        },
    };
    if head.is_empty() { last } else { format!("{head} {last}") }
}

/// Four digits as a year: "nineteen eighty four", "twenty ten"; `None` where a year is read as a
/// plain cardinal.
pub fn year(digits: &str) -> Option<String> {
    let value: u64 = (digits.len() == 4).then(|| digits.parse().ok())??;
    let (century, rest) = (value / 100, value % 100);
    if !(11..=20).contains(&century) || (century == 20 && rest < 10) {
        return None;
    }
    let head = cardinal_of(century);
    Some(match rest {
        0 => format!("{head} hundred"),
        1..10 => format!("{head} oh {}", cardinal_of(rest)),
        _ => format!("{head} {}", cardinal_of(rest)),
    })
}

/// `3`, `4` as "three quarters"; `None` where the denominator has no name of its own. After a whole number one
/// part is "a" part: "two and a half".
pub fn fraction(numerator: &str, denominator: &str, after_whole: bool) -> Option<String> {
    let (above, below) = (numerator.parse::<u64>().ok()?, denominator.parse::<u64>().ok()?);
    let named = matches!(below, 2..=10 | 12 | 16 | 20 | 32 | 64 | 100);
    if numerator.starts_with('0') || denominator.starts_with('0') || !named || above >= below {
        return None;
    }
    let part = match below {
        2 => "half".into(),
        4 => "quarter".into(),
        _ => ordinal(denominator),
    };
    Some(match (above, after_whole) {
        (1, true) => format!("a {part}"),
        (1, false) => format!("one {part}"),
        _ => format!("{} {part}s", cardinal_of(above)),
    })
}

/// A time of day, `"10"`, `"30"` as "ten thirty". `with_half` says that "A M" or "P M" follows.
pub fn clock(hours: &str, minutes: &str, with_half: bool) -> String {
    let hour = hours.parse::<u64>().unwrap_or_default();
    let named = match (hour, minutes) {
        (0, "00") => return "midnight".into(),
        (0, _) => "zero".into(),
        _ => cardinal_of(hour),
    };
    match (hour, minutes, minutes.strip_prefix('0')) {
        (_, "00", _) if with_half => named,
        (1..=12, "00", _) => format!("{named} o'clock"),
        (13..=24, "00", _) => format!("{named} hundred"),
        (_, "00", _) => format!("{named} zero zero"),
        (_, _, Some(minute)) => format!("{named} oh {}", cardinal(minute)),
        _ => format!("{named} {}", cardinal(minutes)),
    }
}

/// `"1990"` as "nineteen nineties"; `None` when the digits do not name a decade.
pub fn decade(digits: &str) -> Option<String> {
    let words = match digits.len() {
        4 if digits.ends_with('0') => year(digits).or_else(|| Some(cardinal(digits))),
        2 if digits.ends_with('0') && digits != "00" => Some(cardinal(digits)),
        _ => None,
    }?;
    Some(match words.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{words}s"),
    })
}

fn cardinal_of(value: u64) -> String {
    if value == 0 {
        return "zero".into();
    }
    let mut groups = Vec::new();
    let (mut rest, mut scales) = (value, SCALES.iter());
    while rest > 0 {
        let scale = scales.next().copied().unwrap_or_default();
        if rest % 1000 > 0 {
            groups.push(format!("{}{scale}", below_thousand(rest % 1000)));
        }
        rest /= 1000;
    }
    groups.reverse();
    groups.join(" ")
}

fn below_thousand(value: u64) -> String {
    let name = |table: &[&'static str], at: u64| {
        usize::try_from(at).ok().and_then(|at| table.get(at).copied()).unwrap_or_default()
    };
    let mut words = Vec::new();
    if value >= 100 {
        words.extend([name(&ONES, value / 100), "hundred"]);
    }
    match value % 100 {
        0 => {}
        small @ 1..20 => words.push(name(&ONES, small)),
        large => {
            words.push(name(&TENS, large / 10));
            if large % 10 > 0 {
                words.push(name(&ONES, large % 10));
            }
        }
    }
    words.join(" ")
}
