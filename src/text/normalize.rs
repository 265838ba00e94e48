//! One sentence as people type it in, one as people say it out.
//!
//! The result holds words of letters, apostrophes and inner hyphens, single spaces, and at most one
//! mark of `. , ; : ! ?` after a word. Linear in the length of the sentence.
//!
//! Never drops a digit or a letter; signs without a name are reported.

use super::abbreviations::{expansion, is_dotted_initials};
use super::clean::PHONEMES;
use super::numbers::{cardinal, clock, decade, fraction, ordinal, spelled, year};
use super::report;
use super::signs::{CURRENCIES, MAGNITUDE_LETTERS, MAGNITUDES, SIGNS, UNITS};

/// A sentence as it is said, and the signs that have no name.
#[derive(Debug, Default)]
pub struct Verbal {
    pub text: String,
    pub unmapped: Vec<char>,
}

/// Reads `sentence` (as `segment::sentences` leaves it) aloud.
pub fn verbalize(sentence: &str) -> Verbal {
    let mut reader = Reader::default();
    let mut tokens = sentence.split_whitespace().peekable();
    while let Some(token) = tokens.next() {
        reader.token(token, tokens.peek().copied());
    }
    Verbal { text: reader.out, unmapped: reader.unmapped }
}

#[derive(Default)]
struct Reader {
    out: String,
    unmapped: Vec<char>,
    /// A comma is due if another word follows.
    comma_due: bool,
    after_number: bool,
    /// The number before was a small whole one, and a fraction may belong to it: `2 1/3`.
    after_whole: bool,
    /// A currency that is named after the magnitude that follows: `$5 million`.
    currency_due: Option<&'static str>,
}

impl Reader {
    fn word(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if std::mem::take(&mut self.comma_due) {
            self.mark(',');
        }
        if !self.out.is_empty() {
            self.out.push(' ');
        }
        self.out.push_str(words);
        self.after_number = false;
        self.after_whole = false;
    }

    fn mark(&mut self, mark: char) {
        self.comma_due = false;
        self.after_whole = false;
        match self.out.chars().last() {
            None => {}
            Some(',' | ';' | ':') if matches!(mark, '.' | '!' | '?') => {
                self.out.pop();
                self.out.push(mark);
            }
            Some(',' | ';' | ':' | '.' | '!' | '?') => {}
            Some(_) => self.out.push(mark),
        }
    }

    fn token(&mut self, token: &str, next: Option<&str>) {
        if matches!(token, "->" | "-->" | "=>" | "==>") {
            return self.word("to");
        }
        let bare = token.trim_start_matches(['(', '[', '{', '"', '\'', '*', '_']);
        if bare.len() < token.len() && token.starts_with(['(', '[', '{']) {
            self.mark(',');
        }
        let next_initial = next.and_then(|n| n.chars().find(|c| c.is_alphanumeric() || *c == '#'));
        let (head, tail) =
            bare.split_at(bare.find(|c: char| !c.is_alphanumeric() && c != '.').unwrap_or(bare.len()));
        if let Some(short) = head.strip_suffix('.')
            && let Some(full) = expansion(short, next_initial)
        {
            self.word(full);
            let ends = next.is_none() && !tail.contains(['!', '?', ',']);
            return self.scan(if ends { "." } else { tail }, next);
        }
        let initials = head.strip_suffix('.').unwrap_or(head);
        if is_dotted_initials(initials) {
            let letters: Vec<String> = initials.split('.').map(str::to_uppercase).collect();
            self.word(&letters.join(" "));
            return self.scan(if head.ends_with('.') && next.is_none() { "." } else { tail }, next);
        }
        self.scan(bare, next);
    }

    fn scan(&mut self, token: &str, next: Option<&str>) {
        let chars: Vec<char> = strip_scheme(token).chars().collect();
        let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
        let before = |i: usize| i.checked_sub(1).map_or(' ', at);
        let mut i = 0;
        while i < chars.len() {
            let c = at(i);
            let (left, right) = (before(i), at(i + 1));
            let signed = matches!(c, '-' | '+') && !left.is_alphanumeric();
            let stop = c == '.' && left != '.' && !left.is_alphanumeric();
            if c.is_ascii_digit()
                || ((signed || stop || currency(c).is_some())
                    && begins_number(chars.get(i..).unwrap_or_default()))
            {
                i += self.number(&chars, i, next);
                continue;
            }
            if c.is_alphabetic() || unicode_normalization::char::is_combining_mark(c) {
                let end = word_end(&chars, i);
                let word: String = chars.get(i..end).unwrap_or_default().iter().collect();
                self.letters(&word);
                i = end;
                continue;
            }
            if let Some((_, one, many, _)) = currency(c) {
                // An amount of one is not told from twenty-one here: `1 €` is rare.
                self.word(if self.after_number { many } else { one });
                i += 1;
                continue;
            }
            match c {
                PHONEMES => self.word("\u{e000}"),
                '.' if left.is_alphanumeric() && right.is_alphanumeric() => self.word("dot"),
                '.' | ',' | ';' | '!' | '?' => self.mark(c),
                ':' => self.mark(if chars.len() == i + 1 { ':' } else { ',' }),
                '—' | '-' if joins_digits(&chars, i) && is_range(&chars, i) => self.word("to"),
                '—' | '-' if left.is_ascii_digit() && currency(right).is_some() => self.word("to"),
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

    fn letters(&mut self, word: &str) {
        let unit = UNITS.iter().find(|(short, _)| self.after_number && short.eq_ignore_ascii_case(word));
        let Some(currency) = self.currency_due.take() else {
            return self.word(unit.map_or(word, |(_, full)| full));
        };
        let magnitude = MAGNITUDE_LETTERS.iter().find(|(short, _)| short.eq_ignore_ascii_case(word));
        self.word(magnitude.map_or(word, |(_, full)| full));
        self.word(currency);
    }

    /// Reads the number at `start`; returns how many characters it took.
    fn number(&mut self, chars: &[char], start: usize, next: Option<&str>) -> usize {
        let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
        let digits_from = |from: usize| {
            chars.get(from..).unwrap_or_default().iter().take_while(|c| c.is_ascii_digit()).count()
        };
        let mut i = start;
        let mut prefix = None;
        loop {
            match at(i) {
                '-' => self.word("minus"),
                '+' => self.word("plus"),
                sign if prefix.is_none() && currency(sign).is_some() => prefix = currency(sign),
                _ => break,
            }
            i += 1;
        }
        let run = digits_from(i);
        let mut whole: String = chars.get(i..i + run).unwrap_or_default().iter().collect();
        i += run;
        let mut grouped = false;
        while (1..=3).contains(&run) && at(i) == ',' && digits_from(i + 1).min(4) == 3 {
            whole.extend(chars.get(i + 1..i + 4).unwrap_or_default());
            i += 4;
            grouped = true;
        }
        let glued = start.checked_sub(1).is_some_and(|before| at(before).is_alphabetic());
        let fraction_run = if at(i) == '.' { digits_from(i + 1) } else { 0 };
        let fraction: String = chars.get(i + 1..i + 1 + fraction_run).unwrap_or_default().iter().collect();
        let dotted_more =
            fraction_run > 0 && at(i + 1 + fraction_run) == '.' && at(i + 2 + fraction_run).is_ascii_digit();
        let amount_end = i + if fraction_run > 0 { fraction_run + 1 } else { 0 };
        let suffix = currency(at(amount_end))
            .filter(|_| prefix.is_none() && !dotted_more && !at(amount_end + 1).is_alphanumeric());
        if let Some((_, one, many, hundredth)) = prefix.or(suffix) {
            i = amount_end + usize::from(suffix.is_some());
            let magnitude = next.is_some_and(starts_with_magnitude);
            if fraction_run == 2 && !hundredth.is_empty() && !magnitude {
                let parts = fraction != "00";
                let units = !parts || !matches!(whole.as_str(), "" | "0");
                if units {
                    self.word(&cardinal(if whole.is_empty() { "0" } else { &whole }));
                    self.word(if whole == "1" { one } else { many });
                }
                if parts {
                    self.word(if units { "and" } else { "" });
                    self.word(&cardinal(fraction.trim_start_matches('0')));
                    self.word(&cents(hundredth, &fraction));
                }
            } else {
                self.decimal(&whole, &fraction);
                if magnitude || at(i).is_alphabetic() {
                    self.currency_due = Some(many);
                } else {
                    self.word(if whole == "1" && fraction.is_empty() { one } else { many });
                }
            }
            self.after_whole = fraction.is_empty();
            return i - start;
        }
        let below_run = if matches!(at(i), '/' | '⁄') { digits_from(i + 1) } else { 0 };
        let below: String = chars.get(i + 1..i + 1 + below_run).unwrap_or_default().iter().collect();
        let alone = !matches!(start.checked_sub(1).map_or(' ', at), '/' | '⁄' | ':')
            && !matches!(at(i + 1 + below_run), '/' | '⁄' | '.' | ':' if at(i + 2 + below_run).is_ascii_digit());
        let is_whole = (1..=3).contains(&run) && fraction_run == 0;
        if alone
            && is_whole
            && below_run > 0
            && let Some(words) = self::fraction(&whole, &below, self.after_whole)
        {
            self.word(if self.after_whole { "and" } else { "" });
            self.word(&words);
            self.after_number = true;
            return i + 1 + below_run - start;
        }
        let mut is_whole = is_whole;
        if fraction_run > 0 && !dotted_more {
            self.decimal(&whole, &fraction);
            i += fraction_run + 1;
        } else if fraction_run > 0 {
            // A version or an address: each part is a number of its own.
            self.word(&cardinal(&whole));
            self.word("point");
            i += 1;
        } else if at(i) == ':' && run <= 2 && digits_from(i + 1) == 2 {
            let minutes: String = chars.get(i + 1..i + 3).unwrap_or_default().iter().collect();
            i += 3;
            let half = |c: Option<char>| c.is_some_and(|c| matches!(c, 'a' | 'A' | 'p' | 'P'));
            let with_half = if i < chars.len() {
                half(chars.get(i).copied())
            } else {
                next.is_some_and(|next| half(next.chars().next()) && is_half_of_day(next))
            };
            self.word(&clock(&whole, &minutes, with_half));
            if at(i) == ':' && digits_from(i + 1) == 2 {
                let seconds: String = chars.get(i + 1..i + 3).unwrap_or_default().iter().collect();
                let seconds = seconds.trim_start_matches('0');
                if !seconds.is_empty() {
                    self.word("and");
                    self.word(&cardinal(seconds));
                    self.word(if seconds == "1" { "second" } else { "seconds" });
                }
                i += 3;
            }
            is_whole = false;
        } else {
            let suffix: String =
                chars.get(i..i + 2).unwrap_or_default().iter().map(char::to_ascii_lowercase).collect();
            let ends = |from: usize| !at(from).is_alphanumeric();
            if matches!(suffix.as_str(), "st" | "nd" | "rd" | "th") && ends(i + 2) {
                self.word(&ordinal(&whole));
                i += 2;
                is_whole = false;
            } else if at(i) == 's'
                && ends(i + 1)
                && let Some(words) = decade(&whole)
            {
                self.word(&words);
                i += 1;
            } else {
                let coded = |hyphen: Option<usize>| {
                    hyphen.is_some_and(|h| joins_digits(chars, h) && at(h) == '-' && !is_range(chars, h))
                };
                let as_year =
                    (!grouped && !glued && start + run == i && ends(i)).then(|| year(&whole)).flatten();
                self.word(&match as_year {
                    _ if coded(Some(i)) || coded(start.checked_sub(1)) => spelled(&whole),
                    Some(year) => year,
                    None => cardinal(&whole),
                });
            }
        }
        self.after_number = true;
        self.after_whole = is_whole && i == chars.len();
        i - start
    }

    fn decimal(&mut self, whole: &str, fraction: &str) {
        self.word(&cardinal(if whole.is_empty() { "0" } else { whole }));
        if !fraction.is_empty() {
            self.word("point");
            self.word(&spelled(fraction));
        }
    }
}

fn currency(sign: char) -> Option<&'static (char, &'static str, &'static str, &'static str)> {
    CURRENCIES.iter().find(|(known, ..)| *known == sign)
}

/// Whether a number is at the head of `chars`: `5`, `.5`, `-5`, `$5`, `$-5`, `-$.50`.
fn begins_number(chars: &[char]) -> bool {
    let mut rest = chars;
    let mut skip = |takes: fn(char) -> bool| {
        if rest.first().is_some_and(|c| takes(*c)) {
            rest = rest.get(1..).unwrap_or_default();
        }
    };
    skip(|c| matches!(c, '-' | '+'));
    skip(|c| currency(c).is_some());
    skip(|c| matches!(c, '-' | '+'));
    skip(|c| c == '.');
    rest.first().is_some_and(char::is_ascii_digit)
}

fn is_half_of_day(token: &str) -> bool {
    let letters: String = token.chars().filter(|c| *c != '.').take(3).collect();
    ["am", "pm"]
        .iter()
        .any(|half| letters.trim_end_matches([',', '!', '?', ';', ':']).eq_ignore_ascii_case(half))
}

fn cents(name: &str, count: &str) -> String {
    match (name, count) {
        (_, "01") => name.to_string(),
        ("penny", _) => "pence".to_string(),
        ("paisa", _) => "paise".to_string(),
        _ => format!("{name}s"),
    }
}

fn starts_with_magnitude(next: &str) -> bool {
    let word = next.trim_end_matches(|c: char| !c.is_alphabetic());
    MAGNITUDES.iter().any(|m| m.eq_ignore_ascii_case(word))
}

fn strip_scheme(token: &str) -> &str {
    ["https://", "http://"].iter().find_map(|scheme| token.strip_prefix(scheme)).unwrap_or(token)
}

fn joins_digits(chars: &[char], at: usize) -> bool {
    let digit = |i: Option<usize>| i.and_then(|i| chars.get(i)).is_some_and(char::is_ascii_digit);
    digit(at.checked_sub(1)) && digit(Some(at + 1))
}

/// `5-10` is a range; `555-1234`, `10-20-30` and `10-5` are not.
fn is_range(chars: &[char], at: usize) -> bool {
    let digit = |c: &&char| c.is_ascii_digit();
    let left: Vec<char> =
        chars.get(..at).unwrap_or_default().iter().rev().take(5).take_while(digit).copied().collect();
    let right: Vec<char> =
        chars.get(at + 1..).unwrap_or_default().iter().take(5).take_while(digit).copied().collect();
    let value =
        |digits: &mut dyn Iterator<Item = char>| digits.collect::<String>().parse::<u32>().unwrap_or(0);
    let edge = |i: Option<usize>| !i.and_then(|i| chars.get(i)).is_some_and(|c| matches!(c, '-' | '—'));
    left.len() <= 4
        && right.len() <= 4
        && (left.len(), right.len()) != (3, 4)
        && edge(at.checked_sub(left.len() + 1))
        && edge(Some(at + right.len() + 1))
        && value(&mut left.iter().rev().copied()) < value(&mut right.iter().copied())
}

/// The end of the run of letters at `start`, over inner apostrophes and hyphens.
fn word_end(chars: &[char], start: usize) -> usize {
    let letter = |i: usize| {
        chars.get(i).is_some_and(|c| {
            c.is_alphabetic() && *c != PHONEMES || unicode_normalization::char::is_combining_mark(*c)
        })
    };
    let mut end = start;
    while letter(end) || (end > start && matches!(chars.get(end), Some('\'' | '-')) && letter(end + 1)) {
        end += 1;
    }
    end
}
