//! IPA as dictionaries write it in, IPA as espeak writes it out.
//!
//! Espeak puts a stress mark right before its vowel, dictionaries before the syllable; espeak writes `ɹ` and `ɡ`,
//! dictionaries often `r` and `g`. Marks without a sound (syllable breaks, ties, brackets) are left out.
//!
//! Never asks what a voice can say: its symbol table maps or reports the rest.

use crate::error::{Error, Result};

/// Symbols with the same sound that espeak writes otherwise.
const SPELLINGS: [(char, &str); 12] = [
    ('g', "ɡ"),
    ('r', "ɹ"),
    (':', "ː"),
    ('\'', "ˈ"),
    ('’', "ˈ"),
    ('ʤ', "dʒ"),
    ('ʧ', "tʃ"),
    ('ʦ', "ts"),
    ('ʣ', "dz"),
    ('ɝ', "ɜː"),
    ('ǝ', "ə"),
    ('ɩ', "ɪ"),
];

/// Syllable breaks, groups, links and ties.
fn is_soundless(c: char) -> bool {
    matches!(
        c,
        '.' | '-' | '|' | '‖' | '‿' | '/' | '[' | ']' | '\u{361}' | '\u{35c}' | '\u{200d}' | '\u{2060}' | '·'
    )
}

/// A letter or mark of the alphabet, of any language.
fn is_symbol(c: char) -> bool {
    let letter = c.is_ascii_lowercase()
        || matches!(c, '\u{df}'..='\u{2af}' | '\u{370}'..='\u{3ff}' | '\u{1d00}'..='\u{1dbf}' | '\u{2c60}'..='\u{2c7f}'
            | '\u{207f}' | '\u{a71b}'..='\u{a71f}');
    let mark = matches!(c, '\u{2b0}'..='\u{36f}' | '\u{1dc0}'..='\u{1dff}' | '↑' | '↓' | '↗' | '↘');
    (letter && !c.is_uppercase() && c != '÷') || mark
}

/// `ipa` in espeak's convention.
///
/// # Errors
/// `InvalidRequest` naming the first character that is no IPA, and for a text without a sound.
pub fn canonical(ipa: &str) -> Result<String> {
    let mut plain = String::with_capacity(ipa.len());
    for (index, c) in ipa.trim().chars().enumerate() {
        match c {
            _ if is_soundless(c) => {}
            _ if c.is_whitespace() => {
                if !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            '˞' if plain.ends_with('ə') => {
                plain.pop();
                plain.push('ɚ');
            }
            '˞' if plain.ends_with('ɜ') => plain.push('ː'),
            _ => match SPELLINGS.iter().find(|(written, _)| *written == c) {
                Some((_, spelling)) => plain.push_str(spelling),
                None if is_symbol(c) => plain.push(c),
                None => {
                    let number = index + 1;
                    return Err(Error::InvalidRequest(format!("character {number}, {c:?}, is no IPA")));
                }
            },
        }
    }
    let plain = plain.trim();
    if !plain.chars().any(is_sound) {
        return Err(Error::InvalidRequest("IPA without a sound".to_owned()));
    }
    Ok(stress_before_vowels(plain))
}

/// A vowel or a consonant, not a mark.
fn is_sound(c: char) -> bool {
    c.is_alphabetic() && !matches!(c, '\u{2b0}'..='\u{36f}')
}

fn is_vowel(c: char) -> bool {
    "aeiouyæøœɐɑɒɔəɚɛɜɝɞɘɤɪʊʌʏɨʉɯɵɶᵻãẽĩõũ".contains(c)
}

/// Moves each stress mark over the consonants that follow it; one without a vowel in its syllable stays.
fn stress_before_vowels(ipa: &str) -> String {
    let mut moved = String::with_capacity(ipa.len());
    let mut rest = ipa;
    while let Some(at) = rest.find(['ˈ', 'ˌ']) {
        let (before, from) = rest.split_at(at);
        moved.push_str(before);
        let mut chars = from.chars();
        let mark = chars.next();
        let after = chars.as_str();
        let vowel = after.find(|c| is_vowel(c) || matches!(c, ' ' | 'ˈ' | 'ˌ'));
        let onset = vowel.filter(|at| after.get(*at..).is_some_and(|from| from.starts_with(is_vowel)));
        let (onset, nucleus) = after.split_at(onset.unwrap_or(0));
        moved.push_str(onset);
        moved.extend(mark);
        rest = nucleus;
    }
    moved.push_str(rest);
    moved
}

/// `ipa` with the sound of `'s`: a syllable after a sibilant, else as voiced as what it follows.
pub fn with_s(ipa: &str) -> String {
    let last = ipa.trim_end_matches(|c: char| !is_sound(c)).chars().next_back().unwrap_or(' ');
    let ending = match last {
        's' | 'z' | 'ʃ' | 'ʒ' | 'ɕ' | 'ʑ' | 'ʂ' | 'ʐ' => "ᵻz",
        'p' | 't' | 'k' | 'f' | 'θ' | 'x' | 'ʔ' => "s",
        _ => "z",
    };
    format!("{ipa}{ending}")
}

#[cfg(test)]
mod tests {
    use super::{canonical, with_s};

    #[test]
    fn dictionaries_and_espeak_write_the_same_sounds() {
        let check = |ipa: &str, expected: &str| assert_eq!(canonical(ipa).unwrap(), expected, "{ipa}");
        check("ˈkɔrvɛks", "kˈɔɹvɛks");
        check("/ˈɡreɪ.stoʊk/", "ɡɹˈeɪstoʊk");
        check("[nuː ˈjɔːrk]", "nuː jˈɔːɹk");
        check("ˌɪnfərˈmeɪʃən", "ˌɪnfəɹmˈeɪʃən");
        check("t͡ʃiːz", "tʃiːz");
        check("ʤʌʤ", "dʒʌdʒ");
        check("bɜ˞d ˈbʌtə˞", "bɜːd bˈʌtɚ");
        check("'hɛlo:", "hˈɛloː");
        check("ˈbʌtn̩", "bˈʌtn̩");
        check("ˈn̩", "ˈn̩");
        check("ɬãʙǃ", "ɬãʙǃ");
        check("ma˥˩", "ma˥˩");
        check("kˈɔːɹvɛks", "kˈɔːɹvɛks");
    }

    #[test]
    fn what_is_no_ipa_is_named_with_its_place() {
        let check = |ipa: &str, parts: &[&str]| {
            let refusal = canonical(ipa).unwrap_err().to_string();
            assert!(parts.iter().all(|part| refusal.contains(part)), "{ipa:?}: {refusal}");
        };
        check("HH AH0", &["character 1", "'H'"]);
        check("kat2", &["character 4", "'2'"]);
        check("ka,t", &["character 3", "','"]);
        check("kaт", &["character 3", "'т'"]);
        check("", &["without a sound"]);
        check("ˈ.ː", &["without a sound"]);
    }

    #[test]
    fn possessives_sound_as_their_stem_wants() {
        let check = |ipa: &str, expected: &str| assert_eq!(with_s(ipa), expected);
        check("kˈɔːɹvɛks", "kˈɔːɹvɛksᵻz");
        check("dʒˈʌdʒ", "dʒˈʌdʒᵻz");
        check("kˈæt", "kˈæts");
        check("dˈɔɡ", "dˈɔɡz");
        check("bˈiː", "bˈiːz");
    }
}
