//! Texts and a voice in, the characters that the voice has no symbol for out.
//!
//! A letter that is said as another one (`Å` as `A`) is among them: a voice that is trained on it learns the other one.
//! Typographic marks that have a plain form are not. Never changes a text.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::dataset::Clip;
use super::super::intake::Intake;
use crate::error::Result;
use crate::text::spm::CharModel;
use crate::voice::{SymbolTable, Voice};

/// A character that a voice lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lacking {
    pub character: char,
    /// In all texts.
    pub count: usize,
    /// Where it comes first, and the word there.
    pub line: usize,
    pub example: String,
    /// What is said for it; `None` where nothing is, and the clip is left out.
    pub said_as: Option<String>,
}

/// The characters of `clips` that `voice` lacks, the most frequent first.
pub fn lacking(voice: &Voice, intake: &Intake, clips: &[Clip]) -> Result<Vec<Lacking>> {
    let model = match &voice.symbols {
        SymbolTable::Characters(bytes) => Some(CharModel::parse(bytes, &voice.name)?),
        SymbolTable::Ipa(_) => None,
    };
    let has = |c: char| match &model {
        Some(model) => !c.is_alphabetic() || c.to_lowercase().chain([c]).any(|c| model.knows(c)),
        None => true,
    };
    let mut found: BTreeMap<char, Lacking> = BTreeMap::new();
    for clip in clips {
        let unmapped = match intake.spell(&clip.text) {
            Ok(segment) => segment.unmapped,
            // Nothing of it can be said.
            Err(_) => {
                clip.text.chars().filter(|c| c.is_alphabetic() && said_as(intake, *c).is_none()).collect()
            }
        };
        for c in clip.text.chars().filter(|c| !has(*c) || unmapped.contains(c)) {
            let entry = found.entry(c).or_insert_with(|| Lacking {
                character: c,
                count: 0,
                line: clip.line,
                example: clip.text.split_whitespace().find(|word| word.contains(c)).unwrap_or("").to_owned(),
                said_as: said_as(intake, c),
            });
            entry.count += 1;
        }
    }
    let mut found: Vec<Lacking> = found.into_values().collect();
    found.sort_by_key(|lacking| std::cmp::Reverse(lacking.count));
    Ok(found)
}

/// What a voice says for `c` alone, without the mark that ends it.
fn said_as(intake: &Intake, c: char) -> Option<String> {
    let segment = intake.spell(&c.to_string()).ok().filter(|segment| segment.unmapped.is_empty())?;
    Some(segment.spoken.trim_end_matches('.').to_owned())
}
