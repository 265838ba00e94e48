//! Phonemes as `misaki` writes them in, the espeak-ng en-us style of the voices' training out.
//!
//! Never looks a word up: its spelling only chooses between reduced vowels.

/// A vowel, or the first half of a diphthong, of espeak's en-us.
pub fn is_vowel(c: char) -> bool {
    "aeiouæɐɑɒɔəɚɛɜɪʊʌᵻ".contains(c)
}

/// A vowel of `misaki`'s alphabet.
fn is_nucleus(c: char) -> bool {
    "AIOWYaiuæɑɒɔəɛɜɪʊʌᵻᵊ".contains(c)
}

/// `raw` of the lower-case `word` in espeak's style.
pub fn from_misaki(raw: &str, word: &str) -> String {
    let sounds: Vec<char> = raw.chars().collect();
    let spelled = spelled_nuclei(&sounds, word);
    let at = |i: usize| sounds.get(i).copied().unwrap_or(' ');
    let last_nucleus = sounds.iter().rposition(|&c| is_nucleus(c)).unwrap_or(0);
    let mut out = String::with_capacity(raw.len() * 2);
    let (mut stress, mut primary, mut nucleus) = (false, false, 0);
    let mut i = 0;
    while i < sounds.len() {
        let (c, next) = (at(i), at(i + 1));
        let place = Place {
            spelling: spelled.get(nucleus).copied().unwrap_or_default(),
            first: nucleus == 0,
            last: i == last_nucleus,
            initial: i == 0,
            onset: out.chars().last().unwrap_or(' '),
        };
        let before_vowel = is_nucleus(at(i + 2)) || matches!(at(i + 2), 'ˈ' | 'ˌ');
        match c {
            'ˈ' | 'ˌ' => {
                stress = true;
                primary |= c == 'ˈ';
                let plain_prefix = c == 'ˌ' && i == 0 && matches!(word.get(..2), Some("un"));
                if !plain_prefix {
                    out.push(c);
                }
            }
            'ɜ' => {
                out.push_str("ɜː");
                i += usize::from(next == 'ɹ' && !before_vowel);
            }
            'ᵊ' if next == 'l' && out.ends_with('k') && word.ends_with("ically") => {}
            'z' if word.starts_with("trans") && out.ends_with('n') && nucleus == 1 => out.push('s'),
            'ə' | 'ᵊ' if next == 'ɹ' => {
                out.push('ɚ');
                i += usize::from(!before_vowel);
            }
            'ə' if next == 'w' && before_vowel && i > 0 => {
                out.push_str("uː");
                i += 1;
            }
            'ə' if out.ends_with('j') && !place.last => out.push('ʊ'),
            'ə' => out.push_str(reduced(&place)),
            'ɪ' if !stress && place.first && place.spelling.starts_with('e') => {
                out.push_str(if place.initial && next == 'm' { "ɪ" } else { reduced(&place) })
            }
            'i' => out.push_str(long_i(&place, stress, primary, next, at(i + 2))),
            'u' => out.push_str("uː"),
            'ʊ' if !stress && (is_nucleus(next) || matches!(next, 'ˈ' | 'ˌ')) => out.push_str("uː"),
            'ɛ' if next == 'ɹ' && before_vowel && open_ar(place.spelling) && primary => out.push('æ'),
            'ɑ' if next == 'ŋ' => out.push('ɔ'),
            'ɑ' => out.push_str("ɑː"),
            'ɔ' if next == 'l' && at(i + 2) == 't' => out.push('ɔ'),
            'ɔ' if !matches!(next, 'ŋ' | 'f' | 'θ' | 's' | 'n') => out.push_str("ɔː"),
            'ᵻ' if next == 's' && at(i + 2) == 't' => out.push('ɪ'),
            't' if flaps(&out, next) => out.push('ɾ'),
            'n' if matches!(next, 'k' | 'ɡ') && !stress && i > 0 => out.push('ŋ'),
            'n' if out.ends_with('ʔ') && !is_nucleus(next) => out.push_str("n\u{329}"),
            _ => widen(c, &mut out),
        }
        if is_nucleus(c) {
            (stress, nucleus) = (false, nucleus + 1);
        }
        i += 1;
    }
    if word.ends_with("day") && out.ends_with("dˌeɪ") {
        out.replace_range(out.len() - "ˌeɪ".len().., "eɪ");
    }
    out
}

/// Where a vowel stands in its word.
struct Place<'a> {
    /// The rest of the word from the vowel's letters on; empty when sounds and letters do not match up.
    spelling: &'a str,
    first: bool,
    last: bool,
    /// It is the word's first sound.
    initial: bool,
    /// The sound before it.
    onset: char,
}

/// Endings before which a verb's or adjective's `e` stays silent.
const SILENT_E_BEFORE: [&str; 7] = ["ly", "ness", "ment", "ful", "less", "th", "some"];

/// The rest of `word` from each vowel group on, if there are as many groups as vowels in `sounds`.
fn spelled_nuclei<'a>(sounds: &[char], word: &'a str) -> Vec<&'a str> {
    let vowel = |c: char| matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y');
    let mut groups = Vec::new();
    let mut inside = false;
    for (at, c) in word.char_indices() {
        if vowel(c) && !inside {
            groups.extend(word.get(at..));
        }
        inside = vowel(c);
    }
    let nuclei = sounds.iter().filter(|&&c| is_nucleus(c)).count();
    let silent = |group: &str| {
        group.strip_prefix('e').is_some_and(|rest| {
            matches!(rest, "" | "d" | "s" | "'s")
                || SILENT_E_BEFORE.iter().any(|ending| rest.starts_with(ending))
        })
    };
    while groups.len() > nuclei
        && let Some(at) = groups.iter().rposition(|group| silent(group))
    {
        groups.remove(at);
    }
    let mut at = 0;
    while groups.len() < nuclei && at < groups.len() {
        let pair = groups.get(at).and_then(|group| group.get(..2));
        if pair
            .is_some_and(|pair| matches!(pair, "ia" | "io" | "iu" | "ie" | "eo" | "ua" | "ue" | "uo" | "ea"))
            && let Some(second) = groups.get(at).and_then(|group| group.get(1..))
        {
            groups.insert(at + 1, second);
        }
        at += 1;
    }
    if groups.len() == nuclei { groups } else { Vec::new() }
}

/// The reduced vowel that espeak gives to a schwa, by its letter and what follows.
fn reduced(place: &Place) -> &'static str {
    let mut letters = place.spelling.chars();
    let (letter, after) = (letters.next().unwrap_or(' '), letters.as_str());
    let second = after.chars().next().unwrap_or(' ');
    let one_letter = !matches!(second, 'a' | 'e' | 'i' | 'o' | 'u' | 'y');
    match letter {
        'a' if place.first && one_letter => "ɐ",
        'e' if place.initial && matches!(second, 'n' | 'm' | 'x') => "ɛ",
        'e' if place.first && place.onset == 'h' => "ə",
        'e' if place.first && matches!(second, 'g' | 'c') && !matches!(place.onset, 'ɹ' | 'd') => "ɪ",
        'e' if place.first && one_letter && !place.last => "ᵻ",
        'e' if place.last && matches!(after, "t" | "ts") => "ɪ",
        'e' if !place.last && matches!(second, 'c' | 'g' | 't' | 'q' | 'k') => "ɪ",
        'u' if place.initial => "ʌ",
        'u' if second == 'l' && !place.last && !place.first => "ʊ",
        'u' if second == 'i' => "ɪ",
        'i' if !one_letter => "ə",
        'i' if place.first && second == 'r' => "ᵻ",
        'i' if place.last && after == "ns" => "ᵻ",
        'i' if place.last || place.first => "ɪ",
        'i' => match after.get(..2).unwrap_or_default() {
            "ty" | "ti" | "fi" | "na" | "bl" | "ga" | "za" => "ᵻ",
            "bi" => "ə",
            _ => "ɪ",
        },
        'y' => "ɪ",
        _ => "ə",
    }
}

/// `marry`, `character`, `tariff`, but not `area`, `care`, `various`.
fn open_ar(spelling: &str) -> bool {
    spelling.strip_prefix("ar").is_some_and(|rest| {
        rest.starts_with('r')
            || (rest.starts_with(['a', 'i', 'o']) && !matches!(rest.get(..2), Some("ia" | "io" | "iu")))
    })
}

fn long_i(place: &Place, stress: bool, primary: bool, next: char, after: char) -> &'static str {
    let open = next == ' ' || is_nucleus(next) || matches!(next, 'ˈ' | 'ˌ');
    let inflected = after == ' ' && matches!(next, 'z' | 'd');
    match () {
        _ if stress => "iː",
        _ if place.spelling == "iness" => "i",
        _ if matches!(next, 'ˈ' | 'ˌ') => "ɪ",
        _ if open && (primary || !place.last) => "i",
        _ if place.first && place.last => "iː",
        _ if inflected => "i",
        _ if place.spelling.starts_with('y') => "ɪ",
        _ if place.first && place.spelling.starts_with('e') && !open => reduced(place),
        _ => "iː",
    }
}

/// `t` between a vowel and an unstressed vowel.
fn flaps(before: &str, next: char) -> bool {
    before.ends_with(|c: char| is_vowel(c) || c == 'ː') && is_nucleus(next) && next != 'ᵊ'
}

fn widen(c: char, out: &mut String) {
    match c {
        'A' => out.push_str("eɪ"),
        'I' => out.push_str("aɪ"),
        'O' => out.push_str("oʊ"),
        'W' => out.push_str("aʊ"),
        'Y' => out.push_str("ɔɪ"),
        'ʤ' => out.push_str("dʒ"),
        'ʧ' => out.push_str("tʃ"),
        'ᵊ' => out.push('ə'),
        'T' => out.push('ɾ'),
        other => out.push(other),
    }
}
