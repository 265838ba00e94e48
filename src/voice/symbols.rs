//! `symbols.json` or `spm_char.model` in, how a voice spells out.
//!
//! Never says how text becomes symbols.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::SymbolTable;
use super::bounds::{Checked, json};
use super::config::AcousticConfig;
use super::manifest::{FrontendKind, Manifest};
use super::source::{SPELLING_BYTES, Source};
use crate::error::{Error, Result};

/// Marks the start and the end of a sentence.
const START: char = '^';
const END: char = '$';

/// The table that the voice's files, and `voice.toml` before them, ask for.
pub fn load(source: Source, manifest: &Manifest, config: &AcousticConfig) -> Result<SymbolTable> {
    const CHARACTERS: &str = "spm_char.model";
    const IPA: &str = "symbols.json";
    let characters = source.read(CHARACTERS, SPELLING_BYTES)?;
    let frontend = match (manifest.text.frontend, &characters) {
        (Some(frontend), _) => frontend,
        (None, _) if manifest.text.symbols.is_some() => FrontendKind::Ipa,
        (None, Some(_)) => FrontendKind::Characters,
        (None, None) => FrontendKind::Ipa,
    };
    match frontend {
        FrontendKind::Characters => {
            let bytes = match characters {
                Some(bytes) => bytes,
                None => return Err(Error::voice(source.path(""), format!("`{CHARACTERS}` is missing"))),
            };
            // A SentencePiece model begins with its first piece, field 1 of the protobuf message.
            if bytes.first() != Some(&0x0a) {
                return Err(Error::voice(source.path(CHARACTERS), "not a SentencePiece model"));
            }
            Ok(SymbolTable::Characters(bytes.into_owned()))
        }
        FrontendKind::Ipa => {
            let file = source.inside(manifest.text.symbols.as_deref().unwrap_or(IPA))?;
            let Some(bytes) = source.read(file, SPELLING_BYTES)? else {
                let asked = manifest.text.frontend.is_some() || manifest.text.symbols.is_some();
                let reason = match asked {
                    true => format!("`{file}` is missing, which voice.toml asks for"),
                    false => format!("neither `{CHARACTERS}` nor `{file}`: the voice cannot spell"),
                };
                return Err(Error::voice(source.path(""), reason));
            };
            let table = parse(&bytes, config).map_err(|reason| Error::voice(source.path(file), reason))?;
            Ok(SymbolTable::Ipa(table))
        }
    }
}

/// Reads `{"a": 12, …}`: every key is one character, every id is in the vocabulary and occurs once.
fn parse(bytes: &[u8], config: &AcousticConfig) -> Checked<BTreeMap<char, i64>> {
    let Pairs(pairs) = json(bytes)?;
    let (mut table, mut ids) = (BTreeMap::new(), BTreeSet::new());
    for (key, id) in pairs {
        let mut characters = key.chars();
        let (Some(symbol), None) = (characters.next(), characters.next()) else {
            return Err(format!("key {key:?} is not one character"));
        };
        if !usize::try_from(id).is_ok_and(|id| id < config.vocab_size) {
            return Err(format!("id {id} of {key:?} is outside the vocabulary of {}", config.vocab_size));
        }
        if !ids.insert(id) {
            return Err(format!("id {id} of {key:?} is another symbol's too"));
        }
        if table.insert(symbol, id).is_some() {
            return Err(format!("key {key:?} occurs twice"));
        }
    }
    for (symbol, field, expected) in
        [(START, "bos_token_id", config.bos_token_id), (END, "eos_token_id", config.eos_token_id)]
    {
        match table.get(&symbol) {
            Some(id) if *id == expected => {}
            Some(id) => return Err(format!("`{symbol}` is {id}, but {field} of config.json is {expected}")),
            None => return Err(format!("`{symbol}`, which every sentence needs, is missing")),
        }
    }
    Ok(table)
}

/// A map would hide a key that occurs twice.
struct Pairs(Vec<(String, i64)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of character to id")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
