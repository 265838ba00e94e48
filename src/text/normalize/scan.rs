//! A word of no known shape in, its letters, numbers and signs one after another out.
//!
//! Never drops a letter or a digit; a sign without a name is reported.

use super::super::Markup;
use super::super::clean::PHONEMES;
use super::super::report;
use super::super::signs::{Currency, GREEK, MAGNITUDE_LETTERS, MARKUP_SIGNS, PERIODS, SIGNS, UNITS};
use super::token::Amount;
use super::{Reader, begins_number, is_range, joins_digits, money, starts_with_magnitude, word_end};

impl Reader {
    /// Reads `token` character by character; its first number is an amount of `given`, if that is a currency.
    pub fn scan(&mut self, token: &str, next: Option<&str>, mut given: Option<&'static Currency>) {
        let chars: Vec<char> = token.chars().collect();
        let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
        let before = |i: usize| i.checked_sub(1).map_or(' ', at);
        let equation = self.equation && chars.contains(&'=');
        let mut i = 0;
        while i < chars.len() {
            let c = at(i);
            let (left, right) = (before(i), at(i + 1));
            let signed =
                matches!(c, '-' | '+') && !left.is_alphanumeric() && !matches!(left, '%' | '°' | ')' | '"');
            let stop = c == '.' && left != '.' && !left.is_alphanumeric();
            if c.is_ascii_digit()
                || ((signed || stop || money::of_sign(c).is_some())
                    && begins_number(chars.get(i..).unwrap_or_default()))
            {
                i += self.number(&chars, i, next, given.take());
                continue;
            }
            let faster = chars.len() == i + 1
                && !self.equation
                && next.is_some_and(|next| next.len() > 1 && next.starts_with(char::is_lowercase));
            if c == 'x' && left.is_ascii_digit() && (right.is_ascii_digit() || faster) {
                // `2x4` and `5x faster`, but `3x - 4`
                self.word(if right.is_ascii_digit() { "by" } else { "times" });
                i += 1;
                continue;
            }
            if c.is_alphabetic() || unicode_normalization::char::is_combining_mark(c) {
                let end = word_end(&chars, i);
                let word: String = chars.get(i..end).unwrap_or_default().iter().collect();
                let glued = left.is_ascii_digit();
                let per = at(end) == '/' && self.amount != Amount::None;
                let rate_end = if per { word_end(&chars, end + 1) } else { end };
                let rate: String = chars.get(end + 1..rate_end).unwrap_or_default().iter().collect();
                if per && rate_end > end + 1 && self.rate(&word, &rate) {
                    i = rate_end;
                    continue;
                }
                if !glued
                    && self.amount != Amount::None
                    && at(end) == '.'
                    && next.is_some_and(|next| {
                        next.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
                    })
                    && let Some(name) = compass(&word)
                {
                    self.word(name);
                    i = end + 1;
                    continue;
                }
                let long = i > 1 && matches!(before(i - 1), '0'..='9' | '.');
                match magnitude(&word, long).filter(|_| glued && self.currency_due.is_none()) {
                    Some(full) => {
                        self.word(full);
                        self.amount = Amount::Many;
                    }
                    None => self.letters(&word, glued),
                }
                i = end;
                continue;
            }
            if let Some(currency) = money::of_sign(c) {
                self.word(if self.amount == Amount::Many { currency.many } else { currency.one });
                i += 1;
                continue;
            }
            if c == '°' && self.amount != Amount::None {
                i += self.degrees(right, at(i + 2));
                continue;
            }
            if self.markup != Markup::Strip && MARKUP_SIGNS.iter().any(|(sign, _)| *sign == c) {
                self.markup_sign(c, right);
                i += 1;
                continue;
            }
            match c {
                PHONEMES => self.word("\u{e000}"),
                '.' if left.is_alphanumeric() && right.is_alphanumeric() => self.word("dot"),
                '.' if right == ',' => {}
                // The stop of a short form: the sentence goes on.
                '.' if chars.len() == i + 1
                    && (left.is_alphanumeric() || i == 0)
                    && next.is_some_and(|next| next.starts_with(char::is_lowercase)) => {}
                '.' | ',' | ';' | '!' | '?' => self.mark(c),
                ':' => self.mark(if chars.len() == i + 1 { ':' } else { ',' }),
                '-' if equation && is_operand(&chars, i) => self.word("minus"),
                '—' | '-' if joins_digits(&chars, i) && is_range(&chars, i) => self.word("to"),
                '—' | '-' if matches!(left, '%' | '°') && right.is_ascii_digit() => self.word("to"),
                // A grade, a blood group, an ion: `A-`. `I-` is cut short.
                '-' if i < 3
                    && left.is_ascii_uppercase()
                    && left != 'I'
                    && matches!(right, ' ' | ',' | '.' | ')' | ';') =>
                {
                    self.word("minus");
                }
                '—' | '-' if left.is_alphanumeric() && money::of_sign(right).is_some() => self.word("to"),
                '/' if left.is_ascii_digit() && money::of_sign(right).is_some() => self.word("for"),
                '~' if left.is_ascii_digit() && begins_number(chars.get(i + 1..).unwrap_or_default()) => {
                    self.word("to")
                }
                '~' if !left.is_alphanumeric() && begins_number(chars.get(i + 1..).unwrap_or_default()) => {
                    self.word("about")
                }
                '-' if left.is_alphanumeric() || right.is_alphanumeric() => {}
                '—' | '-' | '|' | '·' | '(' | '[' | '{' => self.comma_due = !self.out.is_empty(),
                ')' | ']' | '}' => self.comma_due = !self.out.is_empty(),
                '"' | '\'' | '*' | '_' | '`' | '~' | '\u{fffd}' => {
                    if c == '*' && left.is_ascii_digit() && right.is_ascii_digit() {
                        self.word("times");
                    } else if c == '\u{fffd}' {
                        report(&mut self.unmapped, [c]);
                    }
                }
                '#' => {
                    if right.is_ascii_digit() {
                        self.word("number");
                    } else if left.is_alphanumeric() {
                        self.word("sharp");
                    }
                }
                '/' if self.amount != Amount::None && right.is_alphabetic() => {
                    let end = word_end(&chars, i + 1);
                    let word: String = chars.get(i + 1..end).unwrap_or_default().iter().collect();
                    match self.per(&word).filter(|_| !at(end).is_ascii_digit()) {
                        Some(words) => {
                            self.word(&words);
                            i = end;
                            continue;
                        }
                        None => self.word("slash"),
                    }
                }
                '/' if !(left.is_alphanumeric() && right.is_alphanumeric()) && chars.len() > 1 => {}
                _ => match SIGNS.iter().find(|(sign, _)| *sign == c) {
                    Some((_, name)) => self.word(name),
                    None => report(&mut self.unmapped, [c]),
                },
            }
            i += 1;
        }
        if let Some(currency) = self.currency_due
            && !next.is_some_and(starts_with_magnitude)
        {
            self.currency_due = None;
            let mark = self.out.ends_with(['.', ',', ';', ':', '!', '?']).then(|| self.out.pop()).flatten();
            self.word(currency);
            self.out.extend(mark);
        }
    }

    /// A word, or behind a number a unit or a magnitude.
    fn letters(&mut self, word: &str, glued: bool) {
        if let Some(currency) = self.currency_due.take() {
            let magnitude = MAGNITUDE_LETTERS.iter().find(|(short, _)| short.eq_ignore_ascii_case(word));
            self.word(magnitude.map_or(word, |(_, full)| full));
            return self.word(currency);
        }
        match std::mem::take(&mut self.amount) {
            Amount::None => {}
            _ if glued && matches!(word, "K" | "k") => return self.word("K"),
            _ if glued && word == "m" && std::mem::take(&mut self.after_hours) => {
                return self.word("minutes");
            }
            amount => {
                if let Some(unit) = unit(word, amount) {
                    self.after_hours = unit.starts_with("hour");
                    return self.word(unit);
                }
            }
        }
        if let Some((name, rest)) = greek(word) {
            self.word(name);
            return self.word(rest);
        }
        let hyphenated =
            word.contains('-') && word.split('-').all(|part| part.chars().all(char::is_uppercase));
        match hyphenated {
            true => self.word(&word.replace('-', " ")),
            false => self.word(word),
        }
    }

    /// `m/s` behind a number; false when it is none.
    fn rate(&mut self, above: &str, below: &str) -> bool {
        let amount = self.amount;
        match (unit(above, amount), unit(below, Amount::One)) {
            (Some(above), Some(below)) => {
                self.word(&format!("{above} per {below}"));
                true
            }
            _ => false,
        }
    }

    /// `/month` and `/lb` behind an amount; `None` when `below` is nothing that there is one of.
    fn per(&self, below: &str) -> Option<String> {
        let period = PERIODS.iter().find(|(short, _)| *short == below).map(|(_, full)| *full);
        let word = Some(below).filter(|word| word.len() > 2 && word.bytes().all(|c| c.is_ascii_lowercase()));
        let one = period.or_else(|| unit(below, Amount::One)).or(word)?;
        Some(format!("per {one}"))
    }

    /// `°C` and `°` behind a number; returns how many characters it took.
    fn degrees(&mut self, right: char, after: char) -> usize {
        let degrees = if self.amount == Amount::One { "degree" } else { "degrees" };
        self.word(degrees);
        let scale = |c: char| SCALES.iter().find(|(letter, _)| *letter == c).map(|(_, name)| *name);
        match scale(right).filter(|_| !after.is_alphanumeric()) {
            Some(name) => {
                self.word(name);
                2
            }
            None => 1,
        }
    }

    fn markup_sign(&mut self, sign: char, right: char) {
        if sign == '#' && right.is_ascii_digit() {
            return self.word("number");
        }
        match self.markup {
            Markup::Speak => {
                let name =
                    MARKUP_SIGNS.iter().find(|(known, _)| *known == sign).map_or("", |(_, name)| *name);
                self.word(name);
            }
            _ => report(&mut self.unmapped, [sign]),
        }
    }
}

/// Whether what stands on both sides of the sign at `at` is a number, or a letter alone.
fn is_operand(chars: &[char], at: usize) -> bool {
    let alone = |near: Option<usize>, beyond: Option<usize>| {
        let get = |i: Option<usize>| i.and_then(|i| chars.get(i)).copied().unwrap_or(' ');
        get(near).is_ascii_digit() || (get(near).is_alphabetic() && !get(beyond).is_alphabetic())
    };
    alone(at.checked_sub(1), at.checked_sub(2)) && alone(Some(at + 1), Some(at + 2))
}

/// The quarter of the town in an address: `123 N. Main St.`
fn compass(word: &str) -> Option<&'static str> {
    Some(match word {
        "N" => "north",
        "S" => "south",
        "E" => "east",
        "W" => "west",
        _ => return None,
    })
}

/// Scales of temperature.
const SCALES: [(char, &str); 3] = [('C', "Celsius"), ('F', "Fahrenheit"), ('K', "Kelvin")];

/// Millions and more right behind digits; `3M` is a company's name, and only a `long` number is counted in `M`.
fn magnitude(word: &str, long: bool) -> Option<&'static str> {
    let word = if word == "M" && long { "mn" } else { word };
    MAGNITUDE_LETTERS.iter().find(|(short, _)| short.len() > 1 && *short == word).map(|(_, full)| *full)
}

/// The name of a Greek letter that is the only one of its word, and what follows it: `Δt`, `α-particle`.
fn greek(word: &str) -> Option<(&'static str, &str)> {
    let mut letters = word.chars();
    let letter = letters.next()?.to_lowercase().next()?;
    let rest = letters.as_str();
    let name = GREEK.iter().find(|(known, _)| *known == letter).map(|(_, name)| *name)?;
    rest.is_ascii().then(|| (name, rest.trim_start_matches('-')))
}

/// The unit written as `short`, as so many of it are said.
pub fn unit(short: &str, amount: Amount) -> Option<&'static str> {
    let exact = UNITS.iter().find(|(known, ..)| *known == short);
    let alike = || UNITS.iter().find(|(known, ..)| known.len() > 1 && known.eq_ignore_ascii_case(short));
    exact.or_else(alike).map(|(_, one, many)| if amount == Amount::One { *one } else { *many })
}
