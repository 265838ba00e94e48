//! A word whose reading no rule gives in, that reading out.
//!
//! Never holds a word that a rule reads rightly.

use super::super::abbreviations::is_time_zone;
use super::token::{Here, Said};

/// What is written, letter by letter, and what is said.
const PHRASES: [(&str, &str); 38] = [
    ("1080i", "ten eighty I"),
    ("1080p", "ten eighty P"),
    ("1440p", "fourteen forty P"),
    ("20/20", "twenty twenty"),
    ("2160p", "twenty one sixty P"),
    ("24/7", "twenty four seven"),
    ("360p", "three sixty P"),
    ("480p", "four eighty P"),
    ("24/7/365", "twenty four seven, three sixty five"),
    ("50/50", "fifty fifty"),
    ("720p", "seven twenty P"),
    ("9-1-1", "nine one one"),
    ("9/11", "nine eleven"),
    ("911", "nine one one"),
    (":(", "sad face"),
    (":)", "smiley"),
    ("AT&T", "A T and T"),
    ("C++", "C plus plus"),
    ("I/O", "I O"),
    ("MHz", "megahertz"),
    ("N/A", "not applicable"),
    ("PhD", "P H D"),
    ("PhDs", "P H D's"),
    ("TCP/IP", "T C P I P"),
    ("and/or", "and or"),
    ("b/c", "because"),
    ("c/o", "care of"),
    ("h/t", "hat tip"),
    ("he/she", "he or she"),
    ("him/her", "him or her"),
    ("his/her", "his or her"),
    ("km/h", "kilometers per hour"),
    ("n/a", "not applicable"),
    ("she/he", "she or he"),
    ("w/", "with"),
    ("w/o", "without"),
    ("y'all", "y'all"),
    ("γ-ray", "gamma ray"),
];

pub fn read(here: &Here) -> Option<Said> {
    let core = here.part.core;
    PHRASES
        .iter()
        .find(|(written, _)| *written == core)
        .map(|(_, said)| Said::one(*said))
        .or_else(|| letters(core))
        .or_else(|| initial(core))
}

/// Short forms that a dictionary knows as words, and that are said letter by letter.
const LETTERS: [&str; 8] = ["ADHD", "ETA", "IDK", "ID", "ISO", "LED", "GUI", "TBA"];

fn letters(core: &str) -> Option<Said> {
    let spelled =
        LETTERS.contains(&core) || is_time_zone(core) && core.bytes().all(|c| c.is_ascii_uppercase());
    spelled.then(|| Said::one(core.chars().map(String::from).collect::<Vec<_>>().join(" ")))
}

/// `iPhone` and `eBay`: a small letter by its name, then a word.
fn initial(core: &str) -> Option<Said> {
    let (small, word) = core.split_at_checked(1)?;
    let mut letters = word.chars();
    let shape =
        matches!(small, "e" | "i") && letters.next()?.is_uppercase() && letters.clone().next().is_some();
    (shape && letters.all(char::is_alphabetic)).then(|| Said::one(format!("{small} {word}")))
}
