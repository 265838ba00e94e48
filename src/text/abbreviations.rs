//! A shortened word in, the full word out; one table for splitting and for reading.
//!
//! Never holds a word that is also a common word in full.

/// What must follow an abbreviation for it to be read as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Its full stop.
    Stop,
    /// Its full stop, and it may end a sentence.
    StopOrEnd,
    /// Its full stop and then a digit.
    Digit,
}

const TABLE: &[(&str, &str, When)] = &[
    ("mr", "mister", When::Stop),
    ("mrs", "missus", When::Stop),
    ("ms", "miz", When::Stop),
    ("messrs", "messers", When::Stop),
    ("dr", "doctor", When::Stop),
    ("st", "saint", When::Stop),
    ("prof", "professor", When::Stop),
    ("capt", "captain", When::Stop),
    ("lt", "lieutenant", When::Stop),
    ("col", "colonel", When::Stop),
    ("gen", "general", When::Stop),
    ("sgt", "sergeant", When::Stop),
    ("rev", "reverend", When::Stop),
    ("hon", "honorable", When::Stop),
    ("mt", "mount", When::Stop),
    ("vs", "versus", When::Stop),
    ("e.g", "for example", When::Stop),
    ("i.e", "that is", When::Stop),
    ("cf", "compare", When::Stop),
    ("approx", "approximately", When::Stop),
    ("dept", "department", When::Stop),
    ("jr", "junior", When::StopOrEnd),
    ("sr", "senior", When::StopOrEnd),
    ("etc", "et cetera", When::StopOrEnd),
    ("inc", "incorporated", When::StopOrEnd),
    ("ltd", "limited", When::StopOrEnd),
    ("corp", "corporation", When::StopOrEnd),
    ("co", "company", When::StopOrEnd),
    ("ave", "avenue", When::StopOrEnd),
    ("blvd", "boulevard", When::StopOrEnd),
    ("rd", "road", When::StopOrEnd),
    ("no", "number", When::Digit),
    ("nos", "numbers", When::Digit),
    ("fig", "figure", When::Digit),
    ("vol", "volume", When::Digit),
    ("jan", "january", When::Digit),
    ("feb", "february", When::Digit),
    ("aug", "august", When::Digit),
    ("sept", "september", When::Digit),
    ("oct", "october", When::Digit),
    ("nov", "november", When::Digit),
    ("dec", "december", When::Digit),
];

fn entry(word: &str) -> Option<&'static (&'static str, &'static str, When)> {
    TABLE.iter().find(|(short, _, _)| short.eq_ignore_ascii_case(word))
}

/// Whether `word` (without its stop) is in the table, or initials.
pub fn is_abbreviation(word: &str) -> bool {
    entry(word).is_some() || is_dotted_initials(word)
}

/// Whether a stop after `word` ends the sentence only when a capital follows: `etc.`, `p.m.`. After
/// `U.S.` a capital is as often the next word of a name.
pub fn ends_only_before_capital(word: &str) -> bool {
    entry(word).is_some_and(|(_, _, when)| *when == When::StopOrEnd)
        || (is_dotted_initials(word) && word.starts_with(char::is_lowercase))
}

/// `U.S`, `a.m`: single letters with stops between them.
pub fn is_dotted_initials(word: &str) -> bool {
    word.contains('.')
        && entry(word).is_none()
        && word.split('.').all(|part| {
            let mut chars = part.chars();
            chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
        })
}

/// The full form of `word` (without its stop) where the next word begins with `next`.
pub fn expansion(word: &str, next: Option<char>) -> Option<&'static str> {
    if word.eq_ignore_ascii_case("st") && !next.is_some_and(char::is_uppercase) {
        return Some("street");
    }
    let (_, full, when) = entry(word)?;
    let digit_follows = next.is_some_and(|c| c.is_ascii_digit());
    (*when != When::Digit || digit_follows).then_some(*full)
}
