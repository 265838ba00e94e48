//! The words around a heteronym in, its part of speech out, and for words that need more than that, the reading.
//!
//! Rules over closed classes and endings: determiners and prepositions come before nouns, `to`, modals and
//! pronouns before verbs, auxiliaries before participles and adjectives. Each word takes constant time. A
//! statistical tagger costs milliseconds a sentence before the first sound; tests/heteronyms.rs says what the
//! rules get right.
//!
//! Never looks at meaning beyond the few words that a reading lists.

mod readings;
mod words;

pub use readings::reading;
use words::{
    ADJECTIVAL, ADJECTIVES, ADVERBS, BE, CAUSATIVES, CONJUNCTIONS, DEGREES, DETERMINERS, HAVE, OBJECTS,
    PAST_SIGNS, PLURAL_SUBJECTS, PREPOSITIONS, PRESENT_SIGNS, SINGULAR_SUBJECTS, TO_AND_MODALS,
};

/// What a heteronym is in its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Noun,
    Verb,
    /// A past form or participle: `read`, `wound`.
    Past,
    Adjective,
    Unknown,
}

impl Part {
    /// The tags under which the dictionary may list it, in the order in which they are tried.
    pub fn tags(self) -> &'static [&'static str] {
        match self {
            Self::Noun => &["NOUN"],
            Self::Verb => &["VERB"],
            Self::Past => &["VBN", "VERB"],
            Self::Adjective => &["ADJ"],
            Self::Unknown => &[],
        }
    }
}

fn is_in(list: &[&str], word: &str) -> bool {
    list.contains(&word)
}

/// One word among the others of its sentence, all in lower case.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub words: &'a [String],
    /// A mark follows the word.
    pub closed: &'a [bool],
    pub at: usize,
}

impl<'a> Context<'a> {
    fn word(&self) -> &'a str {
        self.words.get(self.at).map_or("", String::as_str)
    }

    /// The `n`th word before, without a mark between.
    fn before(&self, n: usize) -> &'a str {
        let Some(at) = self.at.checked_sub(n) else { return "" };
        let open = self.closed.get(at..self.at).is_some_and(|marks| marks.iter().all(|mark| !mark));
        if open { self.words.get(at).map_or("", String::as_str) } else { "" }
    }

    /// The `n`th word after, without a mark between.
    fn after(&self, n: usize) -> &'a str {
        let open = self.closed.get(self.at..self.at + n).is_some_and(|marks| marks.iter().all(|mark| !mark));
        if open { self.words.get(self.at + n).map_or("", String::as_str) } else { "" }
    }

    fn at(&self, at: usize) -> Self {
        Self { at, ..*self }
    }

    /// The part of speech that the words around it suggest.
    pub fn part(&self) -> Part {
        self.part_within(2)
    }

    fn part_within(&self, conjunctions: usize) -> Part {
        let (word, next) = (self.word(), self.after(1));
        let adjectival = is_in(ADJECTIVAL, word);
        let skipped = self.adverbs_before();
        let back = |n: usize| self.before(skipped + n);
        let (previous, second) = (back(1), back(2));
        let is_s_form = word.ends_with('s') && !word.ends_with("ss");
        let adjective_here = adjectival && (self.is_content(next) || is_in(DEGREES, self.before(1)));
        if is_in(DEGREES, self.before(1)) && (adjectival || word == "content") {
            return Part::Adjective;
        }
        match previous {
            "" => self.first_of_clause(is_s_form),
            "to" if is_s_form => Part::Noun,
            _ if is_in(TO_AND_MODALS, previous) && !is_s_form => self.base_form(),
            "that" | "which" | "who" | "one" if is_s_form => Part::Verb,
            "that" | "who" if second.ends_with('s') && self.is_content(second) && !is_s_form => {
                self.subject_before(true)
            }
            "her" if is_in(CAUSATIVES, second) && !is_s_form && !self.is_content(next) => Part::Verb,
            _ if is_in(DETERMINERS, previous) && !is_in(&["all", "both"], previous) => {
                if adjective_here {
                    Part::Adjective
                } else {
                    Part::Noun
                }
            }
            _ if previous.ends_with("'s") && !is_in(BE, previous) && !is_in(TO_AND_MODALS, previous) => {
                if adjective_here {
                    Part::Adjective
                } else {
                    Part::Noun
                }
            }
            _ if self.asks(skipped, HAVE) && self.is_own_participle() => Part::Past,
            _ if self.asks(skipped, TO_AND_MODALS) && !is_s_form => Part::Verb,
            _ if is_in(OBJECTS, previous) && is_in(CAUSATIVES, second) && !is_s_form => Part::Verb,
            _ if is_in(PLURAL_SUBJECTS, previous) => self.subject_before(true),
            _ if is_in(SINGULAR_SUBJECTS, previous) => self.subject_before(false),
            _ if is_in(HAVE, previous) => match self.is_own_participle() {
                true => Part::Past,
                false if adjective_here => Part::Adjective,
                false => Part::Noun,
            },
            _ if is_in(BE, previous) => match self.is_own_participle() {
                true => Part::Past,
                false if adjectival || word == "content" => Part::Adjective,
                false => Part::Noun,
            },
            _ if is_in(CONJUNCTIONS, previous) && conjunctions > 0 => {
                let Some(before) = self.at.checked_sub(skipped + 2).filter(|_| !back(2).is_empty()) else {
                    return self.first_of_clause(is_s_form);
                };
                let other = self.at(before);
                match other.part_within(conjunctions - 1) {
                    Part::Verb if !is_s_form && other.follows_infinitive_sign() => self.base_form(),
                    _ if self.is_own_participle() => self.subject_before(true),
                    _ if is_s_form && second.ends_with('s') && is_in(DETERMINERS, next) => Part::Verb,
                    _ if adjective_here => Part::Adjective,
                    _ if is_in(DETERMINERS, next) || is_in(OBJECTS, next) => Part::Verb,
                    _ => Part::Noun,
                }
            }
            _ if is_in(PREPOSITIONS, previous) || is_adjective(previous) => {
                if adjective_here {
                    Part::Adjective
                } else {
                    Part::Noun
                }
            }
            _ => self.after_content(previous, is_s_form),
        }
    }

    /// Adverbs between the word and the one that decides.
    fn adverbs_before(&self) -> usize {
        let is_adverb = |word: &str| {
            is_in(ADVERBS, word) || (word.ends_with("ly") && word.len() > 4 && !is_in(ADJECTIVES, word))
        };
        (1..=3).take_while(|&n| is_adverb(self.before(n))).count()
    }

    fn is_content(&self, word: &str) -> bool {
        let function = [BE, HAVE, TO_AND_MODALS, PREPOSITIONS, CONJUNCTIONS, DETERMINERS, ADVERBS];
        !word.is_empty()
            && !function.iter().any(|list| is_in(list, word))
            && !is_in(PLURAL_SUBJECTS, word)
            && !is_in(SINGULAR_SUBJECTS, word)
            && !is_in(OBJECTS, word)
            && !is_in(
                &["that", "if", "when", "because", "while", "until", "there", "here", "up", "down"],
                word,
            )
    }

    fn is_own_participle(&self) -> bool {
        is_in(&["read", "wound", "reread"], self.word())
    }

    fn follows_infinitive_sign(&self) -> bool {
        let skipped = self.adverbs_before();
        is_in(TO_AND_MODALS, self.before(skipped + 1)) || self.before(skipped + 1).is_empty()
    }

    /// `did he object`, `have you read`: a pronoun behind one of the `auxiliaries`.
    fn asks(&self, skipped: usize, auxiliaries: &[&str]) -> bool {
        let subject = self.before(skipped + 1);
        let is_subject = is_in(PLURAL_SUBJECTS, subject) || is_in(SINGULAR_SUBJECTS, subject);
        is_subject && subject != "who" && is_in(auxiliaries, self.before(skipped + 2))
    }

    fn base_form(&self) -> Part {
        // `dove` and `wound` are no base forms; `to wound` is to hurt.
        if self.word() == "wound" { Part::Noun } else { Part::Verb }
    }

    fn subject_before(&self, plural: bool) -> Part {
        match self.word() {
            "wound" => Part::Past,
            "read" | "reread" if self.is_told_as_past(plural) => Part::Past,
            _ => Part::Verb,
        }
    }

    /// Whether `read` is said as in the past: after a singular subject, or beside a sign of it.
    fn is_told_as_past(&self, plural: bool) -> bool {
        let start = (0..self.at)
            .rev()
            .take(12)
            .find(|&i| self.closed.get(i) == Some(&true))
            .map_or(self.at.saturating_sub(12), |i| i + 1);
        let near = self.words.get(start..).unwrap_or_default();
        let sign = |list: &[&str]| near.iter().take(24).any(|word| word != self.word() && is_in(list, word));
        let earlier = self.words.get(start..self.at).unwrap_or_default();
        let past = sign(PAST_SIGNS) || earlier.iter().any(|word| word.len() > 4 && word.ends_with("ed"));
        if plural { past && !sign(PRESENT_SIGNS) } else { true }
    }

    fn first_of_clause(&self, is_s_form: bool) -> Part {
        let (word, next) = (self.word(), self.after(1));
        let imperative =
            is_in(DETERMINERS, next) || is_in(OBJECTS, next) || is_in(&["up", "down", "aloud"], next);
        match word {
            "wound" | "read" if !imperative => Part::Unknown,
            _ if imperative && !is_s_form => Part::Verb,
            _ if is_in(BE, next) || is_in(TO_AND_MODALS, next) && next != "to" || is_in(HAVE, next) => {
                Part::Noun
            }
            _ if is_in(ADJECTIVAL, word) && self.is_content(next) => Part::Adjective,
            _ => Part::Unknown,
        }
    }

    /// After a noun, a name or a verb.
    fn after_content(&self, previous: &str, is_s_form: bool) -> Part {
        let (word, next) = (self.word(), self.after(1));
        let object = is_in(DETERMINERS, next) || is_in(OBJECTS, next) || next == "that";
        let plural = is_in(&["police", "cattle", "children", "men", "women", "staff"], previous)
            || (previous.ends_with('s') && !previous.ends_with("ss") && !previous.ends_with("us"));
        let is_verb_form =
            previous.ends_with("ing") || previous.ends_with("ed") || is_in(CAUSATIVES, previous);
        if is_in(ADJECTIVAL, word) && (self.is_content(next) || takes_adjective(previous)) {
            return Part::Adjective;
        }
        match self.is_own_participle() {
            true if word == "read" && object => return self.subject_before(plural),
            true if word == "read" => return if plural { self.subject_before(true) } else { Part::Past },
            true if is_in(&["up", "around", "through", "its", "down"], next) => return Part::Past,
            true => return Part::Noun,
            false => {}
        }
        match () {
            _ if is_verb_form => Part::Noun,
            _ if is_s_form && !plural && (object || next.ends_with("ly")) => Part::Verb,
            _ if !is_s_form && plural => {
                let predicate =
                    is_in(BE, next) || is_in(HAVE, next) || (is_in(TO_AND_MODALS, next) && next != "to");
                if predicate || next == "of" { Part::Noun } else { Part::Verb }
            }
            _ => Part::Noun,
        }
    }
}

/// Verbs that an adjective may follow: `came close`, `went live`.
fn takes_adjective(word: &str) -> bool {
    #[rustfmt::skip]
    const VERBS: &[&str] = &[
        "come", "came", "comes", "coming", "get", "gets", "got", "getting", "go", "goes", "going", "went",
        "stay", "stayed", "keep", "kept", "stand", "stood", "sit", "sat", "draw", "drew", "hold", "held",
        "remain", "remained", "broadcast", "streamed", "performed", "played", "recorded", "sing", "play",
        "turned", "appear", "moved", "move", "live", "lived", "keeps", "stays",
    ];
    is_in(VERBS, word)
}

fn is_adjective(word: &str) -> bool {
    #[rustfmt::skip]
    const ENDINGS: &[&str] = &[
        "al", "ic", "ous", "ful", "ive", "able", "ible", "less", "ary", "ish", "est", "ern", "ese",
    ];
    is_in(ADJECTIVES, word) || (word.len() > 4 && ENDINGS.iter().any(|ending| word.ends_with(ending)))
}
