//! Raw text in, plain lines out: one kind of space, quote and dash; no markup, emoji or control
//! characters.
//!
//! Inline phonemes, `[[həlˈoʊ]]`, are set aside and leave a placeholder word each.
//!
//! Never removes a letter, a digit or a sign that has a name.

use std::iter::Peekable;
use std::str::Chars;

use super::forms::{decimal_digit, push_apart, push_composed, push_plain_form, push_power};
use super::markdown::{strip_line_markup, strip_links};
use super::{Markup, Reading, html};

/// Stands for one `[[...]]` of the text, in order.
pub const PHONEMES: char = '\u{e000}';

/// The longest emoji, in characters: two people with a skin tone each, and what joins them.
const MAX_EMOJI_CHARACTERS: usize = 10;

/// The longest control sequence of a terminal.
const MAX_ESCAPE_CHARACTERS: usize = 16;

/// Text without typography, and the phonemes that were written inline.
#[derive(Debug, Default)]
pub struct Cleaned {
    pub text: String,
    pub phonemes: Vec<String>,
}

/// What of a text may be more than its characters.
#[derive(Debug, Clone, Copy)]
pub struct Notation {
    /// Tags and entities of HTML. A reader of XML has resolved them: what is left was meant.
    pub html: bool,
    /// `[[...]]`
    pub phonemes: bool,
}

/// Cleans `text`; line breaks stay as `\n`.
pub fn clean(text: &str, reading: &Reading, notation: Notation) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    let next_phonemes = |text: &'_ str| {
        let (before, after) = text.split_once("[[").filter(|_| notation.phonemes)?;
        let (ipa, after) = after.split_once("]]")?;
        Some((before.len(), ipa.len(), after.len()))
    };
    while let Some((before, ipa, after)) = next_phonemes(rest) {
        plain_characters(rest.get(..before).unwrap_or_default(), reading, notation, &mut plain);
        let ipa = rest.get(before + 2..before + 2 + ipa).unwrap_or_default();
        // No symbol of IPA is a capital or a digit: `[[Main Page]]` is a link of a wiki.
        let foreign = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
        if ipa.chars().any(char::is_alphabetic) && !ipa.contains(foreign) {
            plain.extend([' ', PHONEMES]);
            cleaned.phonemes.push(ipa.trim().to_string());
        } else {
            // No phonemes: read, or reported, like any other text.
            plain_characters(ipa, reading, notation, &mut plain);
        }
        rest = rest.get(rest.len() - after..).unwrap_or_default();
    }
    plain_characters(rest, reading, notation, &mut plain);
    for (number, line) in plain.split('\n').enumerate() {
        if number > 0 {
            cleaned.text.push('\n');
        }
        match reading.markup {
            Markup::Strip => strip_links(strip_line_markup(line), &mut cleaned.text),
            Markup::Speak | Markup::Keep => cleaned.text.push_str(line),
        }
    }
    cleaned
}

fn plain_characters(text: &str, reading: &Reading, notation: Notation, out: &mut String) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if notation.html
            && reading.markup == Markup::Strip
            && matches!(c, '<' | '&')
            && let Some((plain, taken)) = html::plain(c, chars.clone())
        {
            out.push_str(&plain);
            chars.nth(taken - 1);
            continue;
        }
        if reading.markup == Markup::Speak
            && (is_emoji(c) || c.is_ascii_digit() || matches!(c, '#' | '*'))
            && let Some((name, taken)) = emoji(c, chars.clone())
        {
            if taken > 0 {
                chars.nth(taken - 1);
            }
            push_apart(&name, &mut chars, out);
            continue;
        }
        let in_number = out.ends_with(|c: char| c.is_ascii_digit());
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' | '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\u{a0}' | '\u{202f}' | '\u{2009}' | '，' | '٬' if in_number && three_digits(chars.clone()) => {
                out.push(',')
            }
            '٫' if in_number => out.push('.'),
            '‘' | '’' | '‚' | '‛' | '′' | 'ʼ' | '´' | '‹' | '›' => out.push('\''),
            '“' | '”' | '„' | '‟' | '«' | '»' | '″' | '「' | '」' | '『' | '』' => {
                out.push('"')
            }
            '…' => out.push_str("..."),
            '.' if out.ends_with(". . ") => {
                out.truncate(out.len() - 3);
                out.push_str("..");
            }
            '−' | '﹣' | '－' if is_subtraction(out, &mut chars) => out.push_str(" minus "),
            '\u{2010}' | '\u{2011}' | '−' | '﹣' | '－' => out.push('-'),
            '\u{1b}' => skip_escape(&mut chars),
            '🔟' => push_apart("10", &mut chars, out),
            ' ' if in_number && is_group(out, chars.clone()) => out.push(','),
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
            '^' if push_power(&mut chars, out) => {}
            c if is_emoji(c) && reading.markup != Markup::Strip => out.push(c),
            c if c.is_whitespace() || c.is_control() || is_emoji(c) => out.push(' '),
            c => push_composed(c, &mut chars, |mark| is_invisible(mark) || is_emoji(mark), out),
        }
    }
}

/// Whether a minus between `out` and `rest` takes one from the other. One before a number alone is its sign.
fn is_subtraction(out: &str, rest: &mut Peekable<Chars>) -> bool {
    let operand = |c: char| c.is_alphanumeric() || c == ')';
    let next = rest.peek().copied().unwrap_or(' ');
    let glued = out.ends_with(operand) && (next.is_alphanumeric() || next == '(');
    glued || (next == ' ' && out.strip_suffix(' ').is_some_and(|out| out.ends_with(operand)))
}

/// Takes a control sequence of terminals, `[31m`, that follows an escape.
fn skip_escape(rest: &mut Peekable<Chars>) {
    if rest.next_if_eq(&'[').is_none() {
        return;
    }
    for _ in 0..MAX_ESCAPE_CHARACTERS {
        match rest.next_if(|c| c.is_ascii_digit() || matches!(c, ';' | '?')) {
            Some(_) => {}
            None => {
                rest.next_if(char::is_ascii_alphabetic);
                return;
            }
        }
    }
}

/// Whether a space behind the digits of `out` parts thousands: `1 000`, `12 500 €`, `1 234 567`, and no telephone
/// number.
fn is_group(out: &str, rest: Peekable<Chars>) -> bool {
    let tail: Vec<char> =
        out.chars().rev().take(12).take_while(|c| c.is_ascii_digit() || *c == ',').collect();
    let before = out.chars().rev().nth(tail.len());
    let head = tail.iter().rev().take_while(|c| **c != ',').count();
    let apart = before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '$' | '€' | '£'));
    if !apart || !(1..=3).contains(&head) || tail.last() == Some(&'0') {
        return false;
    }
    let ahead: Vec<char> = rest.take(8).collect();
    let is_digit = |at: usize| ahead.get(at).is_some_and(char::is_ascii_digit);
    let group = (0..3).all(is_digit) && !is_digit(3);
    let round = ahead.get(..3) == Some(&['0'; 3]);
    let next_group = ahead.get(3) == Some(&' ') && (4..7).all(is_digit) && !is_digit(7);
    let more = tail.contains(&',') || next_group;
    let money = ahead.get(3) == Some(&' ') && matches!(ahead.get(4), Some('€' | '£' | '¥' | '₽' | '₴'));
    group && (round || more || money)
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

/// The name of the longest emoji that begins with `first`, and how many more characters it takes.
fn emoji(first: char, rest: impl Iterator<Item = char>) -> Option<(String, usize)> {
    let joins = |c: &char| {
        is_emoji(*c) || matches!(c, '\u{200d}' | '\u{fe0f}' | '♀' | '♂' | '\u{e0020}'..='\u{e007f}')
    };
    let mut sequence = String::from(first);
    let mut found = None;
    let mut rest = rest.take(MAX_EMOJI_CHARACTERS - 1);
    for taken in 0.. {
        if let Some(emoji) = emojis::get(&sequence).filter(|_| !sequence.is_ascii()) {
            found = Some((emoji.name(), taken));
        }
        match rest.next().filter(|c| joins(c)) {
            Some(next) => sequence.push(next),
            None => break,
        }
    }
    let (name, taken) = found?;
    let words = name.chars().map(|c| if c.is_alphanumeric() || c == '\'' || c == '-' { c } else { ' ' });
    let name: String = words.collect();
    Some((format!(" {} ", name.split_whitespace().collect::<Vec<_>>().join(" ")), taken))
}
