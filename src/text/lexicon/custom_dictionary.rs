//! Pairs of graphemes and phonemes in one line in, a lexicon out.
//!
//! Never takes a pair that it does not understand whole.

use super::{Alphabet, Duplicate, Lexicon, at, pronunciation};
use crate::error::Result;

pub fn parse(text: &str, name: &str) -> Result<Lexicon> {
    let mut lexicon = Lexicon::default();
    let mut column = 1;
    let mut quoted = false;
    // A comma inside quotes is the alias's own.
    let parts = text.split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    for pair in parts {
        let here = column + pair.chars().take_while(|c| c.is_whitespace()).count();
        column += pair.chars().count() + 1;
        let pair = pair.trim();
        if pair.is_empty() {
            continue;
        }
        let Some((grapheme, value)) = pair.split_once("  ") else {
            let reason = format!("{pair:?} has no two spaces between a grapheme and its phonemes");
            return Err(at(name, 1, here, reason));
        };
        let value_column = here + grapheme.chars().count() + 2;
        let value = value.trim();
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let (value, alphabet) = match quoted {
            Some(alias) => (alias, Alphabet::Alias),
            None if value.starts_with("{@") => (value, Alphabet::Arpabet),
            None => (value, Alphabet::Ipa),
        };
        let said = pronunciation(value, alphabet).map_err(|reason| at(name, 1, value_column, reason))?;
        let known =
            lexicon.insert(grapheme, said, Duplicate::Last).map_err(|reason| at(name, 1, here, reason))?;
        if known {
            lexicon.notice(|| format!("{name}:1:{here}: {grapheme:?} again, this entry is taken"));
        }
    }
    Ok(lexicon)
}
