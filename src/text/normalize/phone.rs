//! A telephone number in, its groups digit by digit out.
//!
//! Never takes more than [`MAX_WORDS`] words, and none without the shape of a number that can be dialled.

use super::super::numbers::spelled;
use super::token::{Cursor, Here, Part, Said};

const MAX_WORDS: usize = 6;
const MAX_WORD_BYTES: usize = 24;
const SEPARATORS: [char; 3] = ['-', '.', ' '];

/// Area codes that are read as a number: `1-800`.
const TOLL_FREE: [(&str, &str); 2] = [("800", "eight hundred"), ("900", "nine hundred")];

/// Tries the longest number first: `+1 (555) 123-4567`.
pub fn read(here: &Here) -> Option<Said> {
    let first = here.token().trim_start_matches(['"', '\'']);
    first.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '(')).then_some(())?;
    let near = here.tokens.get(here.at..)?;
    let words = near.iter().take(MAX_WORDS).take_while(|word| word.len() <= MAX_WORD_BYTES).count();
    (1..=words).rev().find_map(|taken| {
        let mut joined = String::from(first);
        for (i, word) in near.iter().take(taken).enumerate().skip(1) {
            joined.push(' ');
            joined.push_str(if i + 1 < taken { word } else { word.trim_start_matches('"') });
        }
        let tail = Part::of(near.get(taken - 1)?).tail;
        let number = joined.strip_suffix(tail)?;
        let groups = north_american(number)
            .or_else(|| international(number))
            .or_else(|| domestic(number))
            .or_else(|| lettered(number))?;
        Some(Said::new(groups, taken))
    })
}

/// `(555) 123-4567`, `+1 555.123.4567`, `555-1234`.
fn north_american(number: &str) -> Option<String> {
    let mut rest = Cursor(number);
    let mut groups = Vec::new();
    if rest.eat("+1").is_some() {
        groups.push("plus one".to_string());
        rest.any(&SEPARATORS);
    } else if rest.0.starts_with("1-") || rest.0.starts_with("1.") || rest.0.starts_with("1 (") {
        groups.push("one".to_string());
        rest.0 = rest.0.get(2..)?;
    }
    let area = if rest.eat("(").is_some() {
        let area = rest.digits(3, 3)?;
        rest.eat(")")?;
        rest.any(&SEPARATORS);
        Some(area)
    } else {
        None
    };
    let mut first = rest.digits(3, 3)?;
    let mut mark = rest.any(&SEPARATORS)?;
    if let Some(area) = area {
        groups.push(area_words(area));
    } else if rest.0.bytes().take(4).take_while(u8::is_ascii_digit).count() == 3 {
        groups.push(area_words(first));
        first = rest.digits(3, 3)?;
        mark = rest.any(&SEPARATORS)?;
    } else if !groups.is_empty() || mark != '-' {
        return None;
    }
    let last = rest.digits(4, 4)?;
    rest.end()?;
    (groups.is_empty() && mark == ' ').then_some(()).is_none().then_some(())?;
    groups.extend([spelled(first), spelled(last)]);
    Some(groups.join(", "))
}

/// `+44 20 7946 0958`.
fn international(number: &str) -> Option<String> {
    let mut rest = Cursor(number);
    rest.eat("+")?;
    let mut groups = vec![format!("plus {}", spelled(rest.digits(1, 3)?))];
    let mut digits = number.bytes().take_while(|c| *c != b' ').count() - 1;
    while rest.any(&SEPARATORS).is_some() {
        if rest.eat("(").is_some() {
            // `+44 (0)20`: dialled at home, and told here as it is written.
            let inner = rest.digits(1, 5)?;
            rest.eat(")")?;
            digits += inner.len();
            groups.push(spelled(inner));
            if !rest.0.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
        }
        let group = rest.digits(1, 8)?;
        digits += group.len();
        groups.push(spelled(group));
    }
    rest.end()?;
    (groups.len() > 1 && (7..=15).contains(&digits)).then(|| groups.join(", "))
}

/// `020 7946 0958` with the digit that is dialled first, and the four groups of a card.
fn domestic(number: &str) -> Option<String> {
    let groups: Vec<&str> = number.split([' ', '-']).collect();
    let digits = groups.iter().all(|group| group.bytes().all(|c| c.is_ascii_digit()));
    let count: usize = groups.iter().map(|group| group.len()).sum();
    let first = groups.first()?.len();
    let dialled = number.starts_with('0')
        && (2..=5).contains(&groups.len())
        && (3..=5).contains(&first)
        && (9..=11).contains(&count)
        && groups.iter().all(|group| group.len() > 1);
    let card = groups.len() == 4 && groups.iter().all(|group| group.len() == 4);
    (digits && (dialled || card)).then(|| groups.into_iter().map(spelled).collect::<Vec<_>>().join(", "))
}

/// `1-800-FLOWERS`.
fn lettered(number: &str) -> Option<String> {
    let mut rest = Cursor(number);
    rest.eat("1-")?;
    let area = rest.digits(3, 3)?;
    rest.eat("-")?;
    let words: Vec<&str> = rest.0.split('-').collect();
    let is_word = |word: &&str| match word.bytes().next() {
        Some(c) if c.is_ascii_digit() => word.bytes().all(|c| c.is_ascii_digit()),
        _ => !word.is_empty() && word.bytes().all(|c| c.is_ascii_uppercase()),
    };
    (words.iter().all(is_word) && rest.0.contains(|c: char| c.is_ascii_uppercase())).then_some(())?;
    let named = words.iter().map(|word| {
        if word.as_bytes().first()?.is_ascii_digit() { Some(spelled(word)) } else { Some(word.to_string()) }
    });
    Some(format!("one, {}, {}", area_words(area), named.flatten().collect::<Vec<_>>().join(" ")))
}

fn area_words(area: &str) -> String {
    TOLL_FREE
        .iter()
        .find(|(code, _)| *code == area)
        .map_or_else(|| spelled(area), |(_, words)| words.to_string())
}
