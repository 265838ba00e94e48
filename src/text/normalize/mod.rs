//! One sentence as people type it in, one as people say it out.
//!
//! Each word is tried against the kinds of [`KINDS`] (a date, a telephone number, an address…), each a file with its
//! table; what is of no kind is read letter by letter and number by number (`scan`, `number`). The result holds
//! words of letters, apostrophes and inner hyphens, single spaces, and at most one mark of `. , ; : ! ?` after a
//! word. Linear in the length of the sentence.
//!
//! Never drops a digit or a letter; signs without a name are reported.

mod address;
mod date;
mod measure;
mod money;
mod number;
mod phone;
mod phrases;
mod roman;
mod scan;
mod time;
mod token;

pub(super) use date::{month_of, name as month_name, spoken as date_words, year_words};
pub(super) use time::of_day;

use super::abbreviations::{Neighbours, expansion, is_dotted_initials};
use super::clean::PHONEMES;
use super::signs::MAGNITUDES;
use super::{Markup, Reading};
use token::{Amount, Here, Part, Said};

/// Words that are looked at and taken as one, the first kind that knows them.
const KINDS: [fn(&Here) -> Option<Said>; 7] =
    [phrases::read, phone::read, date::read, time::read, measure::read, address::read, roman::read];

/// A sentence as it is said, and the signs that have no name.
#[derive(Debug, Default)]
pub struct Verbal {
    pub text: String,
    pub unmapped: Vec<char>,
}

/// Reads `sentence` (as `segment::sentences` leaves it) aloud.
pub fn verbalize(sentence: &str, reading: &Reading) -> Verbal {
    let tokens: Vec<&str> = sentence.split_whitespace().collect();
    let mut reader = Reader::new(reading);
    reader.equation = sentence.contains('=');
    let mut at = 0;
    let mut in_quotes = false;
    while let Some(&token) = tokens.get(at) {
        let here =
            Here { tokens: &tokens, at, part: Part::of(token), date_order: reading.date_order, in_quotes };
        let taken = reader.token(&here);
        for part in tokens.get(at..at + taken).unwrap_or_default().iter().map(|token| Part::of(token)) {
            // What closes nothing is a sign of inches.
            in_quotes = (in_quotes || part.open.contains('"')) && !part.tail.contains('"');
        }
        at += taken;
    }
    Verbal { text: reader.out, unmapped: reader.unmapped }
}

/// What has been said of a sentence, and what the words to come depend on.
#[derive(Debug)]
struct Reader {
    markup: Markup,
    out: String,
    unmapped: Vec<char>,
    /// A comma is due if another word follows.
    comma_due: bool,
    /// The number that was just said.
    amount: Amount,
    /// The number before was a small whole one, and a fraction may belong to it: `2 1/3`.
    after_whole: bool,
    /// A currency that is named after the magnitude that follows: `$5 million`.
    currency_due: Option<&'static str>,
    /// The sentence has an equals sign: a hyphen between two operands takes one from the other.
    equation: bool,
    /// Hours were said, and minutes may follow: `12h 30m`.
    after_hours: bool,
}

impl Reader {
    fn new(reading: &Reading) -> Self {
        Self {
            markup: reading.markup,
            out: String::new(),
            unmapped: Vec::new(),
            comma_due: false,
            amount: Amount::None,
            after_whole: false,
            currency_due: None,
            equation: false,
            after_hours: false,
        }
    }

    /// A sign between two operands that stands alone: `5 * 6`, `2 x 3`, `12 - 5 = 7`.
    fn operator(&self, here: &Here) -> Option<&'static str> {
        if !matches!(here.token(), "*" | "x" | "-") {
            return None;
        }
        let (before, next) = (here.before_marked()?, here.ahead(1)?);
        let number = |part: &Part| part.core.starts_with(|c: char| c.is_ascii_digit());
        let operand = |part: &Part| number(part) || part.core.chars().nth(1).is_none();
        let numbers = number(&next) && (number(&before) || scan::unit(before.core, Amount::Many).is_some());
        match here.token() {
            "*" if numbers => Some("times"),
            "x" if numbers => Some("by"),
            "-" if self.equation && operand(&before) && operand(&next) => Some("minus"),
            _ => None,
        }
    }

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
        self.amount = Amount::None;
        self.after_whole = false;
    }

    fn mark(&mut self, mark: char) {
        self.comma_due = false;
        self.after_whole = false;
        self.after_hours = false;
        self.amount = Amount::None;
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

    /// Reads the word that is `here`; returns how many words that took.
    fn token(&mut self, here: &Here) -> usize {
        let (token, part) = (here.token(), here.part);
        if matches!(token, "->" | "-->" | "=>" | "==>") {
            self.word("to");
            return 1;
        }
        let next = here.tokens.get(here.at + 1).copied();
        if let Some(word) = self.operator(here) {
            self.word(word);
            return 1;
        }
        if self.markup != Markup::Strip && token.contains(['*', '_', '`', '~', '#']) {
            self.scan(token, next, None);
            return 1;
        }
        if part.open.contains(['(', '[', '{']) && token.starts_with(['(', '[', '{']) {
            self.mark(',');
        }
        if let Some(words) = squared(here, self.amount) {
            self.word(&words);
            self.scan(
                here.ahead(1).map_or("", |next| next.tail),
                here.tokens.get(here.at + 2).copied(),
                None,
            );
            return 2;
        }
        if let Some((currency, amount, taken)) = money::grouped(here) {
            self.scan(&amount, None, Some(currency));
            self.scan(here.ahead(taken - 1).map_or("", |last| last.tail), next, None);
            return taken;
        }
        if let Some(said) = KINDS.iter().find_map(|kind| kind(here)) {
            self.word(&said.words);
            self.amount = said.amount;
            let tail = here.ahead(said.taken - 1).map_or("", |last| last.tail);
            self.scan(
                tail.trim_start_matches(['"', '\'']),
                here.tokens.get(here.at + said.taken).copied(),
                None,
            );
            if tail.is_empty() {
                self.amount = said.amount;
            }
            return said.taken;
        }
        if let Some((currency, amount, taken)) = money::lettered(here) {
            let next = here.tokens.get(here.at + taken).copied();
            let tail = here.ahead(taken - 1).map_or("", |last| last.tail);
            self.scan(amount, next, Some(currency));
            self.scan(tail, next, None);
            return taken;
        }
        let bare = part.bare(token);
        let near = here.tokens.get(here.at.saturating_sub(3)..here.at).unwrap_or_default();
        let numbered = near.iter().any(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let neighbours = Neighbours { before: here.before().map(|part| part.core), next, numbered };
        let (head, tail) =
            bare.split_at(bare.find(|c: char| !c.is_alphanumeric() && c != '.').unwrap_or(bare.len()));
        // `Baker St., London`: what follows the mark is not its name.
        let neighbours =
            Neighbours { next: next.filter(|_| !tail.starts_with([',', ';', ':', ')'])), ..neighbours };
        if let Some(short) = head.strip_suffix('.')
            && let Some(full) = expansion(short, &neighbours)
        {
            self.word(full);
            let ends = next.is_none() && !tail.contains(['!', '?', ',']);
            self.scan(if ends { "." } else { tail }, next, None);
            return 1;
        }
        let initials = head.strip_suffix('.').unwrap_or(head);
        if is_dotted_initials(initials) {
            let letters: Vec<String> = initials.split('.').map(str::to_uppercase).collect();
            self.word(&letters.join(" "));
            self.scan(if head.ends_with('.') && next.is_none() { "." } else { tail }, next, None);
            return 1;
        }
        self.scan(bare, next, None);
        1
    }
}

/// `km` before "squared" or behind `sq`, behind a number: "square kilometers".
fn squared(here: &Here, amount: Amount) -> Option<String> {
    (amount != Amount::None && here.part.open.is_empty()).then_some(())?;
    let next = here.ahead(1).filter(|next| next.open.is_empty())?;
    let before = match here.part.core {
        "sq" => Some("square"),
        "cu" => Some("cubic"),
        "fl" if next.core == "oz" => Some("fluid"),
        _ => None,
    };
    if let Some(before) = before {
        let inches = if amount == Amount::One { "inch" } else { "inches" };
        let unit = scan::unit(next.core, amount).or((next.core == "in").then_some(inches))?;
        return Some(format!("{before} {unit}"));
    }
    here.part.tail.is_empty().then_some(())?;
    let power = match next.core {
        "squared" => "square",
        "cubed" => "cubic",
        _ => return None,
    };
    Some(format!("{power} {}", scan::unit(here.part.core, amount)?))
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
    skip(|c| money::of_sign(c).is_some());
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

fn starts_with_magnitude(next: &str) -> bool {
    let word = next.trim_end_matches(|c: char| !c.is_alphabetic());
    MAGNITUDES.iter().any(|m| m.eq_ignore_ascii_case(word))
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

/// `10-0`, `21-19` and `747-400`: two numbers that are said one after the other.
fn is_pair(chars: &[char], at: usize) -> bool {
    let run = |digits: &mut dyn Iterator<Item = &char>| -> Vec<char> {
        digits.take(4).take_while(|c| c.is_ascii_digit()).copied().collect()
    };
    let left = run(&mut chars.get(..at).unwrap_or_default().iter().rev());
    let right = run(&mut chars.get(at + 1..).unwrap_or_default().iter());
    let apart = |i: Option<usize>| {
        !i.and_then(|i| chars.get(i)).is_some_and(|c| matches!(c, '-' | '—') || c.is_alphanumeric())
    };
    let plain = |first: Option<&char>, digits: &[char]| {
        (1..=3).contains(&digits.len()) && (digits.len() == 1 || first != Some(&'0'))
    };
    plain(left.last(), &left)
        && plain(right.first(), &right)
        && apart(at.checked_sub(left.len() + 1))
        && apart(Some(at + right.len() + 1))
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
