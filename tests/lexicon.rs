//! What a user's lexicon says of words, and how files that are wrong are refused.

use std::sync::{Arc, LazyLock};

use mezzavoce::text::lexicon::{MAX_ENTRIES, MAX_GRAPHEME_CHARACTERS, MAX_LEXICON_BYTES, Pronunciation};
use mezzavoce::text::{Frontend, IncrementalText, Lexicon, MAX_LEXICON_SPEECH_BYTES, Reading, Segment};

mod voices;

static IPA: LazyLock<Frontend> = LazyLock::new(|| voices::ipa(400));
static CHARACTERS: LazyLock<Frontend> = LazyLock::new(|| voices::characters(400));

const ENTRIES: &str = "\u{feff}# Names and signs\r\n\
    Qorvex\tˈkɔːrvɛks\r\n\
    \r\n\
    K8s\tkˈeɪts\tipa\n\
    C++\tsee plus plus\talias\n\
    .NET\tdot net\talias\n\
    NASA\tN AE1 S AH0\tx-arpabet\n\
    US\tjˌuːˈɛs\n\
    New Pellon\tnuː pˈɛlɑːn\n\
    Pellon\tpəlˈoʊn\n\
    read\tɹˈɛd\n\
    naïve\tnˌaɪˈiːv\n\
    O'Brax\toʊbɹˈæks\n\
    3M\tθɹˈiːɛm\n";

fn lexicon() -> Arc<Lexicon> {
    let lexicon = Lexicon::parse_tsv(ENTRIES.as_bytes(), "names.tsv").unwrap();
    assert!(lexicon.notices().is_empty(), "{:?}", lexicon.notices());
    Arc::new(lexicon)
}

fn reading() -> Reading {
    Reading { lexicon: Some(lexicon()), ..Reading::default() }
}

fn spoken(segments: &[Segment]) -> String {
    segments.iter().map(|segment| segment.spoken.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_entry_wins_wherever_its_word_stands() {
    let reading = reading();
    let check = |text: &str, ipa: &str| {
        let segments = IPA.segments(text, &reading).unwrap();
        let spoken = spoken(&segments);
        assert!(spoken.contains(ipa), "{text:?}: {spoken}");
        assert!(segments.iter().all(|segment| segment.unmapped.is_empty()), "{text:?}");
    };
    for text in [
        "Qorvex",
        "Qorvex.",
        "(Qorvex)",
        "“Qorvex”",
        "QORVEX",
        "qorvex!",
        "*Qorvex*, then",
        "a Qorvex-based thing",
        "pre-Qorvex",
        "[Qorvex](https://example.org)",
        "the Qorvex/Pellon deal",
        "Qorvex.com",
        "start_qorvex_now",
        "Qorvex…",
        "—Qorvex—",
        "It was Qorvex; it is.",
        "'Qorvex'",
        "# Qorvex",
        "1. Qorvex",
        "Qorvex: yes",
    ] {
        check(text, "kˈɔːɹvɛks");
    }
    check("Qorvex's plan", "kˈɔːɹvɛksᵻz");
    check("Pellon’s plan", "pəlˈoʊnz");
    check("Qorvex'll go", "kˈɔːɹvɛksəl");
    check("K8s, k8s and K8S.", "kˈeɪts, ænd kˈeɪts".split(' ').next_back().unwrap());
    check("On K8s.", "kˈeɪts.");
    check("We like C++.", "sˈiː plˈʌs plˈʌs.");
    check("We like c++, not C.", "sˈiː plˈʌs plˈʌs,");
    check("Use .NET now", "dˈɑːt nˈɛt");
    check("NASA flew", "nˈæsə");
    check("Nasa flew", "nˈæsə");
    check("the US did", "jˌuːˈɛs");
    check("in New Pellon's north", "nuː pˈɛlɑːnz");
    check("in new pellon", "nuː pˈɛlɑːn");
    check("in old Pellon", "pəlˈoʊn");
    check("I will read it", "ɹˈɛd");
    check("a NAÏVE one", "nˌaɪˈiːv");
    check("a nai\u{308}ve one", "nˌaɪˈiːv");
    check("O’Brax spoke", "oʊbɹˈæks");
    check("a 3M note", "θɹˈiːɛm");
}

#[test]
fn a_word_that_only_resembles_an_entry_is_left_alone() {
    let reading = reading();
    for text in ["Qorvexes", "unqorvex", "give us more", "K8ss", "readily", "13M", "a bread", "Qorvex2", "C+"]
    {
        let with = IPA.segments(text, &reading).unwrap();
        let without = IPA.segments(text, &Reading::default()).unwrap();
        assert_eq!(with, without, "{text:?}");
    }
    let lexicon = Lexicon::parse_tsv("can\tkˈɑn\nt\ttˈiː\n2\tdjˈuː\n".as_bytes(), "t").unwrap();
    let reading = Reading { lexicon: Some(Arc::new(lexicon)), ..Reading::default() };
    for text in ["I can't.", "It is 3.2 or 2.3, 2,000 or 1:2."] {
        let without = IPA.segments(text, &Reading::default()).unwrap();
        assert_eq!(IPA.segments(text, &reading).unwrap(), without, "{text:?}");
    }
}

#[test]
fn the_written_word_is_told_and_its_neighbours_adapt() {
    let text = "The Qorvex's K8s of C++.";
    let segments = IPA.segments(text, &reading()).unwrap();
    assert_eq!(segments[0].text, "The Qorvex's K8s of see plus plus.");
    let lexicon = Lexicon::parse_custom_dictionary("Ombra  ˈɒmbrə").unwrap();
    let reading = Reading { lexicon: Some(Arc::new(lexicon)), ..Reading::default() };
    assert!(spoken(&IPA.segments("the Ombra", &reading).unwrap()).starts_with("ðɪ ˈɒmbɹə"));
    assert!(spoken(&IPA.segments("the [[ˈɛnd]]", &reading).unwrap()).starts_with("ðɪ ˈɛnd"));
}

#[test]
fn a_request_comes_before_the_server_and_the_server_before_the_dictionary() {
    let server = Lexicon::parse_custom_dictionary("tomato  təmˈɑːtəʊ,potato  pˈɒt").unwrap();
    let request = Lexicon::parse_custom_dictionary("potato  pˈɑːt").unwrap();
    let frontend = voices::ipa(400).with_lexicon(Arc::new(server));
    let reading = Reading { lexicon: Some(Arc::new(request)), ..Reading::default() };
    let segments = frontend.segments("tomato potato house", &reading).unwrap();
    assert_eq!(spoken(&segments), "təmˈɑːtəʊ pˈɑːt hˈaʊs.");
    let segments = frontend.segments("tomato potato", &Reading::default()).unwrap();
    assert_eq!(spoken(&segments), "təmˈɑːtəʊ pˈɒt.");
}

#[test]
fn what_the_voice_lacks_in_an_entry_is_reported() {
    let lexicon = Lexicon::parse_custom_dictionary("Brr  ʙʙ,Xo  ǁoː").unwrap();
    let reading = Reading { lexicon: Some(Arc::new(lexicon)), ..Reading::default() };
    let segments = IPA.segments("Brr and Xo.", &reading).unwrap();
    let spoken = spoken(&segments);
    let told = |c: char| segments.iter().any(|s| s.unmapped.contains(&c));
    assert!(told('ǁ') || spoken.contains('k'), "{spoken} {segments:?}");
    assert!(told('ʙ') || spoken.contains('b'), "{spoken} {segments:?}");
}

#[test]
fn a_voice_of_characters_takes_aliases_and_refuses_phonemes() {
    let aliases = Lexicon::parse_custom_dictionary("Qorvex  \"core vex\",C++  \"see plus plus\"").unwrap();
    let reading = Reading { lexicon: Some(Arc::new(aliases)), ..Reading::default() };
    let segments = CHARACTERS.segments("Is QORVEX's C++ ok?", &reading).unwrap();
    assert_eq!(segments[0].text, "Is core vex's see plus plus ok?");
    let refusal = CHARACTERS.segments("Qorvex", &self::reading()).unwrap_err().to_string();
    assert!(refusal.contains("`K8s`") && refusal.contains("reads letters"), "{refusal}");
    // A server's lexicon is for all its voices: what one cannot use is as if it were not there.
    let frontend = voices::characters(400).with_lexicon(lexicon());
    assert_eq!(frontend.unusable(&lexicon()).len(), 10);
    let segments = frontend.segments("Qorvex likes C++", &Reading::default()).unwrap();
    assert_eq!(segments[0].text, "Qorvex likes see plus plus");
}

#[test]
fn pieces_of_text_give_what_the_whole_gives() {
    let text = "Is Qorvex's K8s in New Pellon? [[ˈɛnd]] of C++. Ask NASA, or the US. The 3M note… is read by O'Brax.";
    for frontend in [&*IPA, &voices::ipa(60)] {
        let whole = frontend.segments(text, &reading()).unwrap();
        for size in [1, 2, 3, 7, 20] {
            let mut incremental = IncrementalText::new(reading(), true);
            let characters: Vec<char> = text.chars().collect();
            let mut found = Vec::new();
            for piece in characters.chunks(size) {
                found.extend(incremental.push(frontend, &piece.iter().collect::<String>()).unwrap());
            }
            found.extend(incremental.finish(frontend).unwrap().0);
            let texts: Vec<(&str, &str)> =
                found.iter().map(|(_, s)| (s.text.as_str(), s.spoken.as_str())).collect();
            let expected: Vec<(&str, &str)> =
                whole.iter().map(|s| (s.text.as_str(), s.spoken.as_str())).collect();
            assert_eq!(texts, expected, "pieces of {size}");
        }
    }
}

#[test]
fn a_short_word_with_a_long_entry_does_not_flood_the_voice() {
    let alias = format!("Q  \"{}\"", "word ".repeat(50));
    let phonemes = format!("Q  {}", "ˈɔː".repeat(60));
    for (entry, words) in [(&alias, 250), (&phonemes, 240)] {
        let reading = Reading {
            lexicon: Some(Arc::new(Lexicon::parse_custom_dictionary(entry).unwrap())),
            ..Reading::default()
        };
        let most = MAX_LEXICON_SPEECH_BYTES / words;
        assert!(IPA.segments(&"Q ".repeat(100), &reading).is_ok());
        let began = std::time::Instant::now();
        let flood = "Q ".repeat(2 * most);
        let refused = IPA.segments(&flood, &reading).unwrap_err().to_string();
        assert!(refused.contains("more than 1048576 bytes"), "{refused}");
        let mut incremental = IncrementalText::new(reading.clone(), true);
        let refused = flood.as_bytes().chunks(1000).find_map(|piece| {
            let piece = std::str::from_utf8(piece).unwrap();
            incremental.push(&IPA, &piece.replace("Q Q Q", "Q Q Q.\n")).err()
        });
        assert!(refused.unwrap().to_string().contains("more than 1048576 bytes"));
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}

const PLS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- names -->
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="ipa" xml:lang="en-US">
  <metadata><x xmlns="urn:x">text</x></metadata>
  <lexeme>
    <grapheme>Qorvex</grapheme><grapheme>Korvex</grapheme>
    <phoneme>ˈkɔːrvɛks</phoneme><phoneme prefer="true">ˈkoʊrvɛks</phoneme>
    <example>The Qorvex is here.</example>
  </lexeme>
  <lexeme><grapheme>W3C</grapheme><alias>World Wide Web Consortium</alias></lexeme>
  <lexeme><grapheme>SQL</grapheme><phoneme alphabet="x-arpabet">S IY1 K W AH0 L</phoneme></lexeme>
  <lexeme><grapheme>AT&amp;T</grapheme><phoneme>ˌeɪtiːənˈtiː</phoneme></lexeme>
</lexicon>"#;

#[test]
fn pls_is_read_as_its_specification_says() {
    let lexicon = Lexicon::parse_pls(PLS.as_bytes(), "names.pls").unwrap();
    assert_eq!(lexicon.len(), 5);
    let phonemes = |ipa: &str| Pronunciation::Phonemes(ipa.to_owned());
    assert_eq!(lexicon.find("Qorvex"), Some(&phonemes("kˈoʊɹvɛks")));
    assert_eq!(lexicon.find("korvex"), Some(&phonemes("kˈoʊɹvɛks")));
    assert_eq!(lexicon.find("SQL"), Some(&phonemes("sˈiːkwəl")));
    assert_eq!(lexicon.find("W3C"), Some(&Pronunciation::Alias("World Wide Web Consortium".to_owned())));
    let reading = Reading { lexicon: Some(Arc::new(lexicon)), ..Reading::default() };
    let segments = IPA.segments("AT&T and W3C.", &reading).unwrap();
    assert_eq!(segments[0].text, "AT&T and World Wide Web Consortium.");
}

#[test]
fn duplicates_are_noticed() {
    let lexicon = Lexicon::parse_tsv("a b\tˈeɪ\na b\tˈɪ\n".as_bytes(), "x.tsv").unwrap();
    assert_eq!(lexicon.find("A B"), Some(&Pronunciation::Phonemes("ˈɪ".to_owned())));
    assert_eq!(lexicon.notices(), ["x.tsv:2: \"a b\" again, this entry is taken"]);
    let twice = PLS.replace("SQL", "W3C");
    let lexicon = Lexicon::parse_pls(twice.as_bytes(), "x.pls").unwrap();
    assert!(matches!(lexicon.find("W3C"), Some(Pronunciation::Alias(_))));
    assert_eq!(lexicon.notices(), ["x.pls:11: \"W3C\" again, the first entry is taken"]);
}

#[test]
fn a_lexicon_that_is_wrong_is_refused_with_its_place_and_the_rule() {
    let tsv = |text: &str| Lexicon::parse_tsv(text.as_bytes(), "n.tsv").unwrap_err().to_string();
    let custom = |text: &str| Lexicon::parse_custom_dictionary(text).unwrap_err().to_string();
    let pls = |from: &str, to: &str| {
        Lexicon::parse_pls(PLS.replace(from, to).as_bytes(), "n.pls").unwrap_err().to_string()
    };
    let check = |refusal: String, parts: &[&str]| {
        assert!(parts.iter().all(|part| refusal.contains(part)), "{refusal:?} lacks one of {parts:?}");
    };
    check(tsv("a\tæ\nword"), &["n.tsv:2:5:", "\"word\"", "tab"]);
    check(tsv("word\tHH AH"), &["n.tsv:1:6:", "\"HH AH\"", "'H'", "IPA"]);
    check(tsv("word\tHH XX\tx-arpabet"), &["n.tsv:1:6:", "phone 2", "\"XX\""]);
    check(tsv("word\tx\tsampa"), &["n.tsv:1:8:", "\"sampa\"", "x-arpabet"]);
    check(tsv("word\tx\tipa\tmore"), &["n.tsv:1:12:", "\"more\"", "fourth"]);
    check(tsv("\tx"), &["n.tsv:1:1:", "letter"]);
    check(tsv("!!!\tx"), &["n.tsv:1:1:", "\"!!!\""]);
    check(tsv("w\t"), &["n.tsv:1:3:", "sound"]);
    check(tsv("w\t...\talias"), &["n.tsv:1:3:", "alias"]);
    let long = "x".repeat(MAX_GRAPHEME_CHARACTERS + 1);
    check(tsv(&format!("{long}\tx")), &["n.tsv:1:1:", "65", "64"]);
    check(tsv(&format!("w\t{}", "ə".repeat(257))), &["n.tsv:1:3:", "257", "256"]);
    check(custom("a  æ, b c"), &["custom_dictionary:1:7:", "\"b c\"", "two spaces"]);
    check(custom("a  æ,b  K"), &["custom_dictionary:1:9:", "\"K\"", "IPA"]);
    check(pls("alphabet=\"ipa\"", "alphabet=\"x-sampa\""), &["n.pls:3:1:", "x-sampa", "ipa"]);
    check(pls("alphabet=\"ipa\"", ""), &["n.pls:3:1:", "no alphabet"]);
    check(pls("<alias>", "<alias><b/>"), &["n.pls:10:", "<b>"]);
    check(pls("<grapheme>W3C</grapheme>", ""), &["n.pls:10:3:", "no <grapheme>"]);
    check(pls("<phoneme>ˌeɪtiːənˈtiː</phoneme>", ""), &["n.pls:12:3:", "neither"]);
    check(pls("<example>", "<exemple>").replace("mis", ""), &["n.pls:8:"]);
    check(pls("ˌeɪtiːənˈtiː", "EH"), &["n.pls:12:", "\"EH\"", "'E'"]);
    check(pls("<!-- names -->", "<!DOCTYPE lexicon [<!ENTITY a \"b\">]>"), &["n.pls:2:", "DTD"]);
    check(pls("</lexicon>", ""), &["n.pls:12:80:", "never closed"]);
    check(pls("<lexicon ", "<speak ").replace("speak", ""), &["n.pls:"]);
    let bytes = |bytes: &[u8]| Lexicon::parse_tsv(bytes, "n.tsv").unwrap_err().to_string();
    check(bytes(b"a\t\xc3\xa6\nb\xff\t"), &["n.tsv:2:2:", "0xff", "UTF-8"]);
    check(bytes(&vec![b'\n'; MAX_LEXICON_BYTES + 1]), &["n.tsv", "limit"]);
    let many: String = (0..=MAX_ENTRIES).map(|n| format!("w{n}\tə\n")).collect();
    check(tsv(&many), &["n.tsv:100001:1:", "100000"]);
}

#[test]
fn a_file_is_read_by_its_name_or_its_first_byte() {
    let directory = tempfile::tempdir().unwrap();
    let check = |name: &str, text: &str, entries: usize| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert_eq!(Lexicon::load(&path).unwrap().len(), entries, "{name}");
    };
    check("a.tsv", ENTRIES, 12);
    check("a.pls", PLS, 5);
    check("b", PLS, 5);
    check("c.lexicon", &format!("\u{feff}\n{}", PLS.split_once('\n').unwrap().1), 5);
    check("d", ENTRIES, 12);
    check("e.txt", "", 0);
    assert!(Lexicon::load(&directory.path().join("none.tsv")).is_err());
}

#[test]
fn a_deep_document_and_a_flood_of_words_take_linear_time() {
    let began = std::time::Instant::now();
    let deep = format!("<lexicon alphabet=\"ipa\">{}", "<lexeme>".repeat(500_000));
    assert!(Lexicon::parse_pls(deep.as_bytes(), "n").is_err());
    let deep = format!(
        "<lexicon alphabet=\"ipa\"><metadata>{}{}</metadata></lexicon>",
        "<a>".repeat(100_000),
        "</a>".repeat(100_000)
    );
    let _ = Lexicon::parse_pls(deep.as_bytes(), "n");
    let phrase = vec!["a"; 32].join(" ");
    let lexicon = Lexicon::parse_custom_dictionary(&format!("{phrase}  ə")).unwrap();
    let reading = Reading { lexicon: Some(Arc::new(lexicon)), ..Reading::default() };
    let flood = "a b ".repeat(50_000);
    assert!(CHARACTERS.check_reading(&reading).is_err());
    IPA.segments(&flood, &reading).unwrap();
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

/// Knuth's MMIX generator.
fn random(state: &mut u64, limit: usize) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize % limit.max(1)
}

#[test]
fn damaged_lexicons_are_refused_or_read_and_never_break_the_reader() {
    let custom = "Qorvex  ˈkɔːrvɛks,C++  \"see plus\",SQL  {@S}{@IY1}".as_bytes();
    let seeds: [&[u8]; 3] = [ENTRIES.as_bytes(), PLS.as_bytes(), custom];
    let pieces: [&[u8]; 12] = [
        b"\t",
        b"\n",
        b"<",
        b"</",
        b"&",
        b"\xcc\x81",
        b"\xee\x80\x80",
        "ˈ".as_bytes(),
        b"\0",
        b"{@",
        b"  ",
        b"\"",
    ];
    let mut state = 7;
    for round in 0..3000 {
        let mut bytes = seeds[round % seeds.len()].to_vec();
        for _ in 0..=random(&mut state, 6) {
            let at = random(&mut state, bytes.len() + 1);
            match random(&mut state, 4) {
                0 => bytes.truncate(at),
                1 => bytes
                    .splice(at..at, pieces[random(&mut state, pieces.len())].iter().copied())
                    .for_each(drop),
                2 if at < bytes.len() => bytes[at] = random(&mut state, 256) as u8,
                _ => {
                    let from = random(&mut state, bytes.len() + 1).min(at);
                    bytes.drain(from..at).for_each(drop);
                }
            }
        }
        let read = [Lexicon::parse_tsv(&bytes, "n"), Lexicon::parse_pls(&bytes, "n")];
        let text = String::from_utf8_lossy(&bytes);
        for lexicon in read.into_iter().chain([Lexicon::parse_custom_dictionary(&text)]).flatten() {
            let reading = Reading { lexicon: Some(Arc::new(lexicon)), ..Reading::default() };
            let _ = IPA.segments("Is Qorvex's K8s, C++ or AT&T's SQL in New Pellon? [[ə]] US", &reading);
        }
    }
}
