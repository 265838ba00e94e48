//! A sentence as it was written in, the same with what lexicons say of its words out.
//!
//! A grapheme is found between letters and digits of no other word, the longest first: before marks, hyphens and
//! `'s`, in quotes, in a host name, but not in `can't`, `2.42` or a longer word. Time is linear in the sentence,
//! for lexicons as they are.
//!
//! Never changes what no lexicon names.

use std::vec::IntoIter;

use super::{Lexicon, Pronunciation};
use crate::text::clean::PHONEMES;
use crate::text::ipa;

/// A word whose phonemes are given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// As it was written.
    pub text: String,
    pub ipa: String,
}

/// What may follow a word after an apostrophe, and its sound.
const ENDINGS: [(&str, &str); 5] = [("s", ""), ("ll", "əl"), ("ve", "əv"), ("re", "ɚ"), ("d", "d")];

/// A grapheme in a sentence.
struct Found<'a> {
    said: &'a Pronunciation,
    /// Where it ends, in characters, and where its ending does.
    end: usize,
    after_ending: usize,
}

/// `sentence` with aliases for what the `lexicons`, of which earlier ones win, say of it, and a [`PHONEMES`] for
/// each word whose phonemes they or `inline` give; those in order. Phonemes are only looked for if the voice
/// `takes_phonemes`. `None` when the lexicons say more than `room` bytes, from which it is taken.
pub fn apply(
    sentence: &str,
    lexicons: &[&Lexicon],
    takes_phonemes: bool,
    inline: &mut IntoIter<String>,
    room: &mut usize,
) -> Option<(String, Vec<Given>)> {
    let chars: Vec<char> = sentence.chars().collect();
    let (mut out, mut given) = (String::with_capacity(sentence.len()), Vec::new());
    let mut i = 0;
    while let Some(&c) = chars.get(i) {
        if c == PHONEMES {
            let ipa = inline.next().unwrap_or_default();
            given.push(Given { text: ipa.clone(), ipa });
        }
        let found = match begins(&chars, i) {
            true => lexicons.iter().find_map(|lexicon| longest(lexicon, &chars, i, takes_phonemes)),
            false => None,
        };
        let Some(found) = found else {
            out.push(c);
            i += 1;
            continue;
        };
        let (Pronunciation::Alias(said) | Pronunciation::Phonemes(said)) = found.said;
        *room = room.checked_sub(said.len())?;
        name_sign_before(&chars, i, &mut out);
        let text: String = chars.get(i..found.after_ending).unwrap_or_default().iter().collect();
        let ending: String = chars.get(found.end..found.after_ending).unwrap_or_default().iter().collect();
        match found.said {
            Pronunciation::Alias(alias) => out.extend([alias.as_str(), &ending]),
            Pronunciation::Phonemes(ipa) => {
                out.push(PHONEMES);
                given.push(Given { text, ipa: with_ending(ipa, &ending) });
            }
        }
        i = found.after_ending;
        if let Some(name) = sign(&chars, i) {
            out.push_str(name);
            i += 1;
        }
    }
    Some((out, given))
}

fn longest<'a>(lexicon: &'a Lexicon, chars: &[char], start: usize, phonemes: bool) -> Option<Found<'a>> {
    let initial = chars.get(start)?.to_lowercase().next()?;
    if !lexicon.initials.contains(&initial) {
        return None;
    }
    let last = chars.len().min(start + lexicon.longest);
    (start + 1..=last).rev().find_map(|end| {
        let after_ending = ends(chars, end)?;
        let grapheme: String = chars.get(start..end)?.iter().collect();
        let usable = |said: &&Pronunciation| phonemes || matches!(said, Pronunciation::Alias(_));
        let said = lexicon.find(&grapheme).filter(usable)?;
        Some(Found { said, end, after_ending })
    })
}

fn is_inner(c: Option<&char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(*c))
}

fn joins_digits(before: Option<&char>, sign: Option<&char>, after: Option<&char>) -> bool {
    let digit = |c: Option<&char>| c.is_some_and(char::is_ascii_digit);
    digit(before) && digit(after) && matches!(sign, Some('.' | ',' | ':' | '/'))
}

/// Whether a word can begin at `start`.
fn begins(chars: &[char], start: usize) -> bool {
    let before = |n: usize| start.checked_sub(n).and_then(|i| chars.get(i));
    let here = chars.get(start);
    let in_contraction = before(1) == Some(&'\'') && is_inner(before(2));
    !here.is_some_and(|c| c.is_whitespace())
        && !is_inner(before(1))
        && !in_contraction
        && !joins_digits(before(2), before(1), here)
}

/// Where the word that could end at `end` ends with its ending, if one can.
fn ends(chars: &[char], end: usize) -> Option<usize> {
    let at = |i: usize| chars.get(i);
    if is_inner(at(end)) || joins_digits(end.checked_sub(1).and_then(at), at(end), at(end + 1)) {
        return None;
    }
    if at(end) != Some(&'\'') || !is_inner(at(end + 1)) {
        return Some(end);
    }
    let letters: String = chars.iter().skip(end + 1).take_while(|c| c.is_alphanumeric()).take(3).collect();
    let known = ENDINGS.iter().any(|(ending, _)| ending.eq_ignore_ascii_case(&letters));
    known.then(|| end + 1 + letters.chars().count())
}

fn with_ending(ipa: &str, ending: &str) -> String {
    let letters = ending.trim_start_matches('\'').to_ascii_lowercase();
    match letters.as_str() {
        "" => ipa.to_owned(),
        "s" => ipa::with_s(ipa),
        "d" if ipa.ends_with(['t', 'd']) => format!("{ipa}ᵻd"),
        _ => {
            let sound = ENDINGS.iter().find(|(ending, _)| *ending == letters).map_or("", |(_, sound)| sound);
            format!("{ipa}{sound}")
        }
    }
}

/// The name of a `.` or `/` between letters: beside phonemes it would look like a mark of the sentence.
fn sign(chars: &[char], at: usize) -> Option<&'static str> {
    let inside = is_inner(at.checked_sub(1).and_then(|i| chars.get(i))) && is_inner(chars.get(at + 1));
    match chars.get(at) {
        Some('.') if inside => Some(" dot "),
        Some('/') if inside => Some(" slash "),
        _ => None,
    }
}

fn name_sign_before(chars: &[char], at: usize, out: &mut String) {
    if let Some(name) = at.checked_sub(1).and_then(|before| sign(chars, before)) {
        out.pop();
        out.push_str(name);
    }
}
