//! A word that no dictionary holds in, espeak-style IPA out, by letter-to-sound rules.
//!
//! Never looks at meaning; a letter that no rule reads (another script) is passed on as it is, so
//! that the symbol table can report it.

use unicode_normalization::UnicodeNormalization;

const LETTER_NAMES: [&str; 26] = [
    "ˈeɪ",
    "bˈiː",
    "sˈiː",
    "dˈiː",
    "ˈiː",
    "ˈɛf",
    "dʒˈiː",
    "ˈeɪtʃ",
    "ˈaɪ",
    "dʒˈeɪ",
    "kˈeɪ",
    "ˈɛl",
    "ˈɛm",
    "ˈɛn",
    "ˈoʊ",
    "pˈiː",
    "kjˈuː",
    "ˈɑːɹ",
    "ˈɛs",
    "tˈiː",
    "jˈuː",
    "vˈiː",
    "dˈʌbəljˌuː",
    "ˈɛks",
    "wˈaɪ",
    "zˈiː",
];

/// Letters, and what must stand before and after them: `#` a vowel, `^` a consonant, `_` the edge
/// of the word, `%` a final `e`, `@` a consonant and a vowel, `+` one of `e i y`, nothing: anything. The first match wins.
const RULES: &[(&str, &str, &str, &str)] = &[
    ("", "augh", "", "ɔː"),
    ("", "aught", "", "ɔːt"),
    ("", "ough", "t", "ɔː"),
    ("", "ough", "", "oʊ"),
    ("", "eigh", "", "eɪ"),
    ("", "igh", "", "aɪ"),
    ("", "tion", "", "ʃən"),
    ("", "ssion", "", "ʃən"),
    ("#", "sion", "", "ʒən"),
    ("", "sion", "", "ʃən"),
    ("", "cian", "", "ʃən"),
    ("", "cious", "", "ʃəs"),
    ("", "tious", "", "ʃəs"),
    ("", "tial", "", "ʃəl"),
    ("", "cial", "", "ʃəl"),
    ("", "ture", "_", "tʃɚ"),
    ("", "tch", "", "tʃ"),
    ("", "sch", "", "ʃ"),
    ("", "dge", "", "dʒ"),
    ("", "ous", "_", "əs"),
    ("", "ism", "_", "ɪzəm"),
    ("", "able", "_", "əbəl"),
    ("", "ible", "_", "ᵻbəl"),
    ("^", "le", "_", "əl"),
    ("^", "les", "_", "əlz"),
    ("", "eau", "", "oʊ"),
    ("", "eer", "", "ɪɹ"),
    ("", "ear", "", "ɪɹ"),
    ("", "air", "", "ɛɹ"),
    ("", "are", "_", "ɛɹ"),
    ("", "ire", "_", "aɪɚ"),
    ("", "ore", "_", "oːɹ"),
    ("", "ure", "_", "jʊɹ"),
    ("", "oor", "", "ʊɹ"),
    ("", "our", "", "ʊɹ"),
    ("", "ier", "_", "iɚ"),
    ("", "quet", "_", "keɪ"),
    ("", "que", "_", "k"),
    ("", "gue", "_", "ɡ"),
    ("", "sh", "", "ʃ"),
    ("_", "ch", "r", "k"),
    ("", "ch", "l", "k"),
    ("", "ch", "", "tʃ"),
    ("", "ph", "", "f"),
    ("", "th", "", "θ"),
    ("_", "wh", "", "w"),
    ("", "wh", "", "w"),
    ("_", "wr", "", "ɹ"),
    ("_", "kn", "", "n"),
    ("_", "gn", "", "n"),
    ("_", "ps", "", "s"),
    ("_", "pn", "", "n"),
    ("", "ck", "", "k"),
    ("", "ng", "_", "ŋ"),
    ("", "ng", "^", "ŋ"),
    ("", "ng", "", "ŋɡ"),
    ("", "nk", "", "ŋk"),
    ("", "nx", "", "ŋks"),
    ("", "mb", "_", "m"),
    ("", "mn", "_", "m"),
    ("", "gh", "_", ""),
    ("_", "gh", "", "ɡ"),
    ("", "gh", "^", ""),
    ("", "gh", "", "ɡ"),
    ("", "qu", "", "kw"),
    ("", "ai", "", "eɪ"),
    ("", "ay", "", "eɪ"),
    ("", "au", "", "ɔː"),
    ("", "aw", "", "ɔː"),
    ("", "aa", "", "ɑː"),
    ("", "ar", "#", "æɹ"),
    ("", "ar", "", "ɑːɹ"),
    ("", "ee", "", "iː"),
    ("", "ea", "", "iː"),
    ("", "ei", "", "iː"),
    ("", "ey", "_", "i"),
    ("", "ey", "", "eɪ"),
    ("", "eu", "", "uː"),
    ("", "ew", "", "uː"),
    ("^", "er", "_", "ɚ"),
    ("", "er", "#", "ɛɹ"),
    ("^", "ers", "_", "ɚz"),
    ("", "er", "", "ɜː"),
    ("", "ie", "_", "i"),
    ("", "ie", "", "iː"),
    ("", "ia", "", "iə"),
    ("", "io", "", "ɪoʊ"),
    ("", "ir", "#", "ɪɹ"),
    ("", "ir", "", "ɜː"),
    ("", "oa", "", "oʊ"),
    ("", "oe", "_", "oʊ"),
    ("", "oi", "", "ɔɪ"),
    ("", "oy", "", "ɔɪ"),
    ("", "oo", "k", "ʊ"),
    ("", "oo", "", "uː"),
    ("", "ou", "", "aʊ"),
    ("", "ow", "_", "oʊ"),
    ("", "ow", "", "aʊ"),
    ("^", "or", "_", "ɚ"),
    ("", "or", "", "ɔːɹ"),
    ("^", "on", "_", "ən"),
    ("^", "an", "_", "ən"),
    ("^", "et", "_", "ɪt"),
    ("", "ue", "_", "uː"),
    ("", "ui", "", "uː"),
    ("", "ur", "#", "jʊɹ"),
    ("", "ur", "", "ɜː"),
    ("", "uy", "", "aɪ"),
    ("", "yr", "", "ɪɹ"),
    ("", "ed", "_", "d"),
    ("", "es", "_", "z"),
    ("", "cc", "+", "ks"),
    ("", "sc", "+", "s"),
    ("", "gg", "", "ɡ"),
    ("", "a", "_", "ə"),
    ("", "a", "%", "eɪ"),
    ("", "a", "", "æ"),
    ("^", "e", "_", ""),
    ("", "e", "%", "iː"),
    ("", "e", "", "ɛ"),
    ("", "i", "_", "i"),
    ("", "i", "%", "aɪ"),
    ("", "i", "", "ɪ"),
    ("", "o", "_", "oʊ"),
    ("", "o", "@", "oʊ"),
    ("", "o", "", "ɑː"),
    ("", "u", "_", "uː"),
    ("", "u", "@", "uː"),
    ("", "u", "", "ʌ"),
    ("_", "y", "#", "j"),
    ("#", "y", "#", "j"),
    ("^", "y", "_", "i"),
    ("", "y", "%", "aɪ"),
    ("", "y", "", "ɪ"),
    ("", "b", "", "b"),
    ("", "c", "+", "s"),
    ("", "c", "", "k"),
    ("", "d", "", "d"),
    ("", "f", "", "f"),
    ("", "g", "+", "dʒ"),
    ("", "g", "", "ɡ"),
    ("", "h", "", "h"),
    ("", "j", "", "dʒ"),
    ("", "k", "", "k"),
    ("", "l", "", "l"),
    ("", "m", "", "m"),
    ("", "n", "", "n"),
    ("", "p", "", "p"),
    ("", "q", "", "k"),
    ("", "r", "", "ɹ"),
    ("#", "s", "_", "z"),
    ("", "s", "", "s"),
    ("", "t", "", "t"),
    ("", "v", "", "v"),
    ("", "w", "", "w"),
    ("_", "x", "", "z"),
    ("", "x", "", "ks"),
    ("", "z", "", "z"),
];

/// The names of the letters of `word`, the last one stressed most.
pub fn spell(word: &str) -> String {
    let names: Vec<&str> = folded(word.chars())
        .filter_map(|c| {
            LETTER_NAMES.get(usize::try_from(u32::from(c).checked_sub(u32::from('a'))?).ok()?).copied()
        })
        .collect();
    let Some((last, head)) = names.split_last() else { return String::new() };
    let mut ipa: String = head.iter().map(|name| name.replace('ˈ', "ˌ")).collect();
    ipa.push_str(last);
    ipa
}

/// The word of the lower-case `letters` by rule, its stress by the number of syllables.
pub fn by_rule(letters: &[char]) -> String {
    let letters: Vec<char> = folded(letters.iter().copied()).collect();
    if !letters.iter().any(|c| is_vowel(*c)) && letters.iter().all(char::is_ascii_alphabetic) {
        return spell(&letters.iter().collect::<String>());
    }
    let mut sounds: Vec<&str> = Vec::new();
    let mut foreign = String::new();
    let mut i = 0;
    while let Some(&c) = letters.get(i) {
        let doubled = letters.get(i + 1) == Some(&c) && !is_vowel(c) && c != 'c' && c != 'g';
        if doubled {
            i += 1;
            continue;
        }
        match RULES.iter().find(|rule| matches(rule, &letters, i)) {
            Some((_, spelling, _, sound)) => {
                sounds.push(sound);
                i += spelling.len();
            }
            None => {
                foreign.push(c);
                i += 1;
            }
        }
    }
    let mut ipa = stressed(&sounds);
    if !ipa.contains(super::espeak::is_vowel) {
        ipa = spell(&letters.iter().collect::<String>());
    }
    ipa.push_str(&foreign);
    ipa
}

/// Lower case without diacritics.
pub fn folded(letters: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    letters
        .flat_map(char::to_lowercase)
        .flat_map(|c| match c.is_ascii() || is_script_without_rules(c) {
            true => vec![c],
            false => std::iter::once(c).nfkd().collect(),
        })
        .filter(|c| !unicode_normalization::char::is_combining_mark(*c))
        .flat_map(|c| {
            let plain = match c {
                'ß' => "ss",
                'æ' => "ae",
                'œ' => "oe",
                'ø' => "o",
                'ł' => "l",
                'đ' | 'ð' => "d",
                'þ' => "th",
                'ı' => "i",
                _ => "",
            };
            plain.chars().chain(plain.is_empty().then_some(c))
        })
}

/// Whether `c` is of a script that no rule reads: taken apart, it would be reported as what nobody wrote.
fn is_script_without_rules(c: char) -> bool {
    c.is_alphabetic() && !std::iter::once(c).nfkd().all(|c| c.is_ascii() || !c.is_alphabetic() || is_latin(c))
}

fn is_latin(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}')
}

fn is_vowel(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
}

fn matches((left, spelling, right, _): &(&str, &str, &str, &str), letters: &[char], at: usize) -> bool {
    let end = at + spelling.len();
    let here = letters.get(at..end).is_some_and(|run| run.iter().copied().eq(spelling.chars()));
    let before = at.checked_sub(1).and_then(|i| letters.get(i)).copied();
    here && side(left, before, &[])
        && side(right, letters.get(end).copied(), letters.get(end..).unwrap_or_default())
}

fn side(pattern: &str, c: Option<char>, rest: &[char]) -> bool {
    match pattern {
        "" => true,
        "_" => c.is_none(),
        "#" => c.is_some_and(is_vowel),
        "^" => c.is_some_and(|c| !is_vowel(c)),
        "+" => matches!(c, Some('e' | 'i' | 'y')),
        "%" => matches!(rest, [c, 'e'] | [c, 'e', 's' | 'd' | 'r'] if !is_vowel(*c)),
        "@" => matches!(rest, [c, v, ..] if !is_vowel(*c) && is_vowel(*v)),
        letter => c.is_some_and(|c| letter.starts_with(c)),
    }
}

/// Stress before the first vowel, or the second of four and more syllables.
fn stressed(sounds: &[&str]) -> String {
    let nuclei: Vec<usize> = sounds
        .iter()
        .enumerate()
        .filter(|(_, s)| s.starts_with(super::espeak::is_vowel))
        .map(|(i, _)| i)
        .collect();
    let target = if nuclei.len() >= 4 { nuclei.len() - 3 } else { 0 };
    let stressed = nuclei.get(target);
    let mut ipa = String::new();
    for (i, sound) in sounds.iter().enumerate() {
        if Some(&i) == stressed {
            ipa.push('ˈ');
        }
        ipa.push_str(sound);
    }
    ipa
}
