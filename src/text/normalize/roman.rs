//! A Roman numeral in, its number out, where it is one.
//!
//! Never takes a word for a numeral: alone only `II` to `XXXIX` and years count; `MIX`, `DID` and the pronoun do not.

use super::super::numbers::{cardinal, ordinal, year};
use super::token::{Here, Said};

const VALUES: [(&str, u32); 13] = [
    ("M", 1000),
    ("CM", 900),
    ("D", 500),
    ("CD", 400),
    ("C", 100),
    ("XC", 90),
    ("L", 50),
    ("XL", 40),
    ("X", 10),
    ("IX", 9),
    ("V", 5),
    ("IV", 4),
    ("I", 1),
];

/// The longest numeral, `MMMDCCCLXXXVIII`.
const MAX_LETTERS: usize = 15;

/// Words before a part of a whole that is counted, in lower case.
const COUNTED: [&str; 32] = [
    "act", "appendix", "article", "book", "bowl", "canto", "chapter", "class", "corps", "division",
    "element", "episode", "figure", "grade", "group", "level", "mark", "olympiad", "part", "phase",
    "schedule", "scene", "section", "stage", "table", "tier", "title", "type", "unit", "verse", "volume",
    "war",
];

/// Names that monarchs and popes bore.
const REGNAL: [&str; 50] = [
    "Albert",
    "Alexander",
    "Alfonso",
    "Benedict",
    "Boniface",
    "Catherine",
    "Celestine",
    "Charles",
    "Christian",
    "Clement",
    "Constantine",
    "Darius",
    "David",
    "Edward",
    "Elizabeth",
    "Eric",
    "Ferdinand",
    "Francis",
    "Frederick",
    "George",
    "Gregory",
    "Gustav",
    "Haakon",
    "Harald",
    "Henry",
    "Innocent",
    "Ivan",
    "James",
    "John",
    "Joseph",
    "Julius",
    "Leo",
    "Leopold",
    "Louis",
    "Malcolm",
    "Mary",
    "Mehmed",
    "Napoleon",
    "Nicholas",
    "Otto",
    "Paul",
    "Peter",
    "Philip",
    "Pius",
    "Ramesses",
    "Richard",
    "Robert",
    "Urban",
    "Wilhelm",
    "William",
];

/// Words after a name and `I` that make the `I` a number and no pronoun.
const AFTER_THE_FIRST: [&str; 9] = ["and", "became", "died", "in", "of", "reigned", "ruled", "to", "who"];

/// What `IV` is given in, and no number: `an IV drip`.
const INTRAVENOUS: [&str; 6] = ["bag", "drip", "fluid", "fluids", "line", "lines"];

pub fn read(here: &Here) -> Option<Said> {
    let core = here.part.core;
    let (numeral, owner) = core.strip_suffix("'s").map_or((core, ""), |numeral| (numeral, "'s"));
    let number = of_numeral(numeral)?;
    let before = here.before().map_or("", |part| part.core);
    let next = here.ahead(1).map_or("", |part| part.core);
    let (single, small) = (numeral.len() == 1, numeral.bytes().all(|c| matches!(c, b'I' | b'V' | b'X')));
    let lower = before.to_lowercase();
    if COUNTED.contains(&lower.as_str()) && (small || !single) {
        return Some(Said::one(cardinal(&number.to_string()) + owner));
    }
    if REGNAL.contains(&before) && small && number < 40 {
        let alone = next.is_empty() || !here.part.tail.is_empty() || !owner.is_empty();
        let is_pronoun = numeral == "I" && !alone && !AFTER_THE_FIRST.contains(&next);
        return (!is_pronoun).then(|| Said::one(format!("the {}{owner}", ordinal(&number.to_string()))));
    }
    if numeral == "IV" && INTRAVENOUS.contains(&next) {
        return Some(Said::one("I V"));
    }
    if small && !single {
        return Some(Said::one(cardinal(&number.to_string()) + owner));
    }
    (numeral.len() >= 4 && number >= 1000).then_some(())?;
    let digits = number.to_string();
    Some(Said::one(year(&digits).unwrap_or_else(|| cardinal(&digits)) + owner))
}

/// The number of a numeral in its one right spelling.
fn of_numeral(letters: &str) -> Option<u32> {
    (!letters.is_empty() && letters.len() <= MAX_LETTERS).then_some(())?;
    let (mut rest, mut number) = (letters, 0);
    for (sign, value) in VALUES {
        while let Some(shorter) = rest.strip_prefix(sign) {
            (rest, number) = (shorter, number + value);
        }
    }
    (rest.is_empty() && numeral(number) == letters).then_some(number)
}

fn numeral(number: u32) -> String {
    let (mut left, mut letters) = (number, String::new());
    for (sign, value) in VALUES {
        while left >= value {
            letters.push_str(sign);
            left -= value;
        }
    }
    letters
}
