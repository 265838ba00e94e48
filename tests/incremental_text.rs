//! Text that comes in pieces against the same text in one.

mod voices;

use mezzavoce::text::{Frontend, IncrementalText, Pause, Reading, Segment};

const PROSE: [&str; 15] = [
    "Plan B. Then we left. Vitamin D. It helps. Main St. The end. In the U.S. It rained. J. R. Jones. The cat sat. Next p. 5.",
    "Read <a href=\"x. Y z\">this. Then</a> that. One<br>two. R&amp;D&nbsp;X. It is <b>on. Off</b> a < b. Done <T. Yes.",
    "On March 4, 2025 at 3.30 p.m. I rang +1 (555) 123-4567. See https://x.org/a.b?c=1. He paid 20 USD. 5 kg. 1.000.000. V. It is.",
    "The kettle was on. She had two cups, one saucer and no milk! Where was it? Nobody knew...  Then the door went.",
    "Dr. Smith paid $3.14 to Mr. J. R. Jones at 5 p.m. on Tuesday. He left at 6 p.m. Nobody (not even St. John) saw him.",
    "A line\nanother line\n\na paragraph. And its second sentence\r\n\r\n  The end",
    "\"Stop!\" she said. \"Why?\" he asked. \"No. 5 is closed.\" No. That was wrong. See fig. 3 and vol. 12 etc. Then rest.",
    "# Heading\n- first item. It goes on\n- second item\n* third: with a colon\n> quoted text. More of it.",
    "Read [the docs. All of them](https://example.org/a.b?c=1) first. Then ![a picture. Here](x.png) and go. [1] He left.",
    "One \u{1f600} face. Two \u{1f600}\u{1f600}. Three… four… five.  ... ! ? Six.\t\tSeven\u{a0}8.\u{2028}Nine.",
    "Say [[həlˈoʊ. wɜːld]] twice. Then [[ˈɛnd]]. An open [[ never closed. It goes on. And on.",
    "I am U.S. Grant. I was in the U.S. Army. The U.S. is large. Was it I. It was I. I. M. Pei built it.",
    "It cost 1 000 euros. Or 1.5 million. At 3.30 p.m. it was gone. ¿Qué? Naïve café. ½ a cup. 5½ cups。 Next! Done？Yes.",
    "no stops at all here and it simply goes on until it is over",
    "Hello! ... \n\n—\n\n*** Goodbye. ~~~",
];

/// Numbers that look random and are the same each time (Knuth's MMIX generator).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}

/// The segments of `pieces` and the pauses between them.
fn incremental(frontend: &Frontend, pieces: &[&str], whole: bool) -> (Vec<Segment>, Vec<Pause>, String) {
    let mut text = IncrementalText::new(Reading::default(), whole);
    let mut given: Vec<(Pause, Segment)> =
        pieces.iter().flat_map(|piece| text.push(frontend, piece).unwrap()).collect();
    let (rest, unmapped) = text.finish(frontend).unwrap();
    given.extend(rest);
    let (pauses, segments) = given.into_iter().unzip();
    (segments, pauses, unmapped)
}

fn check(frontend: &Frontend, text: &str, pieces: &[&str]) {
    let mut expected = frontend.segments(text, &Reading::default()).unwrap();
    let pauses: Vec<Pause> =
        expected.iter_mut().map(|segment| std::mem::replace(&mut segment.pause, Pause::None)).collect();
    let (mut found, between, unmapped) = incremental(frontend, pieces, true);
    found.last_mut().unwrap().unmapped.extend(unmapped.chars());
    assert_eq!(found, expected, "{pieces:?}");
    assert_eq!(between[1..], pauses[..pauses.len() - 1], "{pieces:?}");
}

/// `text` cut at `cuts` random places.
fn cut<'a>(text: &'a str, cuts: usize, random: &mut Random) -> Vec<&'a str> {
    let mut places: Vec<usize> = (0..cuts).map(|_| random.below(text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.retain(|&place| text.is_char_boundary(place));
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

#[test]
fn pieces_give_the_segments_of_the_whole() {
    let mut random = Random(1);
    for frontend in [voices::ipa(200), voices::ipa(40), voices::characters(200)] {
        for text in PROSE {
            check(&frontend, text, &[text]);
            let characters: Vec<&str> = text.split("").collect();
            check(&frontend, text, &characters);
            for cuts in [1, 2, 3, 5, 8, 13, 21, 34] {
                check(&frontend, text, &cut(text, cuts, &mut random));
            }
        }
        let all = PROSE.join("\n\n");
        for _ in 0..10 {
            check(&frontend, &all, &cut(&all, 40, &mut random));
        }
    }
}

#[test]
fn a_sentence_is_given_as_soon_as_it_is_certain() {
    let frontend = voices::ipa(200);
    let mut text = IncrementalText::new(Reading::default(), true);
    let mut push = |piece: &str| -> Vec<String> {
        text.push(&frontend, piece).unwrap().into_iter().map(|(_, segment)| segment.text).collect()
    };
    assert!(push("The kettle was o").is_empty());
    assert!(push("n.").is_empty(), "a decimal could follow");
    assert_eq!(push(" "), ["The kettle was on."]);
    assert!(push("It was 3.").is_empty());
    assert!(push("14 or so, said Dr. ").is_empty());
    assert!(push("Jones.").is_empty());
    assert_eq!(push("\n").len(), 1);
    assert!(push("At 5 p.m. ").is_empty(), "a capital or none decides");
    assert_eq!(push("T").len(), 1);
}

#[test]
fn the_first_speech_is_the_first_clause_and_the_others_are_sentences() {
    let frontend = voices::ipa(200);
    let text = "When the rain stopped, we went out, slowly. Then, at last, home.";
    let (segments, pauses, _) = incremental(&frontend, &[text], false);
    let texts: Vec<&str> = segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(texts, ["When the rain stopped,", "we went out, slowly.", "Then, at last, home."]);
    assert_eq!(pauses, [Pause::None, Pause::Clause, Pause::Sentence]);
}

#[test]
fn nothing_to_speak_is_refused_at_the_end() {
    let frontend = voices::ipa(200);
    for piece in ["", " \n ", "...!?", "\u{1f600}"] {
        let mut text = IncrementalText::new(Reading::default(), false);
        assert!(text.push(&frontend, piece).unwrap().is_empty());
        assert!(text.finish(&frontend).is_err(), "{piece:?}");
    }
}

#[test]
fn a_flood_takes_linear_time() {
    let frontend = voices::characters(200);
    for flood in ["A. ", "Mr. ", "](", "[", "[[a]] ", "a, ", "x", "? ", "\n", "5 p.m. "] {
        let text = flood.repeat(100_000 / flood.len());
        let began = std::time::Instant::now();
        let mut incremental = IncrementalText::new(Reading::default(), true);
        for piece in text.as_bytes().chunks(7) {
            incremental.push(&frontend, std::str::from_utf8(piece).unwrap()).unwrap();
        }
        let _ = incremental.finish(&frontend);
        assert!(began.elapsed().as_secs() < 10, "{flood:?} took {:?}", began.elapsed());
    }
}
