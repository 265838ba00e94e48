//! Words in, the symbols and ids of one voice's spelling out.
//!
//! Never joins or splits sentences; it prices atoms in ids so that `Frontend` can.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use super::clean::PHONEMES;
use super::g2p::{G2p, Source};
use super::lexicon::Given;
use super::segment::Pause;
use super::spm::CharModel;
use super::symbols::IpaSymbols;
use super::{Prosody, Segment};
use super::{letters, report};
use crate::error::{Error, Result};
use crate::voice::SymbolTable;
use crate::voice::config::AcousticConfig;

/// How a voice spells.
#[derive(Debug)]
pub enum Speller {
    Ipa { g2p: Box<G2p>, symbols: IpaSymbols },
    Characters { model: CharModel, eos: i64 },
}

/// A word with its mark, spelled.
#[derive(Debug, Default)]
pub struct Atom {
    pub text: String,
    pub spoken: String,
    pub unmapped: Vec<char>,
    /// What it costs, without start, end and the joint to its neighbour.
    pub ids: usize,
}

impl Atom {
    pub fn ends_clause(&self) -> bool {
        self.text.ends_with(is_mark)
    }
}

/// Marks that a vocabulary may lack, and what pauses alike.
const MARK_STAND_INS: &[(char, &str)] =
    &[(':', ";"), (':', ","), (';', ","), ('!', "."), ('?', "."), ('-', " ")];

fn is_mark(c: char) -> bool {
    matches!(c, '.' | ',' | ';' | ':' | '!' | '?')
}

impl Speller {
    pub fn load(symbols: &SymbolTable, config: &AcousticConfig, name: &str) -> Result<Self> {
        match symbols {
            SymbolTable::Ipa(table) => Ok(Self::Ipa {
                g2p: Box::new(G2p::load()),
                symbols: IpaSymbols::new(table.clone(), config.vocab_size, name)?,
            }),
            SymbolTable::Characters(bytes) => {
                let model = CharModel::parse(bytes, name)?;
                if model.len() > config.vocab_size {
                    return Err(Error::voice(
                        name,
                        format!(
                            "spm_char.model has {} pieces, the embedding has {} rows",
                            model.len(),
                            config.vocab_size
                        ),
                    ));
                }
                Ok(Self::Characters { model, eos: config.eos_token_id })
            }
        }
    }

    pub fn is_ipa(&self) -> bool {
        matches!(self, Self::Ipa { .. })
    }

    pub fn pronounce(&self, word: &str) -> Option<(String, Source)> {
        match self {
            Self::Ipa { g2p, .. } => Some(g2p.word(word, None, true)),
            Self::Characters { .. } => None,
        }
    }

    /// Ids of a segment that no atom pays for: start, end, and a mark that is added.
    pub fn fixed_ids(&self) -> usize {
        match self {
            Self::Ipa { .. } => 3,
            Self::Characters { .. } => 2,
        }
    }

    /// The mark that a segment without one is closed with. Voices learn to stop at marks: without one, some
    /// never do.
    fn closing_mark(&self, pause: Pause) -> &'static str {
        let goes_on = matches!(pause, Pause::None | Pause::Break(_));
        let mark = if goes_on { "," } else { "." };
        let knows = match self {
            Self::Ipa { symbols, .. } => symbols.fit(mark).spoken == mark,
            Self::Characters { model, .. } => mark.chars().all(|c| model.knows(c)),
        };
        if knows { mark } else { "" }
    }

    /// Ids between two atoms.
    pub fn joint_ids(&self) -> usize {
        match self {
            Self::Ipa { .. } => 1,
            Self::Characters { .. } => 0,
        }
    }

    /// The words of a normalised sentence, spelled; `given` fills its placeholders, in order.
    pub fn atoms(&self, sentence: &str, given: Vec<Given>) -> Vec<Atom> {
        let tokens: Vec<&str> = sentence.split(' ').filter(|token| !token.is_empty()).collect();
        let Self::Ipa { g2p, .. } = self else {
            return tokens.into_iter().map(|token| self.character_atom(token)).collect();
        };
        let mut given = given.into_iter();
        let parts: Vec<(&str, &str, Option<Given>)> = tokens
            .into_iter()
            .map(|token| {
                let word = token.trim_end_matches(is_mark);
                let is_placeholder = word.chars().eq([PHONEMES]);
                (
                    word,
                    token.get(word.len()..).unwrap_or_default(),
                    is_placeholder.then(|| given.next()).flatten(),
                )
            })
            .collect();
        let words: Vec<&str> =
            parts.iter().map(|(word, _, given)| given.as_ref().map_or(*word, |given| &given.text)).collect();
        let closed: Vec<bool> = parts.iter().map(|(_, mark, _)| !mark.is_empty()).collect();
        let known: Vec<Option<&str>> =
            parts.iter().map(|(_, _, given)| given.as_ref().map(|given| given.ipa.as_str())).collect();
        let spoken = g2p.sentence(&words, &closed, &known);
        let spelled = words.iter().zip(&parts).zip(spoken);
        spelled
            .map(|((word, (_, mark, given)), ipa)| {
                let (text, ipa) = (format!("{word}{mark}"), format!("{ipa}{mark}"));
                if given.is_some() { self.ipa_atom(text, &ipa) } else { self.word_atom(&text, &ipa) }
            })
            .collect()
    }

    /// IPA as a user wrote it, one atom a word.
    pub fn ipa_atoms(&self, ipa: &str) -> Result<Vec<Atom>> {
        if !self.is_ipa() {
            return Err(Error::InvalidRequest("this voice reads letters, it takes no phonemes".into()));
        }
        Ok(ipa.split_whitespace().map(|word| self.ipa_atom(word.to_string(), word)).collect())
    }

    fn ipa_atom(&self, text: String, ipa: &str) -> Atom {
        let Self::Ipa { symbols, .. } = self else { return Atom::default() };
        let fitted = symbols.fit(ipa);
        Atom { ids: fitted.spoken.chars().count(), text, spoken: fitted.spoken, unmapped: fitted.unmapped }
    }

    /// A written word whose phonemes are `ipa`; it reports the letters of `text`, not those phonemes.
    fn word_atom(&self, text: &str, ipa: &str) -> Atom {
        let atom = self.ipa_atom(text.to_string(), ipa);
        let unmapped = as_written(atom.unmapped, text);
        Atom { text: said(atom.text, &atom.spoken, &unmapped), unmapped, ..atom }
    }

    fn character_atom(&self, token: &str) -> Atom {
        let Self::Characters { model, .. } = self else { return Atom::default() };
        let (mut spoken, mut unmapped) = (String::with_capacity(token.len()), Vec::new());
        for c in token.chars() {
            if model.knows(c) {
                spoken.push(c);
                continue;
            }
            let plain: String = std::iter::once(c)
                .nfkd()
                .filter(|c| !unicode_normalization::char::is_combining_mark(*c))
                .collect();
            let stand_ins = [plain, letters::folded(std::iter::once(c)).collect()];
            let mark =
                MARK_STAND_INS.iter().filter(|(lacking, _)| *lacking == c).map(|(_, mark)| mark.to_string());
            let said = |text: &String| !text.is_empty() && text.chars().all(|c| model.knows(c));
            if let Some(stand_in) = stand_ins.into_iter().chain(mark).find(said) {
                spoken.push_str(&stand_in);
            } else {
                report(&mut unmapped, [c]);
            }
        }
        Atom {
            text: said(token.to_string(), &spoken, &unmapped),
            ids: model.encode(&spoken).len(),
            spoken,
            unmapped,
        }
    }

    /// `atom` in two parts that are each shorter.
    pub fn halves(&self, atom: Atom) -> Vec<Atom> {
        let (text_head, text_tail) = split_middle(&atom.text);
        let (head, tail) = split_middle(&atom.spoken);
        let part = |text: &str, spoken: &str| match self {
            Self::Ipa { .. } => self.ipa_atom(text.to_string(), spoken),
            Self::Characters { .. } => Atom { text: text.to_string(), ..self.character_atom(spoken) },
        };
        let mut parts = vec![part(text_head, head), part(text_tail, tail)];
        if let Some(first) = parts.first_mut() {
            first.unmapped = atom.unmapped;
        }
        parts
    }

    /// The segment of `atoms`; what they could not say goes to `unmapped`. `None` when nothing is left to say.
    pub fn segment(&self, atoms: &[Atom], pause: Pause, unmapped: &mut Vec<char>) -> Option<Segment> {
        let join = |part: fn(&Atom) -> &str| {
            let parts: Vec<&str> = atoms.iter().map(part).filter(|p| !p.is_empty()).collect();
            parts.join(" ")
        };
        report(unmapped, atoms.iter().flat_map(|atom| atom.unmapped.iter().copied()));
        let (text, mut spoken) = (join(|atom| &atom.text), join(|atom| &atom.spoken));
        if !spoken.chars().any(char::is_alphabetic) {
            return None;
        }
        if !spoken.ends_with(is_mark) {
            spoken.push_str(self.closing_mark(pause));
        }
        let ids = match self {
            Self::Ipa { symbols, .. } => symbols.ids(&spoken),
            Self::Characters { model, eos } => {
                let mut ids = model.encode(&spoken);
                ids.push(*eos);
                ids
            }
        };
        Some(Segment {
            text,
            spoken,
            ids,
            unmapped: Vec::new(),
            pause,
            prosody: Prosody::default(),
            marks: Vec::new(),
        })
    }
}

/// The characters of `text` that `unmapped`, which may be lower case or taken apart, came from.
fn as_written(mut unmapped: Vec<char>, text: &str) -> Vec<char> {
    if unmapped.is_empty() {
        return unmapped;
    }
    let mut written: HashMap<char, char> = text.chars().map(|c| (c, c)).collect();
    for c in text.chars() {
        for part in letters::folded(std::iter::once(c)) {
            written.entry(part).or_insert(c);
        }
    }
    let found: Vec<char> = unmapped.iter().map(|c| written.get(c).copied().unwrap_or(*c)).collect();
    unmapped.clear();
    report(&mut unmapped, found);
    unmapped
}

/// What of `text` is said as `spoken`: a word that has no sound is its mark alone.
fn said(mut text: String, spoken: &str, unmapped: &[char]) -> String {
    let silent = !spoken.chars().any(char::is_alphabetic);
    if !unmapped.is_empty() {
        text.retain(|c| if silent { is_mark(c) } else { !unmapped.contains(&c) });
    }
    text
}

/// Two halves, cut where a grapheme ends unless one is more than half; what IPA hangs on a sound stays with it.
fn split_middle(text: &str) -> (&str, &str) {
    let bytes = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    let middle = bytes((text.chars().count() / 2).max(1));
    let hangs_on = |grapheme: &str| grapheme.starts_with(['ː', 'ˑ', 'ʲ', 'ʳ', 'ʰ']);
    let cut = text.grapheme_indices(true).find(|(at, grapheme)| *at >= middle && !hangs_on(grapheme));
    text.split_at_checked(cut.map_or(middle, |(at, _)| at)).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::split_middle;

    #[test]
    fn a_word_is_cut_where_a_grapheme_ends() {
        let check = |text: &str, head: &str| {
            let (found, tail) = split_middle(text);
            assert_eq!((found, format!("{found}{tail}").as_str()), (head, text));
        };
        check("abcd", "ab");
        check("ab", "a");
        check("ae\u{301}\u{323}b", "ae\u{301}\u{323}");
        check("abː", "abː".get(..1).unwrap());
        check("aːːb", "aːː");
        check("क्षक्ष", "क्ष");
        check("각각", "각");
        check("🇩🇪🇫🇷", "🇩🇪");
        check("👩\u{200d}👩\u{200d}👧a", "👩\u{200d}👩\u{200d}👧");
        check("x\r\ny", "x\r\n");
        check("e\u{301}\u{301}\u{301}", "e\u{301}");
    }
}
