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
    ("adm", "admiral", When::Stop),
    ("al", "al", When::StopOrEnd),
    ("approx", "approximately", When::Stop),
    ("apr", "April", When::Digit),
    ("apt", "apartment", When::Digit),
    ("appt", "appointment", When::StopOrEnd),
    ("art", "article", When::Digit),
    ("assn", "association", When::StopOrEnd),
    ("asst", "assistant", When::Stop),
    ("aug", "August", When::Digit),
    ("ave", "avenue", When::StopOrEnd),
    ("b", "born", When::Digit),
    ("bldg", "building", When::StopOrEnd),
    ("blvd", "boulevard", When::StopOrEnd),
    ("bros", "brothers", When::StopOrEnd),
    ("c", "circa", When::Digit),
    ("ca", "circa", When::Digit),
    ("capt", "captain", When::Stop),
    ("cf", "compare", When::Stop),
    ("ch", "chapter", When::Digit),
    ("cmdr", "commander", When::Stop),
    ("co", "company", When::StopOrEnd),
    ("col", "colonel", When::Stop),
    ("corp", "corporation", When::StopOrEnd),
    ("d", "died", When::Digit),
    ("dec", "December", When::Digit),
    ("dept", "department", When::Stop),
    ("dr", "doctor", When::Stop),
    ("dist", "district", When::Stop),
    ("e.g", "for example", When::Stop),
    ("ea", "each", When::StopOrEnd),
    ("eq", "equation", When::Digit),
    ("esq", "esquire", When::StopOrEnd),
    ("est", "established", When::Digit),
    ("etc", "et cetera", When::StopOrEnd),
    ("excl", "excluding", When::Stop),
    ("ext", "extension", When::Digit),
    ("feb", "February", When::Digit),
    ("fig", "figure", When::Digit),
    ("figs", "figures", When::Digit),
    ("fri", "Friday", When::StopOrEnd),
    ("ft", "fort", When::Stop),
    ("gen", "general", When::Stop),
    ("gov", "governor", When::Stop),
    ("hon", "honorable", When::Stop),
    ("hwy", "highway", When::StopOrEnd),
    ("i.e", "that is", When::Stop),
    ("inc", "incorporated", When::StopOrEnd),
    ("incl", "including", When::Stop),
    ("jan", "January", When::Digit),
    ("jr", "junior", When::StopOrEnd),
    ("jul", "July", When::Digit),
    ("jun", "June", When::Digit),
    ("lat", "latitude", When::Digit),
    ("ll", "lines", When::Digit),
    ("ln", "lane", When::StopOrEnd),
    ("lt", "lieutenant", When::Stop),
    ("ltd", "limited", When::StopOrEnd),
    ("maj", "major", When::Stop),
    ("mar", "March", When::Digit),
    ("max", "maximum", When::Digit),
    ("messrs", "messers", When::Stop),
    ("mgr", "manager", When::StopOrEnd),
    ("misc", "miscellaneous", When::Stop),
    ("mon", "Monday", When::StopOrEnd),
    ("mr", "mister", When::Stop),
    ("mrs", "missus", When::Stop),
    ("ms", "miz", When::Stop),
    ("mt", "mount", When::Stop),
    ("no", "number", When::Digit),
    ("nos", "numbers", When::Digit),
    ("nov", "November", When::Digit),
    ("oct", "October", When::Digit),
    ("op", "opus", When::Digit),
    ("p", "page", When::Digit),
    ("ph.d", "P H D", When::StopOrEnd),
    ("pkwy", "parkway", When::StopOrEnd),
    ("pop", "population", When::Digit),
    ("pp", "pages", When::Digit),
    ("pres", "president", When::Stop),
    ("prof", "professor", When::Stop),
    ("pt", "part", When::Digit),
    ("rd", "road", When::StopOrEnd),
    ("rep", "representative", When::Stop),
    ("rev", "reverend", When::Stop),
    ("rm", "room", When::Digit),
    ("sc", "scene", When::Digit),
    ("sec", "section", When::Digit),
    ("sen", "senator", When::Stop),
    ("sept", "September", When::Digit),
    ("sgt", "sergeant", When::Stop),
    ("sr", "senior", When::StopOrEnd),
    ("st", "saint", When::Stop),
    ("ste", "suite", When::Digit),
    ("supt", "superintendent", When::Stop),
    ("tab", "table", When::Digit),
    ("tel", "telephone", When::Digit),
    ("thu", "Thursday", When::StopOrEnd),
    ("thur", "Thursday", When::StopOrEnd),
    ("thurs", "Thursday", When::StopOrEnd),
    ("tue", "Tuesday", When::StopOrEnd),
    ("tues", "Tuesday", When::StopOrEnd),
    ("univ", "university", When::Stop),
    ("v", "versus", When::Stop),
    ("viz", "namely", When::Stop),
    ("vol", "volume", When::Digit),
    ("vols", "volumes", When::Digit),
    ("vs", "versus", When::Stop),
];

/// Units that are written with a stop as often as without; where they end a sentence, a capital follows.
const STOPPED_UNITS: &[&str] = &[
    "fl", "gal", "hr", "hrs", "lb", "lbs", "min", "mins", "mo", "mos", "oz", "qt", "sec", "secs", "sq",
    "tbsp", "tsp", "wk", "wks", "yd", "yds", "yr", "yrs",
];

fn entry(word: &str) -> Option<&'static (&'static str, &'static str, When)> {
    // A single capital is an initial.
    TABLE.iter().find(|(short, ..)| short.eq_ignore_ascii_case(word) && (word.len() > 1 || *short == word))
}

/// Whether `word` (without its stop) is in the table, or initials.
pub fn is_abbreviation(word: &str) -> bool {
    entry(word).is_some() || is_dotted_initials(word)
}

/// Whether a stop after `word` ends the sentence only when a capital follows: `etc.`, `p.m.`. After
/// `U.S.` a capital is as often the next word of a name.
pub fn ends_only_before_capital(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    entry(word).is_some_and(|(_, _, when)| *when == When::StopOrEnd)
        || STOPPED_UNITS.iter().any(|short| short.eq_ignore_ascii_case(unit))
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

/// The words beside an abbreviation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Neighbours<'a> {
    /// Without its marks; `None` where a mark parts it from the abbreviation.
    pub before: Option<&'a str>,
    /// As it is written.
    pub next: Option<&'a str>,
    /// A number stands a word or two before, as in an address.
    pub numbered: bool,
}

/// The full form of `word` (without its stop) between its neighbours.
pub fn expansion(word: &str, beside: &Neighbours) -> Option<&'static str> {
    let next = beside.next.and_then(|next| next.chars().find(|c| c.is_alphanumeric() || *c == '#'));
    let names = next.is_some_and(char::is_uppercase) && !beside.next.is_some_and(opens_sentence);
    let after_name = beside.before.is_some_and(|before| before.starts_with(char::is_uppercase));
    if word.eq_ignore_ascii_case("st") && (!names || (after_name && beside.numbered)) {
        return Some("street");
    }
    if word == "Dr" && after_name && !names && !beside.before.is_some_and(opens_sentence) {
        return Some("drive");
    }
    let measured = beside.before.is_some_and(|before| before.starts_with(|c: char| c.is_ascii_digit()));
    if word.eq_ignore_ascii_case("ft") && (measured || !names) {
        return None;
    }
    let (_, full, when) = entry(word)?;
    let counted = beside.next.is_some_and(begins_with_number);
    let reverend = *full != "reverend" || next.is_some_and(char::is_uppercase);
    (reverend && (*when != When::Digit || counted)).then_some(*full)
}

/// `5`, `#5`, `(5` or `II`, beside which words are written short: `vol. II`. A single letter is more often a word.
pub fn begins_with_number(word: &str) -> bool {
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let numeral = word.trim_end_matches(|c: char| !c.is_alphanumeric());
    let roman = (2..=6).contains(&numeral.len()) && numeral.bytes().all(|c| matches!(c, b'I' | b'V' | b'X'));
    word.starts_with(|c: char| c.is_ascii_digit()) || roman
}

/// Zones that follow a time of day.
const TIME_ZONES: &[&str] = &[
    "AEST", "BST", "CDT", "CEST", "CET", "CST", "EDT", "EST", "GMT", "IST", "JST", "MDT", "MST", "PDT",
    "PST", "UTC",
];

/// Whether `word`, with the marks around it, is the name of a time zone.
pub fn is_time_zone(word: &str) -> bool {
    TIME_ZONES.contains(&word.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// Words that begin a sentence and are hardly ever part of a name, in lower case.
const OPENERS: &[&str] = &[
    "a",
    "after",
    "all",
    "also",
    "an",
    "and",
    "another",
    "are",
    "as",
    "at",
    "because",
    "before",
    "both",
    "but",
    "by",
    "can",
    "did",
    "do",
    "does",
    "each",
    "everyone",
    "finally",
    "for",
    "from",
    "had",
    "has",
    "have",
    "he",
    "her",
    "here",
    "his",
    "how",
    "however",
    "i",
    "if",
    "in",
    "is",
    "it",
    "it's",
    "its",
    "later",
    "let",
    "many",
    "maybe",
    "meanwhile",
    "most",
    "my",
    "no",
    "nobody",
    "not",
    "nothing",
    "now",
    "of",
    "on",
    "once",
    "one",
    "or",
    "our",
    "perhaps",
    "please",
    "she",
    "since",
    "so",
    "some",
    "someone",
    "sometimes",
    "still",
    "that",
    "the",
    "their",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "though",
    "to",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "why",
    "with",
    "would",
    "yes",
    "yet",
    "you",
    "your",
];

/// Whether `word` is a capitalised word that begins a sentence rather than goes on with a name. An initial, `A.`,
/// does not.
pub fn opens_sentence(word: &str) -> bool {
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let bare = word.trim_end_matches([',', ';', ':', '"', '\'']);
    word.starts_with(char::is_uppercase) && bare.len() < 12 && OPENERS.contains(&bare.to_lowercase().as_str())
}

/// Whether `word` is written short only before a number: `fig. 3`.
pub fn needs_digit(word: &str) -> bool {
    entry(word).is_some_and(|(_, _, when)| *when == When::Digit)
}
