//! The inputs on which programs of this kind have failed, each with others of its kind.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use mezzavoce::error::Error;
use mezzavoce::text::{Frontend, Lexicon, MAX_TEXT_BYTES, Markup, Pause, Reading, Segment};

mod voices;

static IPA: LazyLock<Frontend> = LazyLock::new(|| voices::ipa(150));
static CHARACTERS: LazyLock<Frontend> = LazyLock::new(|| voices::characters(120));

fn both() -> [(&'static Frontend, usize); 2] {
    [(&IPA, 150), (&CHARACTERS, 120)]
}

fn segments(frontend: &Frontend, text: &str) -> Vec<Segment> {
    frontend.segments(text, &Reading::default()).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn said(segments: &[Segment]) -> String {
    segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// `text` is read as `expected`, sentences parted by ` | `, by both kinds of voices and without a report.
#[track_caller]
fn check(text: &str, expected: &str) {
    for frontend in [&voices::ipa(400), &voices::characters(400)] {
        let found = segments(frontend, text);
        let sentences: Vec<&str> = found.iter().map(|segment| segment.text.as_str()).collect();
        assert_eq!(sentences.join(" | "), expected, "{text:?}");
        assert!(found.iter().all(|segment| segment.unmapped.is_empty()), "{text:?}: {found:?}");
    }
}

#[test]
fn every_digit_is_spoken() {
    check("Room 42, code 7081.", "Room forty two, code seven thousand eighty one.");
    check("Gate 7B, row 19, seat 3.", "Gate seven B, row nineteen, seat three.");
    check("PIN 0042, please.", "PIN zero zero four two, please.");
    check("Take 2 of 10 at 08.", "Take two of ten at zero eight.");
    check("x1y2z3", "x one y two z three");
    check("Agent 007 has 1,000,001 fans.", "Agent zero zero seven has one million one fans.");
    check("R2D2 met C3PO in 2049.", "R two D two met C three PO in twenty forty nine.");
}

#[test]
fn decimals_signs_and_amounts_are_spoken_as_a_person_would() {
    check(
        "It is 70.3 outside, -10 tonight, 25.50 due.",
        "It is seventy point three outside, minus ten tonight, twenty five point five zero due.",
    );
    check(
        "It fell -0.5 points, then +2.75.",
        "It fell minus zero point five points, then plus two point seven five.",
    );
    check(
        "Pay 19.99 or $19.99 or 0.99€.",
        "Pay nineteen point nine nine or nineteen dollars and ninety nine cents or ninety nine cents.",
    );
    check("−12.5 now, -7°C tonight", "minus twelve point five now, minus seven degrees Celsius tonight");
    check(
        "The ratio is .75, not 0.075.",
        "The ratio is zero point seven five, not zero point zero seven five.",
    );
    check("UTC-5 and GMT+5:30", "U T C minus five and G M T plus five thirty");
}

#[test]
fn grouped_digits_are_one_number() {
    check("3,497 seats", "three thousand four hundred ninety seven seats");
    check("1,234,567 people", "one million two hundred thirty four thousand five hundred sixty seven people");
    check("12,000.5 tons", "twelve thousand point five tons");
    check("$1,250.75", "one thousand two hundred fifty dollars and seventy five cents");
    check("The 10,000,000th visitor", "The ten millionth visitor");
    check("1\u{202f}000\u{202f}000", "one million");
    check("one of 1, 2,000 and 3", "one of one, two thousand and three");
}

#[test]
fn no_is_a_word_and_a_number_sign() {
    check("No. I will not.", "No. | I will not.");
    check("No. 5 is next.", "number five is next.");
    check("Nos. 3 and 4. No way.", "numbers three and four. | No way.");
    check("\"No.\" He left.", "No. | He left.");
    check("Is it no. 7? No. It is no. 8.", "Is it number seven? | No. | It is number eight.");
    check("Say no. Then go.", "Say no. | Then go.");
    check("Vol. II, fig. 3. See vol. IV.", "volume two, figure three. | See volume four.");
}

#[test]
fn stops_inside_a_sentence_do_not_split_it() {
    check(
        "Dr. A. B. Stone paid 3.14 at example.com. Done.",
        "doctor A. B. Stone paid three point one four at example dot com. | Done.",
    );
    check("Mr. J. P. Morgan met Mrs. Lee. They spoke.", "mister J. P. Morgan met missus Lee. | They spoke.");
    check("Visit docs.rs or crates.io. Both work.", "Visit docs dot R S or crates dot I O. | Both work.");
    check("It cost approx. 2.5 million. Fine.", "It cost approximately two point five million. | Fine.");
    check(
        "The U.S. economy grew 3.1 percent. Good.",
        "The U S economy grew three point one percent. | Good.",
    );
    check("Prof. X. Y. Zed, Ph.D., wrote it. Read it.", "professor X. Y. Zed, P H D, wrote it. | Read it.");
    check("Add 2 tbsp. sugar and 1/2 lb. cheese.", "Add two tablespoons sugar and one half pounds cheese.");
    check("Come on Mon., Jan. 5th. Or not.", "Come on Monday, January fifth. | Or not.");
}

#[test]
fn text_longer_than_the_position_table_is_split() {
    for unit in ["word ", "antidisestablishmentarianism ", "a ", "forty-two ", "12,345 ", "é\u{301} "] {
        let text = unit.repeat(200);
        for (frontend, budget) in both() {
            let found = segments(frontend, &text);
            assert!(found.len() > 1 && found.iter().all(|segment| segment.ids.len() <= budget), "{unit:?}");
            let words: usize = found.iter().map(|segment| segment.text.split(' ').count()).sum();
            let each = segments(frontend, unit).iter().map(|s| s.text.split(' ').count()).sum::<usize>();
            assert_eq!(words, 200 * each, "{unit:?}");
        }
    }
}

#[test]
fn every_clause_of_a_sentence_without_an_end_is_spoken() {
    for (clause, word) in [
        ("it rained, ", "rained"),
        ("it rained; ", "rained"),
        ("then it snowed — ", "snowed"),
        ("and it rained and ", "rained"),
        ("(it rained) ", "rained"),
        ("it rained: ", "rained"),
    ] {
        for (frontend, budget) in both() {
            let found = segments(frontend, &clause.repeat(40));
            assert_eq!(said(&found).matches(word).count(), 40, "{clause:?}");
            assert!(found.iter().all(|segment| segment.ids.len() <= budget), "{clause:?}");
        }
    }
}

#[test]
fn what_has_no_space_is_split_between_characters() {
    let url = format!("https://example.org/{}", "section-7/page_x?q=1&".repeat(33));
    for text in [
        "a".repeat(900),
        url,
        "é".repeat(900),
        "e\u{301}\u{323}".repeat(400),
        "x".repeat(899) + "!",
        "9".repeat(700),
        "don't".repeat(200),
        "a-".repeat(450),
    ] {
        for (frontend, budget) in both() {
            let found = segments(frontend, &text);
            assert!(found.len() > 1, "{text}");
            for segment in &found {
                assert!(segment.ids.len() <= budget, "{text}");
                assert!(!segment.text.starts_with('\u{301}') && !segment.spoken.starts_with('ː'), "{text}");
            }
        }
    }
    let found = segments(&CHARACTERS, &"a".repeat(900));
    assert_eq!(found.iter().map(|segment| segment.spoken.matches('a').count()).sum::<usize>(), 900);
}

#[test]
fn a_text_without_speech_is_refused_and_a_piece_without_speech_is_skipped() {
    for empty in
        ["", "   ", "...!?", "***", "🎉", "\n\n", "—", "👩‍👩‍👧 🇫🇷", "\u{200b}\u{feff}", "---\n===", "\"\"", "•"]
    {
        for (frontend, _) in both() {
            match frontend.segments(empty, &Reading::default()) {
                Err(Error::InvalidRequest(reason)) => {
                    assert!(reason.contains("nothing to speak"), "{reason}")
                }
                other => panic!("{empty:?}: {other:?}"),
            }
            let found = segments(frontend, &format!("Before.\n{empty}\nAfter."));
            assert_eq!(said(&found), "Before. After.", "{empty:?}");
        }
    }
}

#[test]
fn a_line_break_is_a_pause() {
    let pauses = |text: &str, expected: &[(&str, Pause)]| {
        for (frontend, _) in both() {
            let found = segments(frontend, text);
            let found: Vec<(&str, Pause)> = found.iter().map(|s| (s.text.as_str(), s.pause)).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    };
    use Pause::{Line, Paragraph, Sentence};
    pauses("Milk\nEggs\n\nBread", &[("Milk", Line), ("Eggs", Paragraph), ("Bread", Line)]);
    pauses("One\r\nTwo\rThree", &[("One", Line), ("Two", Line), ("Three", Line)]);
    pauses("- a cat\n- a dog\n\n* a bird", &[("a cat", Line), ("a dog", Paragraph), ("a bird", Line)]);
    pauses("Title\n=====\nBody", &[("Title", Paragraph), ("Body", Line)]);
    pauses("• red\u{2028}• green", &[("red", Line), ("green", Line)]);
    pauses("1. Wash\n2. Dry", &[("one.", Sentence), ("Wash", Line), ("two.", Sentence), ("Dry", Line)]);
    pauses("Dear Ann,\n\nhi\n\n\n\nBob", &[("Dear Ann,", Paragraph), ("hi", Paragraph), ("Bob", Line)]);
}

#[test]
fn an_ellipsis_is_a_pause() {
    for (text, count) in [
        ("Well… maybe...", 2),
        ("Hmm... right.", 1),
        ("Wait…what… now?", 1),
        ("So….", 1),
        ("I... I don't know.", 1),
        ("Well . . . maybe", 1),
        ("And then.... Then nothing..", 2),
    ] {
        for (frontend, _) in both() {
            let found = segments(frontend, text);
            let pauses = found.iter().filter(|segment| segment.pause == Pause::Ellipsis).count();
            assert_eq!(pauses, count, "{text:?}: {:?}", found.iter().map(|s| &s.text).collect::<Vec<_>>());
        }
    }
}

#[test]
fn typographic_marks_are_read_as_plain_ones() {
    check("“Hi” 1\u{202f}000\u{a0}km — it’s…", "Hi one thousand kilometers, it's.");
    check("‘It’s’ „quoted“ – fine", "It's quoted, fine");
    check("5\u{2009}000 m – 6\u{202f}km", "five thousand meters, six kilometers");
    check("«Salut» ‹hi› 「yo」", "Salut hi yo");
    check("rock ’n’ roll, the ’90s", "rock n roll, the nineties");
    check("100\u{a0}% sure… really?", "one hundred percent sure. | really?");
    check("it\u{2011}is a non\u{ad}breaking\u{200b} test", "it-is a nonbreaking test");
    check("ﬁne ½ cup, ５ km", "fine one half cup, five kilometers");
}

#[test]
fn markup_and_emoji_are_not_spoken() {
    check("**Bold** 🎉 [docs](https://example.org) #done", "Bold docs done");
    check("run start_now", "run start now");
    check("my_var_name = other_name", "my var name equals other name");
    check("~~old~~ new `code` here", "old new code here");
    check("![alt text](img.png) and [a b](c \"the title\")", "alt text and a b");
    check("1️⃣ first 👩\u{200d}💻 coder 🇺🇸", "one first coder");
    check("## Heading ##\n> quoted", "Heading | quoted");
    check("<b>bold</b> &amp; <i>it</i><br>next", "bold and it | next");
    check("| a | b |\n|---|---|\n| c | d |", "a, b | c, d");
}

#[test]
fn an_entry_of_a_lexicon_wins() {
    let lexicon = Lexicon::parse_custom_dictionary("Qorvex  ˈkɔːrvɛks,K8s  ˈkeɪts").unwrap();
    let reading = Reading { lexicon: Some(std::sync::Arc::new(lexicon)), ..Reading::default() };
    for text in [
        "Qorvex",
        "QORVEX!",
        "(qorvex)",
        "“Qorvex”",
        "Qorvex's",
        "a Qorvex-based one",
        "**Qorvex**",
        "Qorvex…",
        "Qorvex/Qorvex",
        "# Qorvex",
    ] {
        let found = IPA.segments(text, &reading).unwrap();
        assert!(found[0].spoken.contains("kˈɔːɹvɛks"), "{text:?}: {}", found[0].spoken);
    }
    for text in ["K8s", "k8s.", "(K8S)", "on K8s, now", "K8s's"] {
        let found = IPA.segments(text, &reading).unwrap();
        assert!(found[0].spoken.contains("kˈeɪts"), "{text:?}: {}", found[0].spoken);
    }
}

#[test]
fn floods_take_linear_time_and_then_meet_the_limit() {
    for unit in ["9", "a ", "(", "1,", "e\u{301}", "A. ", "$", "[x]("] {
        let began = Instant::now();
        let refused = IPA.segments(&unit.repeat(25_000_000 / unit.len()), &Reading::default());
        let reason = refused.unwrap_err().to_string();
        assert!(reason.contains(&format!("the limit is {MAX_TEXT_BYTES}")), "{reason}");
        assert!(began.elapsed() < Duration::from_secs(1), "{unit:?}: {:?}", began.elapsed());
    }
    let nines = segments(&IPA, &"9".repeat(100_000));
    assert_eq!(said(&nines).matches("nine").count(), 100_000);
}

#[test]
fn strange_unicode_gives_an_answer_or_a_clear_error() {
    for text in [
        "\u{0}",
        "\u{301}",
        "\u{301}\u{302}a",
        "שלום",
        "\u{202e}abc\u{202c}",
        "مرحبا 5",
        "\u{fffd}",
        "a\u{fffd}b",
        "\u{e000}",
        "\u{10ffff}",
        "\u{feff}hi",
        "a\u{0}b",
        "🏳\u{fe0f}\u{200d}🌈",
        "\u{1160}",
        "ﷺ",
    ] {
        for (frontend, _) in both() {
            for markup in [Markup::Strip, Markup::Speak, Markup::Keep] {
                match frontend.segments(text, &Reading { markup, ..Reading::default() }) {
                    Ok(found) => assert!(found.iter().all(|s| s.spoken.contains(char::is_alphabetic))),
                    Err(Error::InvalidRequest(reason)) => assert!(reason.contains("nothing"), "{reason}"),
                    Err(other) => panic!("{text:?}: {other}"),
                }
            }
        }
    }
}
