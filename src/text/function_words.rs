//! The closed class of English words and the number words in, their espeak-ng en-us forms out.
//!
//! Never holds a word whose espeak form follows from the dictionary's.

/// Words of espeak's own making: inside a clause, and at its end.
const FUNCTION_WORDS: &[(&str, &str, &str)] = &[
    ("a", "ɐ", "ˈeɪ"),
    ("about", "ɐbˌaʊt", "ɐbˈaʊt"),
    ("across", "əkɹˌɑːs", "əkɹˈɑːs"),
    ("always", "ˈɔːlweɪz", "ˈɔːlweɪz"),
    ("am", "æm", "ˈæm"),
    ("an", "ɐn", "ˈæn"),
    ("and", "ænd", "ænd"),
    ("any", "ˌɛni", "ˈɛni"),
    ("are", "ɑːɹ", "ɑːɹ"),
    ("as", "æz", "æz"),
    ("at", "æt", "æt"),
    ("be", "biː", "bˈiː"),
    ("because", "bɪkˈʌz", "bɪkˈʌz"),
    ("been", "bˌɪn", "bˌɪn"),
    ("before", "bᵻfˌɔːɹ", "bᵻfˈɔːɹ"),
    ("being", "bˌiːɪŋ", "bˈiːɪŋ"),
    ("between", "bᵻtwˌiːn", "bᵻtwˈiːn"),
    ("billion", "bˈɪliən", "bˈɪliən"),
    ("but", "bˌʌt", "bˌʌt"),
    ("by", "baɪ", "bˈaɪ"),
    ("can", "kæn", "kˈæn"),
    ("cannot", "kænˈɑːt", "kænˈɑːt"),
    ("could", "kʊd", "kˈʊd"),
    ("do", "dˈuː", "dˈuː"),
    ("down", "dˌaʊn", "dˈaʊn"),
    ("eighteen", "ˈeɪtiːn", "ˈeɪtiːn"),
    ("every", "ˈɛvɹi", "ˈɛvɹi"),
    ("fifteen", "fˈɪftiːn", "fˈɪftiːn"),
    ("for", "fɔːɹ", "fɔːɹ"),
    ("fourteen", "fˈɔːɹtiːn", "fˈɔːɹtiːn"),
    ("from", "fɹʌm", "fɹʌm"),
    ("get", "ɡɛt", "ɡˈɛt"),
    ("go", "ɡˌoʊ", "ɡˈoʊ"),
    ("had", "hæd", "hˌæd"),
    ("has", "hɐz", "hˈæz"),
    ("have", "hæv", "hˈæv"),
    ("he", "hiː", "hiː"),
    ("her", "hɜː", "hɜː"),
    ("herself", "hɜːsˈɛlf", "hɜːsˈɛlf"),
    ("him", "hˌɪm", "hˌɪm"),
    ("himself", "hɪmsˈɛlf", "hɪmsˈɛlf"),
    ("his", "hɪz", "hˈɪz"),
    ("how", "hˌaʊ", "hˈaʊ"),
    ("hundred", "hˈʌndɹɪd", "hˈʌndɹɪd"),
    ("i", "aɪ", "ˈaɪ"),
    ("i'm", "aɪm", "aɪm"),
    ("if", "ɪf", "ɪf"),
    ("in", "ɪn", "ˈɪn"),
    ("indeed", "ˌɪndˈiːd", "ˌɪndˈiːd"),
    ("into", "ˌɪntʊ", "ˌɪntʊ"),
    ("is", "ɪz", "ɪz"),
    ("it", "ɪt", "ɪt"),
    ("its", "ɪts", "ɪts"),
    ("may", "mˈeɪ", "mˈeɪ"),
    ("me", "mˌiː", "mˌiː"),
    ("million", "mˈɪliən", "mˈɪliən"),
    ("missus", "mˈɪsɪz", "mˈɪsɪz"),
    ("mrs", "mˈɪsɪz", "mˈɪsɪz"),
    ("must", "mˈʌst", "mˈʌst"),
    ("my", "maɪ", "maɪ"),
    ("nineteen", "nˈaɪntiːn", "nˈaɪntiːn"),
    ("ninety", "nˈaɪnti", "nˈaɪnti"),
    ("not", "nˌɑːt", "nˈɑːt"),
    ("of", "ʌv", "ʌv"),
    ("on", "ˌɔn", "ˈɔn"),
    ("or", "ɔːɹ", "ɔːɹ"),
    ("our", "ˌaʊɚ", "ˈaʊɚ"),
    ("over", "ˌoʊvɚ", "ˈoʊvɚ"),
    ("seventeen", "sˈɛvəntˌiːn", "sˈɛvəntˌiːn"),
    ("she", "ʃiː", "ʃiː"),
    ("should", "ʃˌʊd", "ʃˈʊd"),
    ("sixteen", "sˈɪkstiːn", "sˈɪkstiːn"),
    ("so", "sˌoʊ", "sˈoʊ"),
    ("some", "sˌʌm", "sˈʌm"),
    ("than", "ðɐn", "ðɐn"),
    ("that", "ðæt", "ðˈæt"),
    ("the", "ðə", "ðə"),
    ("their", "ðɛɹ", "ðɛɹ"),
    ("them", "ðˌɛm", "ðˌɛm"),
    ("there", "ðɛɹ", "ðˈɛɹ"),
    ("these", "ðiːz", "ðˈiːz"),
    ("they", "ðeɪ", "ðeɪ"),
    ("thirteen", "θˈɜːtiːn", "θˈɜːtiːn"),
    ("this", "ðɪs", "ðˈɪs"),
    ("to", "tə", "tuː"),
    ("trillion", "tɹˈɪliən", "tɹˈɪliən"),
    ("under", "ˌʌndɚ", "ˈʌndɚ"),
    ("up", "ˌʌp", "ˈʌp"),
    ("upon", "əpˌɑːn", "əpˈɑːn"),
    ("us", "ˌʌs", "ˌʌs"),
    ("was", "wʌz", "wʌz"),
    ("we", "wiː", "wiː"),
    ("were", "wɜː", "wɜː"),
    ("what", "wʌt", "wˌʌt"),
    ("when", "wɛn", "wˈɛn"),
    ("where", "wˌɛɹ", "wˈɛɹ"),
    ("which", "wˌɪtʃ", "wˈɪtʃ"),
    ("who", "hˌuː", "hˈuː"),
    ("why", "wˌaɪ", "wˈaɪ"),
    ("will", "wɪl", "wˈɪl"),
    ("with", "wɪð", "wɪð"),
    ("within", "wɪðˌɪn", "wɪðˈɪn"),
    ("without", "wɪðˌaʊt", "wɪðˈaʊt"),
    ("would", "wʊd", "wˈʊd"),
    ("you", "juː", "juː"),
    ("your", "jʊɹ", "jʊɹ"),
    ("yourself", "jɔːɹsˈɛlf", "jɔːɹsˈɛlf"),
    ("zero", "zˈiəɹoʊ", "zˈiəɹoʊ"),
];

/// A function word of lower-case letters: espeak's stress depends on where in a clause it stands.
pub fn function_word(word: &str, ends_clause: bool) -> Option<&'static str> {
    let at = FUNCTION_WORDS.binary_search_by_key(&word, |(word, ..)| word).ok()?;
    let (_, inside, end) = FUNCTION_WORDS.get(at)?;
    Some(if ends_clause { end } else { inside })
}

/// Pairs that espeak runs together, and the sounds of each; an empty one keeps its own.
const PAIRS: &[(&str, &str, &str, &str)] = &[
    ("at", "once", "ɐt", "wˈʌns"),
    ("could", "have", "kˌʊd", "ɐv"),
    ("did", "not", "dɪd", "nˌɑːt"),
    ("do", "not", "duː", "nˌɑːt"),
    ("does", "not", "dʌz", "nˌɑːt"),
    ("for", "a", "fɚɹ", "ə"),
    ("for", "the", "fɚ", ""),
    ("from", "the", "fɹʌm", ""),
    ("had", "been", "hɐd", "bɪn"),
    ("has", "been", "hˈæz", "biːn"),
    ("have", "been", "hɐv", "bɪn"),
    ("have", "not", "hɐv", "nˌɑːt"),
    ("i", "am", "aɪ", "ɐm"),
    ("i", "shall", "aɪ", "ʃˌɐl"),
    ("in", "the", "ɪn", ""),
    ("in", "which", "ɪn", "wˌɪtʃ"),
    ("may", "have", "mˌeɪ", "hɐv"),
    ("might", "have", "mˌaɪt", "hɐv"),
    ("must", "have", "mˈʌst", "ɐv"),
    ("not", "a", "nˌɑːɾ", "ə"),
    ("of", "a", "əv", "ə"),
    ("of", "the", "ʌv", ""),
    ("on", "the", "ɔn", ""),
    ("out", "of", "ˌaʊɾ", "əv"),
    ("should", "have", "ʃˌʊd", "əv"),
    ("that", "it", "ðˌɐɾ", "ɪt"),
    ("that", "the", "ðæt", ""),
    ("there", "was", "ðɛɹ", "wˌʌz"),
    ("there", "were", "ðɛɹ", "wˌɜː"),
    ("to", "be", "tə", "bi"),
    ("was", "a", "wʌz", "ɐ"),
    ("was", "the", "wʌz", ""),
    ("we", "shall", "wiː", "ʃˌɐl"),
    ("with", "the", "wɪð", ""),
    ("would", "have", "wʊd", "hɐv"),
];

/// The sounds of `first second` in one, where the second alone would be `second_ipa`.
pub fn joined(first: &str, second: &str, second_ipa: &str) -> Option<String> {
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let (_, _, head, tail) = PAIRS.iter().find(|pair| same(pair.0, first) && same(pair.1, second))?;
    Some(format!("{head}{}", if tail.is_empty() { second_ipa } else { tail }))
}

/// Adapts the end of a word to the word that follows without a mark between them.
pub fn link(ipa: &mut String, word: &str, next: &str) {
    if !next.trim_start_matches(['ˈ', 'ˌ']).starts_with(super::espeak::is_vowel) {
        return;
    }
    match word.to_ascii_lowercase().as_str() {
        "the" => *ipa = "ðɪ".into(),
        "to" => *ipa = "tʊ".into(),
        "it" => *ipa = "ɪɾ".into(),
        _ if ipa.ends_with("ɜː") || ipa.ends_with('ɚ') => ipa.push('ɹ'),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::FUNCTION_WORDS;

    #[test]
    fn function_words_are_in_order_for_the_search() {
        assert!(FUNCTION_WORDS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
