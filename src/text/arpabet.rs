//! ARPAbet in, espeak-style IPA out.
//!
//! The 39 phones of the CMU Pronouncing Dictionary with its stress digits, and the further ones of TIMIT that
//! name a sound of American English. `HH AH0 L OW1` and `{@HH}{@AH0}{@L}{@OW1}` are both read; a comma or a
//! doubled space parts words.
//!
//! Never guesses: what is no phone is refused with its place.

use super::espeak;
use crate::error::{Error, Result};

/// A vowel unstressed and stressed.
const VOWELS: [(&str, &str, &str); 18] = [
    ("AA", "ɑː", "ɑː"),
    ("AE", "æ", "æ"),
    ("AH", "ə", "ʌ"),
    ("AO", "ɔː", "ɔː"),
    ("AW", "aʊ", "aʊ"),
    ("AX", "ə", "ə"),
    ("AXR", "ɚ", "ɜː"),
    ("AY", "aɪ", "aɪ"),
    ("EH", "ɛ", "ɛ"),
    ("ER", "ɚ", "ɜː"),
    ("EY", "eɪ", "eɪ"),
    ("IH", "ɪ", "ɪ"),
    ("IX", "ɪ", "ɪ"),
    ("IY", "i", "iː"),
    ("OW", "oʊ", "oʊ"),
    ("OY", "ɔɪ", "ɔɪ"),
    ("UH", "ʊ", "ʊ"),
    ("UW", "uː", "uː"),
];

const CONSONANTS: [(&str, &str); 31] = [
    ("B", "b"),
    ("CH", "tʃ"),
    ("D", "d"),
    ("DH", "ð"),
    ("DX", "ɾ"),
    ("EL", "əl"),
    ("EM", "əm"),
    ("EN", "ən"),
    ("F", "f"),
    ("G", "ɡ"),
    ("HH", "h"),
    ("H", "h"),
    ("JH", "dʒ"),
    ("K", "k"),
    ("L", "l"),
    ("M", "m"),
    ("N", "n"),
    ("NG", "ŋ"),
    ("P", "p"),
    ("Q", "ʔ"),
    ("R", "ɹ"),
    ("S", "s"),
    ("SH", "ʃ"),
    ("T", "t"),
    ("TH", "θ"),
    ("V", "v"),
    ("W", "w"),
    ("WH", "w"),
    ("Y", "j"),
    ("Z", "z"),
    ("ZH", "ʒ"),
];

/// The IPA of `arpabet`: stress marks stand right before the vowel, as espeak writes them.
///
/// # Errors
/// `InvalidRequest` naming the first piece that is no phone and how many come before it, and for a text without
/// a phone.
pub fn to_ipa(arpabet: &str) -> Result<String> {
    let mut ipa = String::with_capacity(arpabet.len());
    let mut after_er = false;
    let mut number = 0;
    for piece in pieces(arpabet) {
        if let Piece::Gap(gap) = piece {
            let parts_words = gap.contains(',') || gap.chars().count() > 1;
            if parts_words && !ipa.is_empty() && !ipa.ends_with(' ') {
                ipa.push(' ');
                after_er = false;
            }
            continue;
        }
        let Piece::Phone(phone) = piece else { continue };
        number += 1;
        let sound = sound(phone).ok_or_else(|| {
            Error::InvalidRequest(format!(
                "phone {number}, {phone:?}, is none of ARPAbet such as HH, AH0 or ER1"
            ))
        })?;
        if after_er && sound.starts_with(|c: char| espeak::is_vowel(c) || matches!(c, 'ˈ' | 'ˌ')) {
            ipa.push('ɹ');
        }
        after_er = sound.ends_with("ɚ") || sound.ends_with("ɜː");
        ipa.push_str(&sound);
    }
    let trimmed = ipa.trim_end().len();
    ipa.truncate(trimmed);
    if ipa.is_empty() {
        return Err(Error::InvalidRequest("ARPAbet without a phone".to_owned()));
    }
    Ok(ipa)
}

enum Piece<'a> {
    /// Spaces and commas.
    Gap(&'a str),
    /// Without its braces.
    Phone(&'a str),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let gap = |c: char| c.is_whitespace() || c == ',';
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = if gap(first) {
            rest.find(|c| !gap(c)).unwrap_or(rest.len())
        } else if first == '{' {
            rest.find('}').map_or(rest.len(), |at| at + 1)
        } else {
            rest.find(|c| gap(c) || c == '{').unwrap_or(rest.len())
        };
        let (piece, after) = rest.split_at(end);
        rest = after;
        let bare = piece.strip_prefix("{@").and_then(|piece| piece.strip_suffix('}')).unwrap_or(piece);
        Some(if gap(first) { Piece::Gap(piece) } else { Piece::Phone(bare) })
    })
}

fn sound(phone: &str) -> Option<String> {
    let upper = phone.to_ascii_uppercase();
    let letters = upper.trim_end_matches(['0', '1', '2']);
    let stress = upper.get(letters.len()..)?;
    if let Some((_, plain, stressed)) = VOWELS.iter().find(|(name, ..)| *name == letters) {
        return match stress {
            "" | "0" => Some((*plain).to_owned()),
            "1" => Some(format!("ˈ{stressed}")),
            "2" => Some(format!("ˌ{stressed}")),
            _ => None,
        };
    }
    let consonant = CONSONANTS.iter().find(|(name, _)| *name == letters).filter(|_| stress.is_empty());
    consonant.map(|(_, sound)| (*sound).to_owned())
}

#[cfg(test)]
mod tests {
    use super::to_ipa;

    #[test]
    fn phones_become_the_sounds_that_espeak_writes() {
        let check = |arpabet: &str, ipa: &str| assert_eq!(to_ipa(arpabet).unwrap(), ipa, "{arpabet}");
        check("HH AH0 L OW1", "həlˈoʊ");
        check("{@HH}{@AH0}{@L}{@OW1}", "həlˈoʊ");
        check("hh ah0 l ow1", "həlˈoʊ");
        check("W ER1 L D", "wˈɜːld");
        check("P AE1 T ER0 IH0 NG", "pˈætɚɹɪŋ");
        check("R EH1 K ER0 D", "ɹˈɛkɚd");
        check("B AH1 T AH0 N", "bˈʌtən");
        check("N UW1,  Y AO1 R K", "nˈuː jˈɔːɹk");
        check("N UW1  Y AO1 R K", "nˈuː jˈɔːɹk");
        check("  CH IH1 Z ", "tʃˈɪz");
        check("S IY1 D IY0", "sˈiːdi");
        check("AA2 B JH ZH TH DH", "ˌɑːbdʒʒθð");
    }

    #[test]
    fn what_is_no_phone_is_named_with_its_place() {
        let check = |arpabet: &str, parts: [&str; 2]| {
            let refusal = to_ipa(arpabet).unwrap_err().to_string();
            assert!(parts.iter().all(|part| refusal.contains(part)), "{arpabet:?}: {refusal}");
        };
        check("HH XX L", ["phone 2", "\"XX\""]);
        check("K1", ["phone 1", "\"K1\""]);
        check("AH3", ["phone 1", "\"AH3\""]);
        check("AH12", ["phone 1", "\"AH12\""]);
        check("həlˈoʊ", ["phone 1", "həlˈoʊ"]);
        check("{@HH}{@}", ["phone 2", "\"\""]);
        check("{@HH", ["phone 1", "{@HH"]);
        check("", ["without", "phone"]);
        check(" , ", ["without", "phone"]);
    }

    #[test]
    fn every_phone_of_the_cmu_dictionary_has_a_sound() {
        let phones = "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y \
                      Z ZH";
        assert_eq!(phones.split(' ').count(), 39);
        for phone in phones.split(' ') {
            assert!(to_ipa(phone).is_ok(), "{phone}");
        }
    }
}
