//! What holds for any text at all.
//!
//! A letter or a digit of a text is accounted for when the processed text holds it (its plain form, its number in
//! words, or the table's word for it), when it is reported as unmapped, or when a named rule of markup stripped it.

use std::time::{Duration, Instant};

use mezzavoce::error::Error;
use mezzavoce::text::{Frontend, MAX_UNMAPPED, Markup, Reading, Segment};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

mod voices;

const BUDGET: usize = 120;
/// Generous: a debug build on a busy machine.
const MOST_TIME: Duration = Duration::from_secs(5);

thread_local! {
    static FRONTENDS: [Frontend; 2] = [voices::ipa(BUDGET), voices::characters(BUDGET)];
}

fn reading(markup: Markup) -> Reading {
    Reading { markup, ..Reading::default() }
}

fn joined(found: &[Segment]) -> String {
    found.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ").to_lowercase()
}

fn check_bounds(text: &str) {
    FRONTENDS.with(|frontends| {
        for frontend in frontends {
            for markup in [Markup::Strip, Markup::Speak, Markup::Keep] {
                let began = Instant::now();
                match frontend.segments(text, &reading(markup)) {
                    Ok(found) => {
                        assert!(!found.is_empty());
                        for segment in found {
                            assert!(segment.ids.len() <= BUDGET, "{} ids", segment.ids.len());
                            assert!(segment.spoken.chars().any(char::is_alphabetic), "{segment:?}");
                        }
                    }
                    Err(Error::InvalidRequest(_)) => {}
                    Err(other) => panic!("{other}"),
                }
                assert!(began.elapsed() < MOST_TIME, "{:?}", began.elapsed());
            }
        }
    });
}

/// Letters that are told by name where they stand alone.
const GREEK: [&str; 24] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu",
    "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
];

fn on_black(c: char) -> Option<char> {
    let first = [0x1f150, 0x1f170].into_iter().find(|first| (*first..first + 26).contains(&u32::from(c)))?;
    char::from_u32(u32::from(c) - first + u32::from('a'))
}

/// Whether `c` is heard in `said` or named in `reported`.
fn is_accounted(c: char, said: &str, reported: &str) -> bool {
    let plain: Vec<char> = c.to_string().nfkd().flat_map(char::to_lowercase).collect();
    let lower: Vec<char> = c.to_lowercase().collect();
    let heard = |c: &char| said.contains(*c) || !c.is_alphabetic();
    let is_number = c.is_numeric() && !c.is_alphabetic();
    reported.contains(c)
        || lower.iter().any(|lower| reported.contains(*lower) || said.contains(*lower))
        || plain.iter().all(heard)
        || c.to_string().nfd().all(|part| reported.contains(part))
        // Letters on black have no decomposition: `A` to `Z`, told as these.
        || on_black(c).is_some_and(|letter| said.contains(letter))
        || plain.iter().any(|part| part.is_alphabetic() && (reported.contains(*part) || said.contains(*part)))
        || (is_number && said.contains(char::is_alphabetic))
        || (plain.iter().any(|c| matches!(c, 'α'..='ω' | '∆'))
            && GREEK.iter().any(|name| said.contains(name)))
}

/// Runs of letters that no table holds, with marks and sevens between them.
fn marked_text() -> impl Strategy<Value = Vec<String>> {
    let piece = prop_oneof![
        3 => "[qkz]{4,9}",
        2 => "7{1,4}",
        3 => "[ .,;:!?'\"()\\[\\]{}/\\\\+@&=%$€#*_`~<>^|°×…—–-]{1,3}",
        2 => " ",
        1 => "\\PC{1,2}".prop_filter("letters and digits are counted", |text| {
            !text.chars().any(|c| c.is_alphanumeric()) && !text.nfkd().any(|c| c.is_alphanumeric())
        }),
    ];
    prop::collection::vec(piece, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_bounded_segments_in_bounded_time(
        text in prop_oneof!["\\PC{0,1000}", prop::collection::vec(any::<char>(), 0..1000).prop_map(String::from_iter)]
    ) {
        check_bounds(&text);
    }

    #[test]
    fn any_letter_is_heard_or_reported(text in prop::collection::vec(any::<char>(), 1..20).prop_map(String::from_iter)) {
        // Nothing but emphasis is stripped here: random text holds no link and no tag.
        FRONTENDS.with(|frontends| for frontend in frontends {
            // A control sequence of terminals takes its letter with it.
            let text = format!("be {} so", text.replace('\u{1b}', ""));
            let found = frontend.segments(&text, &Reading::default()).unwrap();
            let reported: String = found.iter().flat_map(|segment| segment.unmapped.iter()).collect();
            let said = joined(&found);
            if reported.chars().count() < MAX_UNMAPPED {
                // A mark belongs to the letter that it stands on, which is heard or reported.
                let letters = text.chars().filter(|c| c.is_alphanumeric() && !is_combining_mark(*c));
                // Behind a number a letter may be a unit or a sign, which is said by its name: `0K`, `2x4`.
                let numbered = text.contains(char::is_numeric);
                for c in letters.filter(|c| !(numbered && c.is_ascii_alphabetic())) {
                    assert!(is_accounted(c, &said, &reported), "{c:?} ({:x}) of {text:?} as {said:?}, reported {reported:?}", c as u32);
                }
            }
        });
    }

    #[test]
    fn no_word_and_no_digit_is_lost_among_marks(pieces in marked_text()) {
        let text = pieces.concat();
        FRONTENDS.with(|frontends| {
            // Where markup is spoken nothing may go; a link and a tag are stripped by rule where it is not.
            let markup = [Markup::Speak, Markup::Keep, Markup::Strip];
            let stripped = text.contains("](") || text.contains("```") || text.contains("~~~") || text.contains('<');
            for markup in markup.into_iter().filter(|markup| *markup != Markup::Strip || !stripped) {
                let Ok(found) = frontends[0].segments(&text, &reading(markup)) else {
                    assert!(!text.contains(['q', 'k', 'z', '7']), "{text:?} is refused");
                    continue;
                };
                let said = joined(&found);
                let letters: String = said.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
                for run in text.split(|c| !matches!(c, 'q' | 'k' | 'z')).filter(|run| !run.is_empty()) {
                    assert!(letters.contains(run), "{run} of {text:?} as {said:?}");
                }
                let sevens = said.replace("july", "seven").matches("seven").count();
                assert_eq!(sevens, text.matches('7').count(), "{text:?} as {said:?}");
            }
        });
    }
}

/// A flood takes no more than three times as long for a byte as prose does.
#[test]
fn a_flood_costs_no_more_than_prose() {
    const BYTES: usize = 1 << 17;
    let prose =
        "It was 5 p.m. when Dr. Lee, who had walked 3.5 km in the rain, paid $4.20 for tea and went home. ";
    FRONTENDS.with(|frontends| {
        let time = |unit: &str| {
            let text = unit.repeat(BYTES / unit.len());
            (0..3)
                .map(|_| {
                    let began = Instant::now();
                    let _ = frontends[1].segments(&text, &Reading::default());
                    began.elapsed()
                })
                .min()
                .unwrap()
        };
        for flood in ["7", "(", " ", "\u{301}", "a\u{301}\u{302}"] {
            // A busy machine may stretch one measurement, not each of five.
            let cheap = (0..5).any(|_| {
                let (flooded, plain) = (time(flood), time(prose));
                println!("{flood:?}: {flooded:?}, prose {plain:?}");
                flooded < 3 * plain
            });
            assert!(cheap, "{flood:?}");
        }
    });
}
