//! English words in, espeak-style IPA out.
//!
//! A word is looked up in the function words of `espeak`, in the lexicons of `misaki-rs` (whole,
//! then without an ending, then as two parts), and spelled by rule at last. `heteronyms` tells which
//! reading of a word is meant. Lookups take time linear in the word.
//!
//! Never sees punctuation, digits or raw text, and never fails on a word.

use misaki_rs::lexicon::PhonemeEntry;
use misaki_rs::{Language, Lexicon, data};

use super::espeak;
use super::function_words::{function_word, joined, link};
use super::heteronyms::{Context, Part, reading};
use super::letters;

/// Longer words are read in pieces of this many letters.
const MAX_WORD_LETTERS: usize = 32;

/// Endings of contractions that no dictionary lists in full: `she'd've`.
const CONTRACTIONS: &[(&str, &str)] =
    &[("n't", "ənt"), ("'ve", "əv"), ("'ll", "əl"), ("'re", "ɚ"), ("'d", "d"), ("'m", "m")];

/// The pronouncing dictionary and rules of American English.
pub struct G2p {
    lexicon: Lexicon,
}

impl std::fmt::Debug for G2p {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("G2p")
            .field("words", &(self.lexicon.golds.len() + self.lexicon.silvers.len()))
            .finish()
    }
}

/// Where the pronunciation of a word came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A lexicon of the user's.
    User,
    Function,
    /// The built-in lexicons.
    Lexicon,
    /// A lexicon word with an ending, or two lexicon words in one.
    Derived,
    Letters,
    Rules,
}

impl G2p {
    /// Parses the lexicons that `misaki-rs` embeds, both at once: 55 ms on two idle cores.
    pub fn load() -> Self {
        let (golds, silvers) = std::thread::scope(|scope| {
            let other = std::thread::Builder::new().spawn_scoped(scope, data::load_us_silver);
            let golds = data::load_us_gold();
            let silvers = other.ok().and_then(|thread| thread.join().ok());
            (golds, silvers.unwrap_or_else(data::load_us_silver))
        });
        Self { lexicon: Lexicon { lang: Language::EnglishUS, cap_stresses: (0.5, 2.0), golds, silvers } }
    }

    /// The phonemes of each of the `words` of one sentence: letters with inner apostrophes and
    /// hyphens. `closed[i]` says that a mark follows word `i`, `given[i]` what it sounds like, if that is known. A
    /// word that runs together with the one before it is empty.
    pub fn sentence(&self, words: &[&str], closed: &[bool], given: &[Option<&str>]) -> Vec<String> {
        let known = |i: usize| given.get(i).copied().flatten();
        let mut spoken: Vec<String> = Vec::with_capacity(words.len());
        let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        for (i, word) in words.iter().enumerate() {
            let ends = closed.get(i).copied().unwrap_or(true) || i + 1 == words.len();
            if let Some(ipa) = known(i) {
                spoken.push(ipa.to_owned());
                continue;
            }
            if is_initial(words, i) {
                spoken.push(letters::spell(word));
                continue;
            }
            let context = Context { words: &lower, closed, at: i };
            spoken.push(self.word(word, Some(&context), ends).0);
        }
        let open = |i: usize| !closed.get(i).copied().unwrap_or(true);
        for i in (0..words.len().saturating_sub(1)).rev().filter(|&i| open(i) && known(i).is_none()) {
            let (Some(&word), Some(&next_word)) = (words.get(i), words.get(i + 1)) else { continue };
            let next = spoken.get(i + 1).cloned().unwrap_or_default();
            let pair =
                if open(i + 1) && known(i + 1).is_none() { joined(word, next_word, &next) } else { None };
            match (pair, spoken.get_mut(i..)) {
                (Some(pair), Some([this, next, ..])) => {
                    *this = pair;
                    next.clear();
                }
                (None, Some([this, ..])) => link(this, word, &next),
                _ => {}
            }
        }
        spoken
    }

    /// The phonemes of one word and where they came from.
    pub fn word(&self, word: &str, context: Option<&Context<'_>>, ends_clause: bool) -> (String, Source) {
        let lower = word.to_lowercase();
        let capitals = word.chars().count() > 1 && is_capitals(word);
        if let Some(ipa) = function_word(&lower, ends_clause).filter(|_| word != "US") {
            return (ipa.to_string(), Source::Function);
        }
        if word.chars().count() == 1 || (capitals && self.is_acronym(word, &lower)) {
            let ipa = letters::spell(word);
            if !ipa.is_empty() {
                return (ipa, Source::Letters);
            }
        }
        if let Some(acronym) = word.strip_suffix('s').filter(|head| head.len() > 1 && is_capitals(head)) {
            return (letters::spell(acronym) + "z", Source::Letters);
        }
        if let Some(raw) = context.and_then(|context| reading(context, word)) {
            return (espeak::from_misaki(raw, &lower), Source::Lexicon);
        }
        let part = match context {
            Some(context) if !self.has_one_reading(word, &lower) => context.part(),
            _ => Part::Unknown,
        };
        if let Some((raw, source)) = self.find(word, &lower, part) {
            return (espeak::from_misaki(&raw, &lower), source);
        }
        let contraction = CONTRACTIONS.iter().filter(|_| lower.len() <= MAX_WORD_LETTERS);
        for (ending, sound) in contraction {
            if let Some(head) = lower.strip_suffix(ending).filter(|head| !head.is_empty()) {
                return (self.word(head, None, false).0 + sound, Source::Derived);
            }
        }
        let folded: String = letters::folded(lower.chars()).collect();
        if folded != lower
            && let Some((raw, source)) = self.find(&folded, &folded, part)
        {
            return (espeak::from_misaki(&raw, &folded), source);
        }
        if lower.contains(['-', '\'']) {
            let parts: Vec<String> = lower
                .split(['-', '\''])
                .filter(|p| !p.is_empty())
                .map(|part| self.word(part, None, true).0)
                .collect();
            return (parts.concat(), Source::Derived);
        }
        let plain: Vec<char> = lower.chars().collect();
        let ipa: String = plain.chunks(MAX_WORD_LETTERS).map(letters::by_rule).collect();
        // What has no sound at all stays as it is, for the symbol table to report.
        (if ipa.is_empty() { word.to_string() } else { ipa }, Source::Rules)
    }

    fn has_one_reading(&self, word: &str, lower: &str) -> bool {
        let golds = &self.lexicon.golds;
        matches!(golds.get(word).or_else(|| golds.get(lower)), Some(PhonemeEntry::Simple(_)))
    }

    fn is_acronym(&self, word: &str, lower: &str) -> bool {
        if word == "US" {
            return true;
        }
        if self.lexicon.golds.contains_key(word) {
            return false;
        }
        let short = word.chars().count() <= 3;
        let vowels = lower.contains(['a', 'e', 'i', 'o', 'u', 'y']);
        !vowels || (short && self.entry(lower, Part::Unknown).is_none())
    }

    fn find(&self, word: &str, lower: &str, part: Part) -> Option<(String, Source)> {
        if let Some(raw) = self.entry(word, part).or_else(|| self.entry(lower, part)) {
            return Some((raw, Source::Lexicon));
        }
        self.derived(lower, part).or_else(|| self.compound(lower)).map(|raw| (raw, Source::Derived))
    }

    fn entry(&self, word: &str, part: Part) -> Option<String> {
        let mut initial = word.chars();
        let capitalized: String =
            initial.next().map(|c| c.to_uppercase().chain(initial).collect()).unwrap_or_default();
        [&self.lexicon.golds, &self.lexicon.silvers]
            .iter()
            .find_map(|table| table.get(word).or_else(|| table.get(&capitalized)))
            .and_then(|entry| resolve(entry, part))
    }

    /// The stem of a word in `-s`, `-ed`, `-ing`, `-ly`, `-er`, `-est`, `-ness`, `un-`, with its ending.
    fn derived(&self, word: &str, part: Part) -> Option<String> {
        let stem = |ending: &str| word.strip_suffix(ending).filter(|stem| stem.len() >= 2);
        if let Some(owner) = stem("'s").or_else(|| stem("s'")).or_else(|| stem("'")) {
            let raw = self.any(owner, Part::Noun)?;
            return Some(self.lexicon.append_s(&raw));
        }
        let plural = stem("ies").map(|s| format!("{s}y")).into_iter();
        let plural = plural.chain(stem("s").filter(|s| !s.ends_with('s')).map(String::from));
        for stem in plural.chain(stem("es").map(String::from)) {
            if let Some(raw) = self.any(&stem, part) {
                return Some(self.lexicon.append_s(&raw));
            }
        }
        if let Some(raw) = stem("ed").and_then(|s| self.verb(s, stem("d"))) {
            return Some(self.lexicon.append_ed(&raw));
        }
        if let Some(raw) = stem("ing").and_then(|s| self.verb(s, None)) {
            return Some(format!("{raw}ɪŋ"));
        }
        for (ending, sound) in [
            ("ly", "li"),
            ("ness", "nəs"),
            ("less", "ləs"),
            ("er", "əɹ"),
            ("ers", "əɹz"),
            ("est", "ᵻst"),
            ("ful", "fᵊl"),
            ("ish", "ɪʃ"),
        ] {
            if let Some(raw) = stem(ending).and_then(|s| {
                if matches!(ending, "er" | "ers" | "est") {
                    self.verb(s, None)
                } else {
                    self.any(s, Part::Adjective)
                }
            }) {
                return Some(format!("{raw}{sound}"));
            }
        }
        for (prefix, sound) in
            [("un", "ˌʌn"), ("non", "nˌɑn"), ("re", "ɹˌi"), ("over", "ˌOvəɹ"), ("under", "ˌʌndəɹ")]
        {
            if let Some(raw) =
                word.strip_prefix(prefix).filter(|s| s.len() >= 3).and_then(|s| self.any(s, part))
            {
                return Some(format!("{sound}{raw}"));
            }
        }
        None
    }

    /// An entry, or a form derived from one: `boxings`.
    fn any(&self, word: &str, part: Part) -> Option<String> {
        self.entry(word, part).or_else(|| {
            let raw = word.strip_suffix("ing").filter(|s| s.len() >= 3).and_then(|s| self.verb(s, None))?;
            Some(format!("{raw}ɪŋ"))
        })
    }

    /// The verb whose form without its ending is `bare`: `stop(p)`, `mak(e)`, `walk`, `tri` for try.
    fn verb(&self, bare: &str, with_e: Option<&str>) -> Option<String> {
        let mut tail = bare.chars().rev();
        let doubled = matches!((tail.next(), tail.next()), (Some(a), Some(b)) if a == b);
        let undoubled = doubled.then(|| bare.get(..bare.len().saturating_sub(1))).flatten();
        let candidates = [
            Some(bare.to_string()),
            Some(with_e.map_or_else(|| format!("{bare}e"), String::from)),
            undoubled.map(String::from),
            bare.strip_suffix('i').map(|s| format!("{s}y")),
        ];
        candidates.into_iter().flatten().find_map(|stem| self.entry(&stem, Part::Verb))
    }

    /// Two words in one, the longer first part first: `housecoat`.
    fn compound(&self, word: &str) -> Option<String> {
        if word.len() > MAX_WORD_LETTERS || !word.is_ascii() {
            return None;
        }
        (3..word.len().saturating_sub(3)).rev().find_map(|at| {
            let (head, tail) = word.split_at(at);
            let first = self.lexicon.golds.get(head).and_then(|e| resolve(e, Part::Unknown))?;
            let second = self.lexicon.golds.get(tail).and_then(|e| resolve(e, Part::Unknown))?;
            Some(format!("{first}{}", second.replace('ˈ', "ˌ")))
        })
    }
}

/// A capital that is read by its name: beside another one, or an `A` that opens no sentence.
fn is_initial(words: &[&str], i: usize) -> bool {
    let single = |i: Option<usize>| {
        i.and_then(|i| words.get(i)).is_some_and(|word| word.len() == 1 && is_capitals(word))
    };
    let neighbour = single(i.checked_sub(1)) || single(Some(i + 1));
    single(Some(i)) && (neighbour || (i > 0 && words.get(i) == Some(&"A")))
}

fn is_capitals(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

fn resolve(entry: &PhonemeEntry, part: Part) -> Option<String> {
    match entry {
        PhonemeEntry::Simple(raw) => Some(raw.clone()),
        PhonemeEntry::Tagged(forms) => {
            let known = |key: &&str| forms.get(*key).cloned().flatten();
            part.tags().iter().chain(&["DEFAULT"]).find_map(known)
        }
    }
}
