//! IPA characters in, the ids of a voice's symbol table out.
//!
//! A symbol that the table lacks becomes its nearest; tones and what is no speech sound have none.
//!
//! Never leaves out a character without naming it.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization;

use super::report;
use crate::error::{Error, Result};

/// What stands in for a symbol that a table lacks, in the order in which it is tried: the nearest sounds of English.
const STAND_INS: &[(char, &str)] = &[
    ('ɡ', "g"),
    ('g', "ɡ"),
    ('ɝ', "ɜː"),
    ('ɜ', "ɝ"),
    ('ɚ', "əɹ"),
    ('ᵻ', "ɪ"),
    ('ᵊ', "ə"),
    ('ɐ', "ə"),
    ('ɘ', "ə"),
    ('ɵ', "ə"),
    ('ɤ', "ʌ"),
    ('ʌ', "ə"),
    ('y', "i"),
    ('y', "iː"),
    ('ʏ', "ɪ"),
    ('ɨ', "ɪ"),
    ('ʉ', "uː"),
    ('ɯ', "uː"),
    ('ø', "ɜː"),
    ('œ', "ɜː"),
    ('ɞ', "ɜː"),
    ('ɶ', "æ"),
    ('ɒ', "ɑ"),
    ('ɾ', "t"),
    ('r', "ɹ"),
    ('ɹ', "r"),
    ('ɻ', "ɹ"),
    ('ʁ', "ɹ"),
    ('ʀ', "ɹ"),
    ('ɽ', "ɾ"),
    ('ɽ', "t"),
    ('ʔ', "t"),
    ('ʕ', "ʔ"),
    ('ɬ', "l"),
    ('ɫ', "l"),
    ('ɭ', "l"),
    ('ɺ', "l"),
    ('ʟ', "l"),
    ('ʎ', "lj"),
    ('ɮ', "ʒ"),
    ('ʤ', "dʒ"),
    ('ʧ', "tʃ"),
    ('ʥ', "dʒ"),
    ('ʨ', "tʃ"),
    ('ʦ', "ts"),
    ('ʣ', "dz"),
    ('ʄ', "dʒ"),
    ('ɕ', "ʃ"),
    ('ʂ', "ʃ"),
    ('ʑ', "ʒ"),
    ('ʐ', "ʒ"),
    ('ç', "h"),
    ('ħ', "h"),
    ('ɦ', "h"),
    ('x', "h"),
    ('χ', "x"),
    ('χ', "h"),
    ('ɣ', "ɡ"),
    ('ɟ', "dj"),
    ('ʝ', "j"),
    ('ɸ', "f"),
    ('β', "v"),
    ('ʋ', "v"),
    ('ⱱ', "v"),
    ('ʍ', "w"),
    ('ɥ', "w"),
    ('ɰ', "w"),
    ('ɱ', "m"),
    ('ɴ', "ŋ"),
    ('ɲ', "nj"),
    ('ɳ', "n"),
    ('ʈ', "t"),
    ('ɖ', "d"),
    ('ʙ', "b"),
    ('ɓ', "b"),
    ('ɗ', "d"),
    ('ɠ', "ɡ"),
    ('ʛ', "ɡ"),
    ('ʘ', "p"),
    ('ǀ', "t"),
    ('ǃ', "k"),
    ('ǂ', "k"),
    ('ǁ', "k"),
    ('…', "."),
    ('’', "'"),
    ('—', ","),
    ('–', ","),
    ('ˑ', "ː"),
    ('˞', "ɹ"),
    ('ʷ', "w"),
    ('ⁿ', "n"),
    ('ˡ', "l"),
    // A nasal vowel is a vowel with a nasal.
    ('\u{303}', "n"),
];

/// Marks of how exactly a sound is made: the sound without its mark is the nearest one.
fn is_detail(c: char) -> bool {
    matches!(c, 'ʰ' | 'ʱ' | 'ʲ' | 'ʳ' | 'ˠ' | 'ˤ' | 'ʼ' | '\u{306}' | '\u{308}' | '\u{30a}' | '\u{318}'..='\u{31e}'
        | '\u{320}' | '\u{324}' | '\u{325}' | '\u{329}'..='\u{330}' | '\u{334}' | '\u{339}'..='\u{33d}' | '\u{35c}'
        | '\u{361}')
}

/// A table of IPA characters with the symbols that open and close a sentence.
#[derive(Debug)]
pub struct IpaSymbols {
    ids: BTreeMap<char, i64>,
    start: i64,
    end: i64,
}

/// A string as a table can say it.
#[derive(Debug, Default)]
pub struct Fitted {
    pub spoken: String,
    pub unmapped: Vec<char>,
}

impl IpaSymbols {
    /// # Errors
    /// `InvalidVoice` when `^` or `$` is missing or an id lies outside `0..vocab_size`.
    pub fn new(ids: BTreeMap<char, i64>, vocab_size: usize, voice: &str) -> Result<Self> {
        let limit = i64::try_from(vocab_size).unwrap_or(i64::MAX);
        if let Some((symbol, id)) = ids.iter().find(|&(_, &id)| id < 0 || id >= limit) {
            return Err(Error::voice(
                voice,
                format!("symbol {symbol:?} has id {id}, the embedding has {vocab_size} rows"),
            ));
        }
        let mark = |c: char| {
            ids.get(&c)
                .copied()
                .ok_or_else(|| Error::voice(voice, format!("the symbol table lacks the sentence mark {c:?}")))
        };
        let (start, end) = (mark('^')?, mark('$')?);
        Ok(Self { ids, start, end })
    }

    /// `ipa` in the characters of this table; stand-ins replace what it lacks, the rest is reported.
    pub fn fit(&self, ipa: &str) -> Fitted {
        let mut fitted = Fitted::default();
        for c in ipa.chars() {
            self.fit_character(if c.is_whitespace() { ' ' } else { c }, &mut fitted);
        }
        fitted
    }

    fn fit_character(&self, c: char, fitted: &mut Fitted) {
        let is_said_already = c == 'ː' && fitted.spoken.ends_with('ː');
        if self.says(c) {
            if !is_said_already {
                fitted.spoken.push(c);
            }
            return;
        }
        let all_said = |stand_in: &&str| stand_in.chars().all(|c| self.says(c));
        let mut stand_ins =
            STAND_INS.iter().filter(|(lacking, _)| *lacking == c).map(|(_, stand_in)| *stand_in);
        if let Some(stand_in) = stand_ins.find(all_said) {
            fitted.spoken.push_str(stand_in);
            return;
        }
        let parts: Vec<char> = std::iter::once(c).nfd().collect();
        match parts.len() {
            0 | 1 if is_detail(c) => {}
            0 | 1 => report(&mut fitted.unmapped, [c]),
            _ => parts.into_iter().for_each(|part| self.fit_character(part, fitted)),
        }
    }

    /// Start, the ids of a fitted string, end.
    pub fn ids(&self, fitted: &str) -> Vec<i64> {
        let inner = fitted.chars().filter_map(|c| self.ids.get(&c).copied());
        std::iter::once(self.start).chain(inner).chain(std::iter::once(self.end)).collect()
    }

    fn says(&self, c: char) -> bool {
        !matches!(c, '^' | '$' | '_') && self.ids.contains_key(&c)
    }
}

#[cfg(test)]
mod tests {
    use super::IpaSymbols;

    /// A table of the espeak symbols of American English.
    fn table() -> IpaSymbols {
        let symbols = "_^$ !,.:;?'-abcdefhijklmnopqrstuvwxzæðŋɐɑɔəɚɛɜɡɪɹɾʃʊʌʒʔˈˌːθᵻ\u{329}";
        let ids = symbols.chars().zip(0..).collect();
        IpaSymbols::new(ids, 100, "table").unwrap()
    }

    #[test]
    fn a_symbol_that_is_lacking_becomes_its_nearest_or_is_reported() {
        let table = table();
        let check = |ipa: &str, spoken: &str, unmapped: &str| {
            let fitted = table.fit(ipa);
            assert_eq!(fitted.spoken, spoken, "{ipa}");
            assert_eq!(fitted.unmapped.iter().collect::<String>(), unmapped, "{ipa}");
        };
        // Nasal vowels, composed and not.
        check("bɔ\u{303}ʒuʁ", "bɔnʒuɹ", "");
        check("sã", "san", "");
        check("õ", "on", "");
        // Front rounded and central vowels, long and short.
        check("tyː", "tiː", "");
        check("ˈt\u{28f}p", "ˈtɪp", "");
        check("bœːʁ", "bɜːɹ", "");
        check("ʉː ɯ ɤ ɘ ɞ ɶ ɨ ɒ", "uː uː ʌ ə ɜː æ ɪ ɑ", "");
        // Trills, taps, implosives and clicks.
        check("ʙ ʀ ɽ ɓ ɗ ɠ ʛ ʄ", "b ɹ ɾ b d ɡ ɡ dʒ", "");
        check("ʘ ǀ ǃ ǂ ǁ", "p t k k k", "");
        // Consonants of other languages.
        check("ɲ ʎ ɟ ç x χ ɣ β ɸ ɦ ħ ʕ", "nj lj dj h x x ɡ v f h h ʔ", "");
        check("ɕ ʑ ʂ ʐ ʈ ɖ ɭ ɻ ɱ ɴ ʋ ʍ", "ʃ ʒ ʃ ʒ t d l ɹ m ŋ v w", "");
        check("ʦ ʣ ʨ ʥ ʤ ʧ", "ts dz tʃ dʒ dʒ tʃ", "");
        // Ties, lengths, syllables, secondary articulation, places.
        check("t\u{361}ʃ d\u{35c}ʒ", "tʃ dʒ", "");
        check("aˑ aː aːː a\u{306}", "aː aː aː a", "");
        check("bˈʌtn\u{329} i\u{32f}", "bˈʌtn\u{329} i", "");
        check("tʰ kʷ tʲ n\u{325} t\u{32a} pʼ ə˞", "t kw t n t p əɹ", "");
        check("ɫ ɬ ᵊ", "l l ə", "");
        // Tones, intonation and other scripts have no nearest.
        check("ma˥˩", "ma", "˥˩");
        check("a↗b", "ab", "↗");
        check("kaтB9", "ka", "тB9");
        check("a^b$c_", "abc", "^$_");
    }
}
