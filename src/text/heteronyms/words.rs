//! Closed classes of English words, and the open ones' members that decide most often.
//!
//! Never holds a pronunciation.

#[rustfmt::skip]
pub const TO_AND_MODALS: &[&str] = &[
    "to", "will", "would", "can", "could", "should", "must", "shall", "may", "might", "cannot", "do", "does",
    "did", "don't", "doesn't", "didn't", "won't", "wouldn't", "can't", "couldn't", "shouldn't", "mustn't",
    "let's", "please", "i'll", "you'll", "he'll", "she'll", "it'll", "we'll", "they'll", "i'd", "you'd", "he'd",
    "she'd", "we'd", "they'd",
];
#[rustfmt::skip]
pub const PLURAL_SUBJECTS: &[&str] = &[
    "i", "you", "we", "they", "who", "people",
];
#[rustfmt::skip]
pub const SINGULAR_SUBJECTS: &[&str] = &[
    "he", "she", "it", "everyone", "someone", "nobody", "everybody",
];
#[rustfmt::skip]
pub const OBJECTS: &[&str] = &[
    "me", "him", "them", "us", "it", "her", "you", "myself", "himself", "themselves",
];
#[rustfmt::skip]
pub const BE: &[&str] = &[
    "am", "is", "are", "was", "were", "be", "been", "being", "isn't", "aren't", "wasn't", "weren't", "i'm",
    "you're", "we're", "they're", "he's", "she's", "it's", "that's", "seem", "seems", "seemed", "feel", "feels",
    "felt", "become", "became", "look", "looks", "looked",
];
#[rustfmt::skip]
pub const HAVE: &[&str] = &[
    "have", "has", "had", "having", "i've", "you've", "we've", "they've", "haven't", "hasn't", "hadn't",
    "should've", "could've", "would've",
];
#[rustfmt::skip]
pub const DETERMINERS: &[&str] = &[
    "the", "a", "an", "my", "your", "his", "her", "its", "our", "their", "this", "that", "these", "those", "no",
    "any", "some", "every", "each", "either", "neither", "another", "such", "what", "which", "whose", "all",
    "both", "many", "several", "few", "more", "most", "one", "two", "three", "four", "five", "six", "seven",
    "eight", "nine", "ten", "hundred", "thousand", "million", "first", "second", "third", "last", "next",
];
#[rustfmt::skip]
pub const PREPOSITIONS: &[&str] = &[
    "of", "in", "on", "at", "by", "for", "with", "from", "into", "onto", "upon", "about", "over", "under",
    "after", "before", "between", "through", "during", "without", "within", "against", "among", "across",
    "behind", "near", "than", "as", "like", "per", "via", "towards", "toward", "beyond", "despite", "around",
];
#[rustfmt::skip]
pub const DEGREES: &[&str] = &[
    "very", "so", "too", "quite", "rather", "how", "fairly", "extremely", "pretty",
];
#[rustfmt::skip]
pub const ADVERBS: &[&str] = &[
    "not", "never", "always", "often", "also", "just", "still", "already", "even", "ever", "then", "now",
    "soon", "only", "twice", "once", "again", "sometimes", "usually", "rarely", "probably", "all",
];
#[rustfmt::skip]
pub const ADJECTIVES: &[&str] = &[
    "new", "old", "big", "small", "good", "bad", "great", "large", "long", "short", "high", "low", "early",
    "late", "young", "strong", "weak", "full", "other", "same", "own", "main", "major", "minor", "best",
    "worst", "better", "whole", "open", "free", "cold", "hot", "warm", "dry", "wet", "quick", "slow", "red",
    "blue", "green", "white", "black", "foreign", "modern", "common", "extra", "fresh", "heavy", "light",
    "rich", "poor", "clear", "real", "true", "right", "wrong", "dead", "hard", "soft", "loud", "north", "south",
    "daily",
];
#[rustfmt::skip]
pub const CONJUNCTIONS: &[&str] = &[
    "and", "or", "but", "nor",
];
/// After these and an object a verb has no `to`: `let him record`.
#[rustfmt::skip]
pub const CAUSATIVES: &[&str] = &[
    "let", "lets", "make", "makes", "made", "help", "helps", "helped", "see", "saw", "watch", "watched", "hear",
    "heard", "have", "had",
];
/// Heteronyms that may be adjectives before a noun or after `is`.
#[rustfmt::skip]
pub const ADJECTIVAL: &[&str] = &[
    "absent", "abstract", "affiliate", "aggregate", "alternate", "animate", "appropriate", "approximate",
    "articulate", "bass", "close", "closer", "compact", "complete", "consummate", "converse", "coordinate",
    "covert", "crooked", "degenerate", "deliberate", "desolate", "diffuse", "dogged", "duplicate", "elaborate",
    "frequent", "intimate", "invalid", "learned", "legitimate", "illegitimate", "live", "moderate", "perfect",
    "present", "ragged", "separate", "subordinate",
];
/// Words that tell that what is told is past.
#[rustfmt::skip]
pub const PAST_SIGNS: &[&str] = &[
    "yesterday", "ago", "was", "were", "had", "did", "said", "took", "went", "came", "got", "sat", "stood",
    "found", "gave", "saw", "thought", "told", "knew", "left", "began", "opened", "picked", "last", "earlier",
    "finally", "already", "aloud", "once", "made", "held", "wrote",
];
#[rustfmt::skip]
pub const PRESENT_SIGNS: &[&str] = &[
    "every", "always", "usually", "often", "sometimes", "daily", "never", "now", "today", "generally",
];
#[rustfmt::skip]
pub const WITH_READINGS: &[&str] = &[
    "lead", "live", "lives", "minute", "bass", "bow", "bows", "row", "dove", "tear", "tears", "wind", "winds",
    "wound", "close", "closer", "resume", "resumes", "polish", "aged", "blessed", "content", "export",
    "exports", "protest", "protests",
];
