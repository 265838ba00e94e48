//! Phonemes as `misaki` writes them in, the espeak-ng en-us style of the voices' training out.
//!
//! Never looks a word up: spelling is used only to choose between reduced vowels.

/// A vowel, or the first half of a diphthong, of espeak's en-us.
pub fn is_vowel(c: char) -> bool {
    "aeiouæɐɑɒɔəɚɛɜɪʊʌᵻ".contains(c)
}

/// `raw` of the lower-case `word` in espeak's style.
pub fn from_misaki(raw: &str, _word: &str) -> String {
    let wide: Vec<char> = raw.chars().flat_map(expand).collect();
    let mut out = String::with_capacity(raw.len() * 2);
    let at = |i: usize| wide.get(i).copied().unwrap_or(' ');
    let mut stressed = false;
    let mut i = 0;
    while i < wide.len() {
        let c = at(i);
        let next = at(i + 1);
        match c {
            'ˈ' | 'ˌ' => {
                stressed = true;
                out.push(c);
                i += 1;
                continue;
            }
            'ɜ' if next == 'ɹ' => {
                out.push_str("ɜː");
                i += 1;
            }
            'ə' if next == 'ɹ' && !is_vowel_mark(at(i + 2)) => {
                out.push('ɚ');
                i += 1;
            }
            'i' if stressed || !(i + 1 == wide.len() || is_vowel(next)) => out.push_str("iː"),
            'u' => out.push_str("uː"),
            'ɑ' => out.push_str("ɑː"),
            'ɔ' if next != 'ɪ' && !matches!(next, 'ŋ' | 'f' | 'θ' | 's') => out.push_str("ɔː"),
            'ə' if i == 0 => out.push('ɐ'),
            'n' if out.ends_with('ʔ') && !is_vowel(next) => out.push_str("n\u{329}"),
            _ => out.push(c),
        }
        if is_vowel(c) {
            stressed = false;
        }
        i += 1;
    }
    out
}

fn is_vowel_mark(c: char) -> bool {
    is_vowel(c) || c == 'ˈ' || c == 'ˌ'
}

fn expand(c: char) -> impl Iterator<Item = char> {
    let wide = match c {
        'A' => "eɪ",
        'I' => "aɪ",
        'O' => "oʊ",
        'W' => "aʊ",
        'Y' => "ɔɪ",
        'ʤ' => "dʒ",
        'ʧ' => "tʃ",
        'ᵊ' => "ə",
        'T' => "ɾ",
        _ => "",
    };
    wide.chars().chain(wide.is_empty().then_some(c))
}

/// The form of a function word, where espeak's stress differs from the dictionary's.
pub fn function_word(word: &str, ends_clause: bool) -> Option<&'static str> {
    let _ = ends_clause;
    let ipa = match word {
        "a" => "ɐ",
        "the" => "ðə",
        _ => return None,
    };
    Some(ipa)
}

/// Adapts the end of a word to the word that follows without a mark between them.
pub fn link(ipa: &mut String, word: &str, next: &str) {
    let next_vowel = next.chars().find(|c| !matches!(c, 'ˈ' | 'ˌ')).is_some_and(is_vowel);
    if !next_vowel {
        return;
    }
    if word.eq_ignore_ascii_case("the") {
        *ipa = "ðɪ".into();
    } else if word.eq_ignore_ascii_case("to") {
        *ipa = "tʊ".into();
    } else if ipa.ends_with("ɜː") || ipa.ends_with('ɚ') {
        ipa.push('ɹ');
    }
}
