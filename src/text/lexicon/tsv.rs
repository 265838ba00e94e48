//! Tab-separated lines in, a lexicon out.
//!
//! Never takes a line that it does not understand whole.

use super::{Alphabet, Duplicate, Lexicon, at, pronunciation};
use crate::error::Result;

pub fn parse(text: &str, name: &str) -> Result<Lexicon> {
    let mut lexicon = Lexicon::default();
    for (index, line) in text.split('\n').enumerate() {
        let number = index + 1;
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut fields = line.split('\t');
        let grapheme = fields.next().unwrap_or_default();
        let after_grapheme = grapheme.chars().count() + 2;
        let Some(value) = fields.next() else {
            let reason = format!("{line:?} has no tab between a grapheme and its pronunciation");
            return Err(at(name, number, after_grapheme - 1, reason));
        };
        let after_value = after_grapheme + value.chars().count() + 1;
        let kind = fields.next().unwrap_or_default().trim();
        let alphabet = match kind {
            "" | "ipa" => Alphabet::Ipa,
            "x-arpabet" => Alphabet::Arpabet,
            "alias" => Alphabet::Alias,
            _ => {
                let reason = format!("{kind:?} is not ipa, x-arpabet or alias");
                return Err(at(name, number, after_value, reason));
            }
        };
        if let Some(extra) = fields.next().filter(|extra| !extra.trim().is_empty()) {
            let column = after_value + kind.chars().count() + 1;
            return Err(at(name, number, column, format!("{extra:?} is a fourth field, three at most")));
        }
        let said = pronunciation(value.trim(), alphabet)
            .map_err(|reason| at(name, number, after_grapheme, reason))?;
        let known =
            lexicon.insert(grapheme, said, Duplicate::Last).map_err(|reason| at(name, number, 1, reason))?;
        if known {
            lexicon.notice(|| format!("{name}:{number}: {grapheme:?} again, this entry is taken"));
        }
    }
    Ok(lexicon)
}
