//! A heteronym whose part of speech does not tell its readings apart in, the reading that its neighbours suggest out.
//!
//! Never holds a word that the dictionary's own tags tell apart.

use super::words::{
    BE, CONJUNCTIONS, DEGREES, DETERMINERS, HAVE, OBJECTS, PREPOSITIONS, TO_AND_MODALS, WITH_READINGS,
};
use super::{Context, Part, is_adjective, is_in, takes_adjective};

/// Readings, in the dictionary's alphabet, of words whose part of speech does not tell them apart or that the
/// dictionary lists once.
pub fn reading(context: &Context<'_>, written: &str) -> Option<&'static str> {
    let word = context.word();
    if !is_in(WITH_READINGS, word) {
        return None;
    }
    let part = context.part();
    let (previous, next, second) = (context.before(1), context.after(1), context.after(2));
    let any = |list: &[&str]| context.words.iter().take(40).any(|word| is_in(list, word));
    let noun = part == Part::Noun;
    match word {
        "lead" => {
            #[rustfmt::skip]
            const THINGS: &[&str] = &[
                "pipe", "pipes", "paint", "poisoning", "acid", "bullet", "bullets", "shot",
                "weight", "weights", "ore", "mine", "mines", "exposure", "glass", "crystal",
                "solder", "roof", "shield", "box", "levels", "contamination", "sheet", "battery",
                "batteries", "oxide", "content", "coffin",
            ];
            #[rustfmt::skip]
            const METALS: &[&str] = &[
                "iron", "zinc", "copper", "tin", "mercury", "silver", "steel", "gold", "arsenic",
                "cadmium",
            ];
            let amount = previous == "of" && !is_in(&["in", "out", "because"], context.before(2));
            let beside =
                |conjunction: &str, other: &str| is_in(CONJUNCTIONS, conjunction) && is_in(METALS, other);
            let metal = is_in(THINGS, next)
                || (amount && !is_in(DETERMINERS, previous))
                || beside(next, second)
                || beside(previous, context.before(2))
                || is_in(
                    &["molten", "melted", "contains", "contain", "contained", "like", "toxic"],
                    previous,
                )
                || (noun && is_in(HAVE, previous))
                || (previous.is_empty() && is_in(BE, next));
            (metal && !is_in(TO_AND_MODALS, previous)).then_some("lˈɛd")
        }
        "live" => {
            #[rustfmt::skip]
            const SHOWN: &[&str] = &[
                "music", "tv", "television", "radio", "on", "now", "today", "tonight", "from",
            ];
            #[rustfmt::skip]
            const PLACES: &[&str] = &[
                "television", "tv", "radio", "air", "stage", "camera",
            ];
            let shown = part == Part::Adjective
                || (next == "on" && is_in(PLACES, second))
                || (takes_adjective(previous) && previous != "live")
                || (is_in(BE, previous) && (next.is_empty() || is_in(SHOWN, next)));
            Some(if shown { "lˈIv" } else { "lˈɪv" })
        }
        "lives" => {
            #[rustfmt::skip]
            const TAKEN: &[&str] = &[
                "save", "saved", "saves", "lost", "cost", "change", "changed", "human", "many",
            ];
            let are = noun && context.after_content(previous, true) != Part::Verb
                || is_in(TAKEN, previous)
                || is_in(DETERMINERS, previous) && !is_in(&["that", "which", "one"], previous);
            let starts = is_in(&["who", "he", "she", "it", "that", "which"], previous);
            let someone =
                is_in(&["in", "at", "with", "on", "near", "alone", "by", "here", "there", "next"], next);
            let dweller = someone
                && !is_in(DETERMINERS, previous)
                && !is_in(PREPOSITIONS, previous)
                && !is_in(TAKEN, previous)
                && !is_in(BE, previous);
            Some(if are && !starts && !dweller { "lˈIvz" } else { "lˈɪvz" })
        }
        "minute" => {
            #[rustfmt::skip]
            const SMALL: &[&str] = &[
                "detail", "details", "amount", "amounts", "particles", "particle", "quantity",
                "quantities", "fraction", "difference", "differences", "crack", "cracks", "traces",
                "organisms", "changes", "fragments", "creatures",
            ];
            let small = previous == "a"
                && context.is_content(next)
                && !is_in(&["hand", "hands", "ago", "later"], next);
            (small || is_in(SMALL, next) || part == Part::Adjective || is_in(DEGREES, previous))
                .then_some("mInˈut")
        }
        "bass" => {
            #[rustfmt::skip]
            const FISH: &[&str] = &[
                "fish", "fishing", "fished", "caught", "catch", "sea", "striped", "largemouth",
                "smallmouth", "lake", "river", "pond", "boat", "grilled", "fried", "fisherman",
                "trout", "hook", "hooked",
            ];
            Some(if any(FISH) { "bˈæs" } else { "bˈAs" })
        }
        "bow" | "bows" => {
            let ship =
                any(&["ship", "ship's", "boat", "boat's", "stern", "deck", "vessel", "sailors", "prow"]);
            let bent = is_in(&["take", "took", "takes", "deep", "low", "polite", "final"], previous)
                || (is_in(&["take", "took", "takes", "made", "with"], context.before(2))
                    && previous == "a"
                    && next != "and")
                || is_in(&["down", "out", "before"], next) && !any(&["arrow", "arrows", "violin"]);
            (noun && (ship || bent)).then(|| if word == "bow" { "bˈW" } else { "bˈWz" })
        }
        "row" => {
            let quarrel = is_in(&["about", "over"], next) && previous != "in"
                || (context.before(2) == "had" && previous == "a");
            quarrel.then_some("ɹˈW")
        }
        "dove" => (is_in(&["into", "in", "off", "down", "under", "deep", "headfirst", "for"], next)
            && !is_in(DETERMINERS, previous)
            && !is_adjective(previous))
        .then_some("dˈOv"),
        "tear" | "tears" => {
            #[rustfmt::skip]
            const TORN: &[&str] = &[
                "fabric", "cloth", "paper", "shirt", "muscle", "dress", "jeans", "ligament",
                "curtain", "sail", "coat",
            ];
            let apart = is_in(&["up", "down", "apart", "off", "open", "out", "through", "away", "at"], next);
            let torn = noun && (any(TORN) || context.before(2) == "wear")
                || (apart && !is_in(PREPOSITIONS, previous) && !is_in(DETERMINERS, previous));
            torn.then(|| if word == "tear" { "tˈɛɹ" } else { "tˈɛɹz" })
        }
        "wind" | "winds" => {
            #[rustfmt::skip]
            const WAYS: &[&str] = &[
                "road", "river", "path", "trail", "stream", "track", "staircase", "roads", "rivers",
                "paths",
            ];
            let turned = part == Part::Verb
                || is_in(WAYS, previous)
                || (matches!((next, previous), ("up" | "down" | "back", before) if !is_in(DETERMINERS, before)));
            let (bent, blown) = if word == "wind" { ("wˈInd", "wˈɪnd") } else { ("wˈIndz", "wˈɪndz") };
            Some(if turned { bent } else { blown })
        }
        "wound" if is_in(&["up", "around", "down"], next) && !is_in(DETERMINERS, previous) => Some("wˈWnd"),
        "close" if is_in(&["to", "by", "together", "enough", "behind", "friend", "friends"], next) => {
            let shut = next == "to" && is_in(&["will", "must", "to"], previous);
            Some(if shut { "klˈOz" } else { "klˈOs" })
        }
        "close"
            if next.is_empty() && is_in(&["keep", "kept", "keeps", "hold", "held"], context.before(3)) =>
        {
            Some("klˈOs")
        }
        "closer" => Some("klˈOsəɹ"),
        "export" => (part == Part::Verb).then_some("ɛkspˈɔɹt"),
        "exports" => (part == Part::Verb).then_some("ɛkspˈɔɹts"),
        "protest" => (part == Part::Verb).then_some("pɹətˈɛst"),
        "protests" => (part == Part::Verb).then_some("pɹətˈɛsts"),
        "resume" => noun.then_some("ɹˈɛzəmˌA"),
        "resumes" => noun.then_some("ɹˈɛzəmˌAz"),
        "polish" if written.starts_with('P') => {
            let command = context.at == 0 && (is_in(DETERMINERS, next) || is_in(OBJECTS, next));
            Some(if command { "pˈɑlɪʃ" } else { "pˈOlɪʃ" })
        }
        "aged" if previous == "the" => Some("ˈAʤᵻd"),
        "blessed" if is_in(DETERMINERS, previous) && context.is_content(next) => Some("blˈɛsᵻd"),
        "content" => Some(if part == Part::Adjective || is_in(&["to", "with"], next) && !noun {
            "kəntˈɛnt"
        } else {
            "kˈɑntɛnt"
        }),
        _ => None,
    }
}
