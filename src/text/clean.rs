//! Raw text in, plain lines out: one kind of space, quote and dash; no markup, emoji or control
//! characters.
//!
//! Inline phonemes, `[[həlˈoʊ]]`, are set aside and leave a placeholder word each.
//!
//! Never removes a letter, a digit or a sign that has a name.

use super::forms::{decimal_digit, push_composed, push_plain_form};
use super::{Markup, Reading};

/// Stands for one `[[...]]` of the text, in order.
pub const PHONEMES: char = '\u{e000}';

/// A link's target is looked for this far, so that a flood of `](` stays linear.
const MAX_LINK_CHARACTERS: usize = 512;

/// Text without typography, and the phonemes that were written inline.
#[derive(Debug, Default)]
pub struct Cleaned {
    pub text: String,
    pub phonemes: Vec<String>,
}

/// Cleans `text`; line breaks stay as `\n`.
pub fn clean(text: &str, reading: &Reading, inline_phonemes: bool) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    let next_phonemes = |text: &'_ str| {
        let (before, after) = text.split_once("[[").filter(|_| inline_phonemes)?;
        let (ipa, after) = after.split_once("]]")?;
        Some((before.len(), ipa.len(), after.len()))
    };
    while let Some((before, ipa, after)) = next_phonemes(rest) {
        plain_characters(rest.get(..before).unwrap_or_default(), reading, &mut plain);
        let ipa = rest.get(before + 2..before + 2 + ipa).unwrap_or_default();
        if ipa.chars().any(char::is_alphabetic) {
            plain.extend([' ', PHONEMES]);
            cleaned.phonemes.push(ipa.trim().to_string());
        } else {
            // No phonemes: read, or reported, like any other text.
            plain_characters(ipa, reading, &mut plain);
        }
        rest = rest.get(rest.len() - after..).unwrap_or_default();
    }
    plain_characters(rest, reading, &mut plain);
    for (number, line) in plain.split('\n').enumerate() {
        if number > 0 {
            cleaned.text.push('\n');
        }
        strip_links(strip_line_markup(line), &mut cleaned.text);
    }
    cleaned
}

fn plain_characters(text: &str, reading: &Reading, out: &mut String) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let in_number = out.ends_with(|c: char| c.is_ascii_digit());
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' | '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\u{a0}' | '\u{202f}' | '\u{2009}' | '，' | '٬' if in_number && three_digits(chars.clone()) => {
                out.push(',')
            }
            '٫' if in_number => out.push('.'),
            '‘' | '’' | '‚' | '‛' | '′' | 'ʼ' | '´' => out.push('\''),
            '“' | '”' | '„' | '‟' | '«' | '»' | '″' | '「' | '」' | '『' | '』' => {
                out.push('"')
            }
            '…' => out.push_str("..."),
            '\u{2010}' | '\u{2011}' | '−' | '﹣' | '－' => out.push('-'),
            '\u{2012}'..='\u{2015}' => out.push('—'),
            '\u{301c}' | '∼' => out.push('~'),
            '。' | '｡' => out.push_str(". "),
            '！' => out.push_str("! "),
            '？' => out.push_str("? "),
            '、' | '，' => out.push_str(", "),
            '→' | '⇒' | '⟶' | '⟹' | '➔' | '➙'..='➞' | '➡' => out.push_str(" to "),
            '№' => out.push_str(" number "),
            '™' => out.push_str(" trademark "),
            PHONEMES => out.push('\u{fffd}'),
            c if is_invisible(c) => {}
            c if decimal_digit(c).is_some() => out.extend(decimal_digit(c)),
            c if push_plain_form(c, &mut chars, out) => {}
            c if is_emoji(c) && reading.markup == Markup::Keep => out.push(c),
            c if c.is_whitespace() || c.is_control() || is_emoji(c) => out.push(' '),
            c => push_composed(c, &mut chars, |mark| is_invisible(mark) || is_emoji(mark), out),
        }
    }
}

fn three_digits(mut next: impl Iterator<Item = char>) -> bool {
    let mut digit = || next.next().is_some_and(|c| decimal_digit(c).is_some());
    digit() && digit() && digit() && !digit()
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{20e3}' | '\u{2300}'..='\u{23ff}' | '\u{2500}'..='\u{27bf}'
        | '\u{2b12}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '•' | '‣')
}

/// Headings, quotes, list markers and rules at the start of a line.
fn strip_line_markup(line: &str) -> &str {
    let mut line = line.trim_start();
    loop {
        let stripped = line.trim_start_matches('#').trim_start_matches('>');
        let marked = ["- ", "* ", "+ "].iter().find_map(|marker| line.strip_prefix(marker));
        let next = match marked {
            Some(rest) => rest,
            None if stripped.len() < line.len() && stripped.starts_with([' ', '>']) => stripped,
            None => return line,
        };
        line = next.trim_start();
    }
}

/// `[docs](https://example.org)` and `![docs](...)` as "docs".
fn strip_links(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(middle) = rest.find("](") {
        let (label, target) =
            (rest.get(..middle).unwrap_or_default(), rest.get(middle + 2..).unwrap_or_default());
        let open = label.rfind('[');
        let close = target
            .char_indices()
            .take(MAX_LINK_CHARACTERS)
            .find(|(_, c)| matches!(c, ')' | ' '))
            .and_then(|(at, c)| (c == ')').then_some(at));
        match (open, close) {
            (Some(open), Some(close)) => {
                let before = label.get(..open).unwrap_or_default();
                out.push_str(before.strip_suffix('!').unwrap_or(before));
                out.push_str(label.get(open + 1..).unwrap_or_default());
                rest = target.get(close + 1..).unwrap_or_default();
            }
            _ => {
                out.push_str(label);
                out.push_str("](");
                rest = target;
            }
        }
    }
    out.push_str(rest);
}
