//! Cleaned text in, sentences out, each with the silence that follows it.
//!
//! Abbreviations, initials, decimals and host names do not end a sentence; line breaks do.
//!
//! Never looks at what a voice can say: fitting a sentence into a budget is `Frontend`'s work.

use super::abbreviations::{
    begins_with_number, ends_only_before_capital, is_abbreviation, is_dotted_initials, is_time_zone,
    needs_digit, opens_sentence,
};

/// Why a segment ends, and so how long the silence after it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// A long sentence was split; speech goes on.
    None,
    /// A long sentence was split at a clause mark.
    Clause,
    Sentence,
    Ellipsis,
    Line,
    /// An empty line.
    Paragraph,
    /// Exactly so many milliseconds, as markup asks for them.
    Break(u32),
}

impl Pause {
    /// The silence to insert, in milliseconds.
    pub fn duration_ms(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Clause => 120,
            Self::Sentence => 250,
            Self::Line => 350,
            Self::Ellipsis => 450,
            Self::Paragraph => 600,
            Self::Break(ms) => ms,
        }
    }

    /// The pause where `self` and `other` meet: the longer one, unless markup asks for one. Breaks add up.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Break(ms), Self::Break(more)) => Self::Break(ms.saturating_add(more)),
            (asked @ Self::Break(_), _) | (_, asked @ Self::Break(_)) => asked,
            _ if other.duration_ms() > self.duration_ms() => other,
            _ => self,
        }
    }
}

/// Sentences of `text` (as `clean` leaves it), untrimmed words joined by single spaces.
pub fn sentences(text: &str) -> Vec<(String, Pause)> {
    let mut found: Vec<(String, Pause)> = Vec::new();
    for line in text.split('\n') {
        if line.trim().is_empty() {
            if let Some((_, pause)) = found.last_mut() {
                *pause = Pause::Paragraph;
            }
            continue;
        }
        let mut tokens = line.split_whitespace().peekable();
        let mut sentence = String::new();
        while let Some(token) = tokens.next() {
            if !sentence.is_empty() {
                sentence.push(' ');
            }
            sentence.push_str(token);
            if let Some(pause) = end_of_sentence(token, tokens.peek().copied()) {
                found.push((std::mem::take(&mut sentence), pause));
            }
        }
        if !sentence.is_empty() {
            found.push((sentence, Pause::Line));
        } else if let Some((_, pause)) = found.last_mut()
            && *pause != Pause::Ellipsis
        {
            *pause = Pause::Line;
        }
    }
    found
}

/// Whether `token` ends its sentence where `next` is the next word of its line, and how.
pub fn end_of_sentence(token: &str, next: Option<&str>) -> Option<Pause> {
    let closed = token.trim_end_matches(['"', '\'', ')', ']', '}', '*', '_', '`']);
    let quoted = closed.len() < token.len();
    let word = closed.trim_end_matches(['.', '!', '?', ',', ':', ';']);
    let marks = closed.get(word.len()..).unwrap_or_default();
    let next_initial = next.and_then(|n| n.chars().find(|c| c.is_alphanumeric()));
    let goes_on = quoted && next_initial.is_some_and(char::is_lowercase);
    if goes_on || !marks.ends_with(['.', '!', '?']) {
        return None;
    }
    if marks.ends_with("...") || marks.contains("..") {
        return Some(Pause::Ellipsis);
    }
    if marks != "." {
        return Some(Pause::Sentence);
    }
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut letters = word.chars();
    let single = letters.next().filter(|c| c.is_uppercase() && letters.next().is_none());
    let opened = next.is_none_or(opens_sentence);
    if single.is_some_and(|c| c != 'I') {
        return opened.then_some(Pause::Sentence);
    }
    let before_capital = next_initial.is_none_or(char::is_uppercase);
    if needs_digit(word) {
        return (!next.is_some_and(begins_with_number)).then_some(Pause::Sentence);
    }
    if ends_only_before_capital(word) {
        let before_capital = before_capital && !next.is_some_and(is_time_zone);
        return before_capital.then_some(Pause::Sentence);
    }
    if word.eq_ignore_ascii_case("st") || (is_dotted_initials(word) && word.starts_with(char::is_uppercase)) {
        return opened.then_some(Pause::Sentence);
    }
    if is_abbreviation(word) {
        return next.is_none().then_some(Pause::Sentence);
    }
    Some(Pause::Sentence)
}

/// Whether it takes the whole next word, and not only its first letter, to tell if `token` ends a sentence.
pub fn needs_whole_word(token: &str) -> bool {
    let [name, others @ ..] = ["Zq", "The", "II", "EST"].map(|next| end_of_sentence(token, Some(next)));
    others.iter().any(|other| *other != name)
}
