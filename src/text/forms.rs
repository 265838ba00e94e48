//! One character of a compatibility form in, the plain characters that say the same out.
//!
//! Superscripts, subscripts, enclosed numbers and fractions stay apart from the digits beside them: `10⁹` is no
//! `109`. What has no Latin equivalent stays as it was written, so that a report names what the user wrote.
//!
//! Never changes a character that is not a compatibility form.

use std::iter::Peekable;
use std::str::Chars;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::numbers::ordinal;

/// Zeros of the decimal digits of other scripts and styles; the digits follow in order.
const ZEROS: [u32; 73] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50,
    0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x10d40, 0x11066,
    0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x116d0, 0x116da, 0x11730,
    0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50, 0x11da0, 0x16130, 0x16a60, 0x16ac0, 0x16b50, 0x16d70,
    0x1ccf0, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e5f1, 0x1e950, 0x1fbf0,
];

/// First and last character of a run of enclosed numbers, and the number of the first. Only some of these
/// have a decomposition.
const ENCLOSED: [(u32, u32, u32); 14] = [
    (0x2460, 0x2473, 1),
    (0x2474, 0x2487, 1),
    (0x2488, 0x249b, 1),
    (0x24ea, 0x24ea, 0),
    (0x24eb, 0x24f4, 11),
    (0x24f5, 0x24fe, 1),
    (0x24ff, 0x24ff, 0),
    (0x2776, 0x277f, 1),
    (0x2780, 0x2789, 1),
    (0x278a, 0x2793, 1),
    (0x3251, 0x325f, 21),
    (0x32b1, 0x32bf, 36),
    (0x1f100, 0x1f100, 0),
    (0x1f101, 0x1f10a, 0),
];

/// Letters of a word that a square or a cube may follow: `cm²`. After longer words it is a footnote.
const MAX_UNIT_LETTERS: usize = 3;

/// More digits than these behind `^` are no power that is said as one.
const MAX_POWER_DIGITS: usize = 3;

/// The value of a decimal digit of any script, as an ASCII digit.
pub fn decimal_digit(c: char) -> Option<char> {
    if c.is_ascii() {
        return Some(c).filter(char::is_ascii_digit);
    }
    let zero = ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&u32::from(c)))?;
    char::from_digit(u32::from(c) - zero, 10)
}

/// Appends what `c`, and as much of `rest` as belongs to it, is in plain characters. False when `c` is no
/// compatibility form; then nothing was taken.
pub fn push_plain_form(c: char, rest: &mut Peekable<Chars>, out: &mut String) -> bool {
    if c.is_ascii() {
        return false;
    }
    if superscript(c).is_some() {
        push_exponent(c, rest, out);
    } else if let Some(first) = subscript(c) {
        let run = run(first, rest, subscript);
        push_apart(&signs_spelled(&run), rest, out);
    } else if let Some(number) = enclosed(c) {
        push_apart(&number.to_string(), rest, out);
    } else if let Some(value) = roman(c) {
        match latin(c).filter(|letters| letters.len() > 1 && value < 20) {
            // `Henry Ⅷ` is read as its letters are, by position.
            Some(letters) => push_apart(&letters.to_uppercase(), rest, out),
            None => push_apart(&value.to_string(), rest, out),
        }
    } else if let Some((numerator, denominator)) = fraction(c) {
        push_apart(&format!("{numerator}⁄{denominator}"), rest, out);
    } else if let Some(latin) = latin(c) {
        match latin.strip_suffix(['2', '3']).filter(|_| is_squared_unit(c)) {
            Some(unit) => {
                push_apart(unit, rest, out);
                out.push(' ');
                push_apart(if latin.ends_with('2') { "squared" } else { "cubed" }, rest, out);
            }
            None => out.push_str(&latin.replace('∕', "/")),
        }
    } else {
        return false;
    }
    true
}

/// `base` with the marks that follow it, composed where there is a composed character.
pub fn push_composed(base: char, rest: &mut Peekable<Chars>, is_dropped: fn(char) -> bool, out: &mut String) {
    let joins = |c: &char| is_combining_mark(*c) || matches!(c, '\u{1160}'..='\u{11ff}');
    let mut cluster = String::from(base);
    while let Some(mark) = rest.next_if(|c| joins(c) && !is_dropped(*c)) {
        cluster.push(mark);
    }
    if cluster.len() == base.len_utf8() {
        out.push(base);
    } else {
        out.extend(cluster.nfc());
    }
}

/// Appends `words`, parted from a letter or a digit on either side.
pub fn push_apart(words: &str, rest: &mut Peekable<Chars>, out: &mut String) {
    if out.chars().next_back().is_some_and(char::is_alphanumeric) {
        out.push(' ');
    }
    out.push_str(words);
    if !words.ends_with('⁄') && rest.peek().is_some_and(|c| c.is_alphanumeric()) {
        out.push(' ');
    }
}

fn push_exponent(c: char, rest: &mut Peekable<Chars>, out: &mut String) {
    let first = superscript(c).unwrap_or(c);
    let run = run(first, rest, superscript);
    let letters = out.chars().rev().take_while(|c| c.is_alphabetic()).take(MAX_UNIT_LETTERS + 1).count();
    let base = out.chars().next_back();
    let number = base.is_some_and(|c| c.is_ascii_digit() || matches!(c, ')' | ']'));
    let variable = number || letters == 1;
    let negative = run.strip_prefix('-').unwrap_or_default();
    let is_digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let words = match run.as_str() {
        _ if rest.peek() == Some(&'⁄') => run,
        "2" if number || (1..=MAX_UNIT_LETTERS).contains(&letters) => "squared".into(),
        "3" if number || (1..=MAX_UNIT_LETTERS).contains(&letters) => "cubed".into(),
        digits if variable && is_digits(digits) => format!("to the {}", ordinal(digits)),
        _ if (variable || letters > 0) && is_digits(negative) => {
            format!("to the minus {}", ordinal(negative))
        }
        _ => match run.as_str() {
            "n" | "i" if variable && !rest.peek().is_some_and(|c| c.is_alphabetic()) => {
                format!("to the {run}")
            }
            // An ordinal: `2ⁿᵈ`.
            "n" | "i" => return out.push_str(&run),
            _ => signs_spelled(&run),
        },
    };
    push_apart(&words, rest, out);
}

/// Appends the power that `^` and `rest` write in plain characters, `x^2` or `10^-3`, and takes it from `rest`. False
/// when it is none; then nothing was taken.
pub fn push_power(rest: &mut Peekable<Chars>, out: &mut String) -> bool {
    if !out.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | ']')) {
        return false;
    }
    let ahead = rest.clone();
    let sign: String = ahead.clone().take_while(|c| *c == '-').take(2).collect();
    let digits: String =
        ahead.clone().skip(sign.len()).take(MAX_POWER_DIGITS + 1).take_while(char::is_ascii_digit).collect();
    let taken = sign.len() + digits.len();
    let letter = ahead.clone().next().filter(|c| c.is_ascii_lowercase());
    let goes_on = |at: usize| ahead.clone().nth(at).is_some_and(char::is_alphanumeric);
    let (words, taken) = match (sign.as_str(), digits.as_str(), letter) {
        (_, "", Some(letter)) if !goes_on(1) => (format!("to the {letter}"), 1),
        ("" | "-", digits, _) if (1..=MAX_POWER_DIGITS).contains(&digits.len()) && !goes_on(taken) => {
            let words = match (sign.is_empty(), digits) {
                (true, "2") => "squared".into(),
                (true, "3") => "cubed".into(),
                (true, _) => format!("to the {}", ordinal(digits)),
                (false, _) => format!("to the minus {}", ordinal(digits)),
            };
            (words, taken)
        }
        _ => return false,
    };
    rest.nth(taken - 1);
    push_apart(&words, rest, out);
    true
}

/// `first` and the characters after it that `plain` knows.
fn run(first: char, rest: &mut Peekable<Chars>, plain: fn(char) -> Option<char>) -> String {
    let mut run = String::from(first);
    while let Some(c) = rest.peek().and_then(|&c| plain(c)) {
        if c.is_ascii_alphabetic() || first.is_ascii_alphabetic() {
            break;
        }
        run.push(c);
        rest.next();
    }
    run
}

/// The charge of an ion, `2+`, as "2 plus".
fn signs_spelled(run: &str) -> String {
    run.replace('+', " plus ").replace('-', " minus ").trim().to_string()
}

fn superscript(c: char) -> Option<char> {
    Some(match c {
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        '⁰' | '⁴'..='⁹' => char::from_digit(u32::from(c) - 0x2070, 10)?,
        '⁺' => '+',
        '⁻' => '-',
        'ⁿ' => 'n',
        'ⁱ' => 'i',
        _ => return None,
    })
}

fn subscript(c: char) -> Option<char> {
    match c {
        '₀'..='₉' => char::from_digit(u32::from(c) - 0x2080, 10),
        '₊' => Some('+'),
        '₋' => Some('-'),
        _ => None,
    }
}

fn enclosed(c: char) -> Option<u32> {
    let code = u32::from(c);
    let (first, _, number) = ENCLOSED.iter().find(|(first, last, _)| (*first..=*last).contains(&code))?;
    Some(number + code - first)
}

/// The value of a character that is a Roman numeral: one that stands alone has no letters beside it to tell.
fn roman(c: char) -> Option<u32> {
    let code = u32::from(c);
    let small = |first: u32| match code - first {
        at @ 0..12 => at + 1,
        12 => 50,
        13 => 100,
        14 => 500,
        _ => 1000,
    };
    Some(match code {
        0x2160..=0x216f => small(0x2160),
        0x2170..=0x217f => small(0x2170),
        0x2180 => 1000,
        0x2181 => 5000,
        0x2182 => 10_000,
        0x2185 => 6,
        0x2186 => 50,
        0x2187 => 50_000,
        0x2188 => 100_000,
        _ => return None,
    })
}

/// Numerator and denominator of `½` and its like; the denominator of `⅟` is what follows it.
fn fraction(c: char) -> Option<(String, String)> {
    let parts: String =
        matches!(c, '¼'..='¾' | '⅐'..='⅟' | '↉').then(|| std::iter::once(c).nfkc().collect())?;
    parts.split_once('⁄').map(|(above, below)| (above.to_string(), below.to_string()))
}

fn is_squared_unit(c: char) -> bool {
    matches!(c, '\u{3371}'..='\u{33df}')
}

/// What `c` is in Latin letters, digits and signs; `None` when it is that already, or has no such form.
pub fn latin(c: char) -> Option<String> {
    if c.is_ascii() {
        return None;
    }
    // White letters on black circles and squares have no decomposition.
    let on_black = match u32::from(c) {
        code @ 0x1f150..=0x1f169 => Some(code - 0x1f150),
        code @ 0x1f170..=0x1f189 => Some(code - 0x1f170),
        _ => None,
    };
    if let Some(letter) = on_black.and_then(|at| char::from_u32(u32::from('A') + at)) {
        return Some(letter.to_string());
    }
    let plain: String = std::iter::once(c).nfkc().collect();
    let is_latin = |c: char| {
        c.is_ascii_graphic() || matches!(c, '∕' | '₩' | '\u{a1}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
    };
    (!plain.chars().eq([c]) && plain.chars().all(is_latin)).then_some(plain)
}
