//! A number inside a word in, its words and what stands at its sides out.
//!
//! Never leaves a digit unspoken.

use super::super::numbers::{cardinal, clock, decade, fraction, ordinal, spelled, year};
use super::super::signs::{Currency, UNITS};
use super::money;
use super::token::Amount;
use super::{Reader, is_half_of_day, is_pair, is_range, joins_digits, starts_with_magnitude};

/// The characters of a word and the one that is looked at.
#[derive(Clone, Copy)]
struct Digits<'a> {
    chars: &'a [char],
}

impl Digits<'_> {
    fn at(&self, i: usize) -> char {
        self.chars.get(i).copied().unwrap_or(' ')
    }

    fn before(&self, i: usize) -> char {
        i.checked_sub(1).map_or(' ', |i| self.at(i))
    }

    fn run(&self, from: usize) -> usize {
        self.chars.get(from..).unwrap_or_default().iter().take_while(|c| c.is_ascii_digit()).count()
    }

    /// At most `most` digits of the run at `from`.
    fn few(&self, from: usize, most: usize) -> usize {
        self.chars
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take(most)
            .take_while(|c| c.is_ascii_digit())
            .count()
    }

    fn text(&self, from: usize, to: usize) -> String {
        self.chars.get(from..to).unwrap_or_default().iter().collect()
    }
}

impl Reader {
    /// Reads the number at `start`, an amount of `given` if it is one; returns how many characters it took.
    pub fn number(
        &mut self,
        chars: &[char],
        start: usize,
        next: Option<&str>,
        given: Option<&'static Currency>,
    ) -> usize {
        let digits = Digits { chars };
        let mut i = start;
        let mut prefix = given;
        loop {
            match digits.at(i) {
                '-' => self.word("minus"),
                '+' => self.word("plus"),
                sign if prefix.is_none() && money::of_sign(sign).is_some() => prefix = money::of_sign(sign),
                _ => break,
            }
            i += 1;
        }
        let run = digits.run(i);
        let mut whole = digits.text(i, i + run);
        i += run;
        while (1..=3).contains(&run) && digits.at(i) == ',' && digits.few(i + 1, 4) == 3 {
            whole.push_str(&digits.text(i + 1, i + 4));
            i += 4;
        }
        let fraction_run = if digits.at(i) == '.' { digits.run(i + 1) } else { 0 };
        let fraction_digits = digits.text(i + 1, i + 1 + fraction_run);
        let after = i + 1 + fraction_run;
        let dotted_more =
            fraction_run > 0 && digits.at(after) == '.' && digits.at(after + 1).is_ascii_digit();
        let amount_end = if fraction_run > 0 { after } else { i };
        let suffix = money::of_sign(digits.at(amount_end))
            .filter(|_| prefix.is_none() && !dotted_more && !digits.at(amount_end + 1).is_alphanumeric());
        if let Some(currency) = prefix.or(suffix) {
            let end = amount_end + usize::from(suffix.is_some());
            let spans = matches!(digits.at(end), '-' | '—') && digits.at(end + 1).is_ascii_digit();
            if given.is_none() && suffix.is_none() && spans {
                // `$5-10`: the currency is said once.
                self.decimal(&whole, &fraction_digits);
                self.word("to");
                return end + 1 - start + self.number(chars, end + 1, next, Some(currency));
            }
            self.amount_of(currency, &whole, &fraction_digits, next, digits.at(end));
            if digits.at(end) == '/' {
                self.amount = Amount::Many;
            }
            return end - start;
        }
        let below_run = if matches!(digits.at(i), '/' | '⁄') { digits.run(i + 1) } else { 0 };
        let end = i + 1 + below_run;
        let alone = !matches!(digits.before(start), '/' | '⁄' | ':')
            && !matches!(digits.at(end), '/' | '⁄' | '.' | ':' if digits.at(end + 1).is_ascii_digit());
        let is_whole = (1..=3).contains(&run) && fraction_run == 0;
        if alone
            && is_whole
            && below_run > 0
            && let Some(words) = fraction(&whole, &digits.text(i + 1, end), self.after_whole)
        {
            self.word(if self.after_whole { "and" } else { "" });
            self.word(&words);
            self.amount = Amount::Many;
            return end - start;
        }
        let mut is_whole = is_whole;
        if fraction_run > 0 && !dotted_more {
            self.decimal(&whole, &fraction_digits);
            i = after;
        } else if fraction_run > 0 {
            // A version or an address: each part is a number of its own.
            self.word(&cardinal(&whole));
            self.word("point");
            i += 1;
        } else if digits.at(i) == ':' && run <= 2 && digits.few(i + 1, 3) == 2 {
            i = self.time(digits, &whole, i, next);
            is_whole = false;
        } else {
            (i, is_whole) = self.whole(digits, &whole, (start, i), next, is_whole);
        }
        let code = digits.before(start).is_alphabetic()
            && !(digits.before(start) == 'x'
                && start.checked_sub(1).is_some_and(|x| digits.before(x).is_ascii_digit()));
        self.amount = match whole.as_str() {
            // `N95s`: what follows a code is no unit.
            _ if code => Amount::None,
            "1" if fraction_run == 0 => Amount::One,
            _ => Amount::Many,
        };
        self.after_whole = is_whole && i == chars.len();
        i - start
    }

    /// An amount of money; `after` is the character behind it.
    fn amount_of(
        &mut self,
        currency: &'static Currency,
        whole: &str,
        fraction: &str,
        next: Option<&str>,
        after: char,
    ) {
        let magnitude = next.is_some_and(starts_with_magnitude) || after.is_alphabetic();
        if fraction.len() == 2 && !currency.hundredth.is_empty() && !magnitude {
            let parts = fraction != "00";
            let units = !parts || !matches!(whole, "" | "0");
            if units {
                self.word(&cardinal(if whole.is_empty() { "0" } else { whole }));
                self.word(if whole == "1" { currency.one } else { currency.many });
            }
            if parts {
                self.word(if units { "and" } else { "" });
                self.word(&cardinal(fraction.trim_start_matches('0')));
                self.word(&money::hundredths(currency.hundredth, fraction));
            }
        } else {
            self.decimal(whole, fraction);
            if magnitude {
                self.currency_due = Some(currency.many);
            } else {
                self.word(if whole == "1" && fraction.is_empty() { currency.one } else { currency.many });
            }
        }
        self.after_whole = fraction.is_empty();
    }

    /// The time of day whose hours end before `i`; returns where it ends.
    fn time(&mut self, digits: Digits, hours: &str, i: usize, next: Option<&str>) -> usize {
        let minutes = digits.text(i + 1, i + 3);
        let mut i = i + 3;
        let half = |c: Option<char>| c.is_some_and(|c| matches!(c, 'a' | 'A' | 'p' | 'P'));
        let with_half = if i < digits.chars.len() {
            half(digits.chars.get(i).copied())
        } else {
            next.is_some_and(|next| half(next.chars().next()) && is_half_of_day(next))
        };
        self.word(&clock(hours, &minutes, with_half));
        if digits.at(i) == ':' && digits.few(i + 1, 3) == 2 {
            let seconds = digits.text(i + 1, i + 3);
            let seconds = seconds.trim_start_matches('0');
            if !seconds.is_empty() {
                self.word("and");
                self.word(&cardinal(seconds));
                self.word(if seconds == "1" { "second" } else { "seconds" });
            }
            i += 3;
        }
        i
    }

    /// A whole number with its suffix: `1st`, `1990s`, a year, a code or a count.
    fn whole(
        &mut self,
        digits: Digits,
        whole: &str,
        (start, end): (usize, usize),
        next: Option<&str>,
        is_whole: bool,
    ) -> (usize, bool) {
        let suffix = digits.text(end, end + 2).to_ascii_lowercase();
        let ends = |from: usize| !digits.at(from).is_alphanumeric();
        let in_word = digits.before(start).is_alphabetic();
        if matches!(suffix.as_str(), "st" | "nd" | "rd" | "th") && ends(end + 2) && !in_word {
            self.word(&ordinal(whole));
            return (end + 2, false);
        }
        let apostrophe = usize::from(digits.at(end) == '\'');
        if digits.at(end + apostrophe) == 's' && ends(end + apostrophe + 1) && !in_word {
            if let Some(words) = decade(whole) {
                self.word(&words);
                return (end + apostrophe + 1, is_whole);
            }
            if apostrophe > 0 {
                self.word(&format!("{}'s", cardinal(whole)));
                return (end + 2, false);
            }
        }
        let coded = |hyphen: Option<usize>| {
            hyphen.is_some_and(|h| {
                joins_digits(digits.chars, h)
                    && digits.at(h) == '-'
                    && !is_range(digits.chars, h)
                    && !is_pair(digits.chars, h)
            })
        };
        let measured = next.is_some_and(|next| {
            let word = next.trim_end_matches(|c: char| !c.is_alphanumeric());
            UNITS.iter().any(|(short, ..)| *short == word)
        });
        let plain = !measured && !digits.before(start).is_alphabetic() && start + whole.len() == end;
        let as_year = (plain && ends(end)).then(|| year(whole)).flatten();
        self.word(&match as_year {
            _ if coded(Some(end)) || coded(start.checked_sub(1)) => spelled(whole),
            Some(year) => year,
            None => cardinal(whole),
        });
        (end, is_whole)
    }

    fn decimal(&mut self, whole: &str, fraction: &str) {
        self.word(&cardinal(if whole.is_empty() { "0" } else { whole }));
        if !fraction.is_empty() {
            self.word("point");
            self.word(&spelled(fraction));
        }
    }
}
