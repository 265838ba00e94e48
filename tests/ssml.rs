//! What becomes of SSML: segments with their pauses, delivery and marks, or an error with its place.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use mezzavoce::error::Error;
use mezzavoce::text::{DateOrder, Frontend, MAX_BREAK_MS, MAX_TEXT_BYTES, Markup, Passage, Pause, Reading};

mod voices;

static IPA: LazyLock<Frontend> = LazyLock::new(|| voices::ipa(400));
static CHARACTERS: LazyLock<Frontend> = LazyLock::new(|| voices::characters(120));

const SILENT: f32 = f32::NEG_INFINITY;

fn passage(inner: &str) -> Passage {
    read(&format!("<speak>{inner}</speak>"))
}

fn read(ssml: &str) -> Passage {
    IPA.ssml(ssml, &Reading::default()).unwrap_or_else(|error| panic!("{ssml:?}: {error}"))
}

fn texts(passage: &Passage) -> Vec<&str> {
    passage.segments.iter().map(|segment| segment.text.as_str()).collect()
}

/// The document becomes exactly these texts and pauses, and nothing in it is noticed or lacking.
fn check(inner: &str, expected: &[(&str, Pause)]) {
    let passage = passage(inner);
    let found: Vec<(&str, Pause)> =
        passage.segments.iter().map(|segment| (segment.text.as_str(), segment.pause)).collect();
    assert_eq!(found, expected, "{inner}");
    assert_eq!(passage.notices, [""; 0], "{inner}");
    assert!(passage.segments.iter().all(|segment| segment.unmapped.is_empty()), "{inner}");
}

#[test]
fn structure_and_breaks_become_pauses() {
    use Pause::{Break, Clause, Ellipsis, None, Paragraph, Sentence};
    check("Hello world.", &[("Hello world.", Sentence)]);
    check("\n  One\n  two. \n Three\n", &[("One two.", Sentence), ("Three", Sentence)]);
    check("<s>One</s><s>Two!</s>", &[("One.", Sentence), ("Two!", Sentence)]);
    check(
        "<p><s>One</s> <s>Two…</s></p>\n<p>Three</p>",
        &[("One.", Sentence), ("Two.", Paragraph), ("Three.", Paragraph)],
    );
    check("<s>Wait…</s><s>No.</s>", &[("Wait.", Ellipsis), ("No.", Sentence)]);
    check("Intro <p>Text</p> outro", &[("Intro.", Paragraph), ("Text.", Paragraph), ("outro", Sentence)]);
    check("Wait <break time='300ms'/> now.", &[("Wait", Break(300)), ("now.", Sentence)]);
    check("Wait. <break time='1.5s'/>Now.", &[("Wait.", Break(1500)), ("Now.", Sentence)]);
    check("<p>One</p><break time='.1s'/><p>Two</p>", &[("One.", Break(100)), ("Two.", Paragraph)]);
    check(
        "A cat<break/> or<break strength='x-strong'/> so",
        &[("A cat", Break(250)), ("or", Break(1000)), ("so", Sentence)],
    );
    check("One <break time='+2s'/><break time='500ms'/> two", &[("One", Break(2500)), ("two", Sentence)]);
    check(
        "go<break strength='none'/> on. <break strength='none'/>End.",
        &[("go on.", Break(0)), ("End.", Sentence)],
    );
    check("<break strength='weak' time='20ms'/>Hi<break time='2s'/>", &[("Hi", Break(2000))]);
    // A block without speech leaves the break as it was.
    check("One <break time='1s'/>. . two", &[("One", Break(1000)), ("two", Sentence)]);
    check(
        "Fast, <prosody rate='fast'>very fast</prosody>, slow",
        &[("Fast,", Clause), ("very fast,", Clause), ("slow", Sentence)],
    );
    check(
        "a <prosody rate='fast'>b</prosody>. Then c",
        &[("a", None), ("b.", Sentence), ("Then c", Sentence)],
    );
    assert_eq!(passage("<break time='1s'/><break time='500ms'/>Hi").lead_ms, 1500);
    assert_eq!(passage("<p><break time='1s'/>.<break time='2s'/>Hi</p>").lead_ms, 3000);
}

#[test]
fn a_sentence_runs_across_elements() {
    let found = passage(
        "I <phoneme alphabet='ipa' ph='lˈʌv'>loathe</phoneme> you, <sub alias='World Wide Web'>WWW</sub>.",
    );
    assert_eq!(found.segments.len(), 1);
    assert_eq!(found.segments[0].spoken, "aɪ lˈʌv juː, wˈɜːld wˈaɪd wˈɛb.");
    let arpabet = passage("<phoneme alphabet='x-arpabet' ph='HH AH0 L OW1'>x</phoneme>!");
    assert_eq!(arpabet.segments[0].spoken, "həlˈoʊ!");
    check(
        "A &lt;b&gt; &amp; &#99; <![CDATA[<d>]]><!-- not this -->",
        &[("A less than b greater than and c less than d greater than", Pause::Sentence)],
    );
}

#[test]
fn say_as_becomes_words() {
    let say_as = |kind: &str, text: &str| format!("<say-as interpret-as={kind}>{text}</say-as>");
    let check = |kind: &str, text: &str, expected: &str| {
        let found = passage(&say_as(kind, text));
        assert_eq!((texts(&found), found.notices.len()), (vec![expected], 0), "{kind} {text}");
    };
    check("'cardinal'", "1,234", "one thousand two hundred thirty four");
    check("'cardinal'", " 007 ", "seven");
    check("'cardinal'", "-3.05", "minus three point zero five");
    check("'ordinal'", "22", "twenty second");
    check("'ordinal'", "3rd", "third");
    check("'characters'", "xQ9-b", "X Q nine dash B");
    check("'characters'", "WWW", "W W W");
    check("'telephone'", "+1 (555) 010-9999", "plus one, five five five, zero one zero, nine nine nine nine");
    check("'telephone'", "0800 1 ext. 42", "zero eight zero zero, one, extension four two");
    check("'date' format='mdy'", "3/4/2025", "March fourth, twenty twenty five");
    check("'date' format='dmy'", "3/4/2025", "April third, twenty twenty five");
    check("'date'", "3/4/2025", "March fourth, twenty twenty five");
    check("'date'", "2024-12-31", "December thirty first, twenty twenty four");
    check("'date' format='yyyymmdd'", "20050109", "January ninth, two thousand five");
    check("'date' format='md'", "2.29", "February twenty ninth");
    check("'date' format='my'", "sept 1999", "September nineteen ninety nine");
    check("'date' format='y'", "05", "two thousand five");
    check("'time' format='hms24'", "22:15:01", "twenty two fifteen and one second");
    check("'time'", "2:05 p.m.", "two oh five P M");
    check("'time' format='hms12'", "10am", "ten A M");

    let reading = Reading { date_order: DateOrder::DayFirst, ..Reading::default() };
    let day_first = IPA.ssml(&format!("<speak>{}</speak>", say_as("'date'", "3/4/2025")), &reading).unwrap();
    assert_eq!(texts(&day_first), ["April third, twenty twenty five"]);
    for (kind, text) in [
        ("'cardinal'", "many"),
        ("'cardinal'", "1,23"),
        ("'ordinal'", "22xx"),
        ("'date'", "13/13/2025"),
        ("'date' format='mdy'", "3/4"),
        ("'date'", "soon"),
        ("'date'", "2/30/2025"),
        ("'time'", "15 pm"),
        ("'time'", "25:00"),
        ("'time'", "10:7"),
        ("'telephone'", "call me"),
        ("'unit'", "5 km"),
    ] {
        let found = passage(&say_as(kind, text));
        assert_eq!(found.notices.len(), 1, "{kind} {text}: {:?}", texts(&found));
        assert!(!found.segments.is_empty());
    }
}

#[test]
fn prosody_sets_rate_and_gain_of_what_is_inside() {
    let check = |inner: &str, expected: &[(&str, f32, f32)]| {
        let passage = passage(inner);
        let found: Vec<(&str, f32, f32)> = passage
            .segments
            .iter()
            .map(|segment| (segment.text.as_str(), segment.prosody.rate, segment.prosody.gain_db))
            .collect();
        assert_eq!(found, expected, "{inner}");
    };
    check(
        "I am <prosody rate='fast'>very quick</prosody> now",
        &[("I am", 1.0, 0.0), ("very quick", 1.5, 0.0), ("now", 1.0, 0.0)],
    );
    check(
        "<prosody volume='+6dB' rate='80%'>a b <prosody volume='-10dB'>c d</prosody></prosody>",
        &[("a b", 0.8, 6.0), ("c d", 0.8, -4.0)],
    );
    check(
        "<prosody rate='x-slow'>so <prosody rate='+50%'>go</prosody> on</prosody>",
        &[("so", 0.5, 0.0), ("go", 0.75, 0.0), ("on", 0.5, 0.0)],
    );
    check(
        "<prosody volume='silent'>hush <prosody volume='+9dB'>still</prosody></prosody>",
        &[("hush still", 1.0, SILENT)],
    );
    check(
        "<prosody volume='silent'>hush <prosody volume='default'>loud</prosody></prosody>",
        &[("hush", 1.0, SILENT), ("loud", 1.0, 0.0)],
    );
    check("<prosody rate='1.2'>One. Two.</prosody>", &[("One.", 1.2, 0.0), ("Two.", 1.2, 0.0)]);
    check("a <prosody rate='medium' volume='medium'>b</prosody> c", &[("a b c", 1.0, 0.0)]);
}

#[test]
fn marks_lie_where_they_stand() {
    let found =
        passage("<mark name='a'/>One two three. <mark name='b'/>Four <mark name='c'/>five.<mark name='d'/>");
    let of = |index: usize| -> Vec<(&str, usize)> {
        found.segments[index].marks.iter().map(|mark| (mark.name.as_str(), mark.symbol)).collect()
    };
    assert_eq!(of(0), [("a", 0)]);
    let [b, c] = of(1)[..] else { panic!("{:?}", found.segments[1]) };
    assert_eq!(b, ("b", 0));
    let ids = found.segments[1].ids.len();
    assert!(c.0 == "c" && c.1 > ids / 4 && c.1 < 3 * ids / 4, "{c:?} of {ids}");
    assert_eq!(found.end_marks, ["d"]);

    // Before a break is behind the speech, not behind the break.
    let found = passage(
        "Hi<mark name='x'/><break time='2s'/><mark name='y'/>there<mark name='z'/><break time='1s'/>",
    );
    let place = |index: usize| {
        let segment = &found.segments[index];
        segment.marks.iter().map(|mark| (mark.name.as_str(), mark.symbol)).collect::<Vec<_>>()
    };
    assert_eq!(place(0), [("x", found.segments[0].ids.len())]);
    assert_eq!(place(1), [("y", 0), ("z", found.segments[1].ids.len())]);

    // They change nothing of what is said.
    let marked = passage(
        "It is<mark name='1'/> approx<mark name='2'/>. five, <mark name='3'/>at 10<mark name='4'/>:30.",
    );
    let plain = passage("It is approx. five, at 10:30.");
    assert_eq!(texts(&marked), texts(&plain));
    let names: Vec<&str> =
        marked.segments.iter().flat_map(|segment| &segment.marks).map(|mark| mark.name.as_str()).collect();
    assert_eq!((names, marked.end_marks), (vec!["1", "2", "3"], vec!["4".to_owned()]));

    // Those in text that is not spoken are not lost.
    let swallowed =
        passage("[docs](https://example<mark name='in'/>.org) and [[həl<mark name='ph'/>ˈoʊ]] end");
    let marks = swallowed.segments.iter().flat_map(|segment| &segment.marks).map(|mark| &mark.name);
    let mut all: Vec<&String> = marks.chain(&swallowed.end_marks).collect();
    all.sort();
    assert_eq!(all, ["in", "ph"]);
}

#[test]
fn what_is_not_served_is_read_and_told() {
    let found = passage(
        "<voice name='x'>One</voice> <emphasis level='strong'>two</emphasis>\n<prosody pitch='+2st' contour='x' \
         rate='medium'>three</prosody> <emphasis>four</emphasis> <lang xml:lang='fr'>five</lang> \
         <audio src='x.wav'><desc>hidden</desc>six</audio> <amazon:effect name='whispered'>seven</amazon:effect>\
         <metadata><x>hidden <break/></x></metadata>.",
    );
    assert_eq!(texts(&found), ["One two three four five six seven."]);
    for (notice, expected) in found.notices.iter().zip([
        "line 1, column 8: <voice>",
        "line 1, column 36: <emphasis>",
        "line 2, column 1: the attribute pitch of <prosody>",
        "line 2, column 1: the attribute contour of <prosody>",
        "xml:lang `fr`",
        "<lang>",
        "<audio>",
        "<desc>",
        "<amazon:effect>",
    ]) {
        assert!(notice.contains(expected), "{notice} is not about {expected}");
    }
    assert_eq!(found.notices.len(), 10, "{:?}", found.notices);

    let characters =
        CHARACTERS.ssml("<speak>a <phoneme ph='tuː'>word</phoneme></speak>", &Reading::default()).unwrap();
    assert!(texts(&characters)[0].contains("word"));
    assert!(characters.notices[0].contains("<phoneme>"), "{:?}", characters.notices);

    let many: String = (0..1000).map(|number| format!("<e{number}>a </e{number}>")).collect();
    assert_eq!(passage(&many).notices.len(), 33);
}

#[test]
fn documents_come_in_many_dresses() {
    for ssml in [
        "<?xml version='1.0' encoding='UTF-8'?>\n<!-- a -->\n<speak version='1.1' xmlns='http://www.w3.org/2001/10/synthesis' \
         xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:schemaLocation='x y' xml:lang='en-US'>Hi<break/>you</speak>\n",
        "\u{feff}<speak>Hi<break/>you</speak><!-- end -->",
        "<ssml:speak xmlns:ssml='http://www.w3.org/2001/10/synthesis'>Hi<ssml:break/>you</ssml:speak>",
        "<speak\r\n>\r\nHi<break\t/>you</speak\n>",
    ] {
        let found = read(ssml);
        assert_eq!(texts(&found), ["Hi", "you"], "{ssml}");
        assert_eq!((found.segments[0].pause, found.notices.len()), (Pause::Break(250), 0), "{ssml}");
    }
    let reading = Reading { markup: Markup::Keep, ..Reading::default() };
    let kept = IPA.ssml("<speak>Hi 🎉</speak>", &reading).unwrap();
    assert_eq!(kept.segments[0].unmapped, ['🎉']);
}

/// `ssml` is refused with a message that holds all of `words`.
fn refused(ssml: &str, words: &[&str]) {
    match IPA.ssml(ssml, &Reading::default()) {
        Err(Error::InvalidRequest(message)) => {
            for word in words {
                assert!(message.contains(word), "{ssml:.80}: no {word:?} in {message}");
            }
            assert!(message.len() < 1200, "{} bytes", message.len());
        }
        other => panic!("{ssml:.80}: {other:?}"),
    }
}

#[test]
fn malformed_xml_is_refused_with_its_place() {
    refused("", &["line 1, column 1", "no element"]);
    refused("hello", &["line 1, column 1", "outside of the root"]);
    refused("<p>x</p>", &["line 1, column 1", "<p>", "must be <speak>"]);
    refused("<speak>\n é < 2</speak>", &["line 2, column 4", "name"]);
    refused("<speak>\n<p>a</speak>", &["line 2, column 5", "p"]);
    refused("<speak>\n<p>a", &["line 2, column 1", "<p> is not closed"]);
    refused("<speak></p></speak>", &["line 1, column 8"]);
    refused("<speak>a &nbsp; b</speak>", &["line 1, column 10", "&nbsp;"]);
    refused("<speak>a &#0; &#xd800;</speak>", &["line 1, column 10", "&#0;"]);
    refused("<speak>a &b</speak>", &["line 1"]);
    refused("<speak>a</speak>b", &["line 1, column 17", "outside of the root"]);
    refused("<speak>a</speak><speak>b</speak>", &["line 1, column 17", "second root"]);
    refused("<speak>\u{1}a</speak>", &["line 1, column 8", "not allowed"]);
    refused("<speak><p a='1' a='2'>x</p></speak>", &["line 1, column 8", "a is given twice"]);
    refused("<speak><p a=1>x</p></speak>", &["line 1, column 8"]);
    refused("<speak><p a='1'b='2'>x</p></speak>", &["line 1, column 8", "space"]);
    refused("<speak><p a='<'>x</p></speak>", &["line 1, column 8", "&lt;"]);
    refused("<speak><p a='&x;'>x</p></speak>", &["line 1, column 8", "a:"]);
    refused("<speak><p a='x>y</p></speak>", &["line 1, column 8"]);
    refused("<speak>]]></speak>", &["]]>"]);
    refused("<speak><!-- a -- b --></speak>", &["line 1, column"]);
    refused("<speak>a<?xml version='1.0'?></speak>", &["line 1, column 9", "declaration"]);
    refused("<speak/>", &["nothing to speak"]);
    refused("<speak><break time='1s'/></speak>", &["nothing to speak"]);
}

#[test]
fn values_that_are_not_served_are_refused_with_value_and_rule() {
    let refused = |inner: &str, words: &[&str]| refused(&format!("<speak>\n{inner}</speak>"), words);
    refused("<break time='11s'/>", &["line 2, column 1", "`11s`", "10000 ms"]);
    refused("<break time='-1s'/>", &["line 2, column 1", "`-1s`"]);
    refused("<break time='1000'/>", &["`1000`", "s or ms"]);
    refused("<break time='1e3ms'/>", &["`1e3ms`"]);
    refused("<break time='NaNs'/>", &["`NaNs`"]);
    refused("<break strength='huge'/>", &["`huge`", "x-strong"]);
    refused("a<break time='9s'/>!<break time='9s'/>b", &["18000 ms", &MAX_BREAK_MS.to_string()]);
    refused("<break time='9s'/><break time='9s'/>b", &["18000 ms"]);
    refused("ab <prosody rate='500%'>a</prosody>", &["line 2, column 4", "`500%`", "0.25 to 4"]);
    refused("<prosody rate='-90%'>a</prosody>", &["`-90%`", "0.25 to 4"]);
    refused("<prosody rate='quick'>a</prosody>", &["`quick`", "x-slow"]);
    refused("<prosody rate='+1'>a</prosody>", &["`+1`"]);
    refused("<prosody volume='50'>a</prosody>", &["`50`", "x-loud", "dB"]);
    refused("<prosody volume='+20dB'>a</prosody>", &["`+20dB`", "-96 to 16"]);
    refused("<prosody volume='-60dB'><prosody volume='-60dB'>a</prosody></prosody>", &["-120 dB"]);
    refused("<phoneme alphabet='x-sampa' ph='a'>a</phoneme>", &["`x-sampa`", "ipa, x-arpabet"]);
    refused("<phoneme alphabet='x-arpabet' ph='HH XX'>a</phoneme>", &["phone 2", "XX"]);
    refused("<phoneme>a</phoneme>", &["ph is missing"]);
    refused("<phoneme ph='. .'>a</phoneme>", &["no phonemes"]);
    refused("<phoneme ph='a]] b'>a</phoneme>", &["no phonemes"]);
    refused("<sub>a</sub>", &["alias is missing"]);
    refused("<sub alias=' '>a</sub>", &["alias is empty"]);
    refused("<sub alias='x'>a<break/></sub>", &["<break> inside <sub>"]);
    refused("<say-as interpret-as='date'>a<mark name='m'/></say-as>", &["<mark> inside <say-as>"]);
    refused("<say-as>1</say-as>", &["interpret-as is missing"]);
    refused("<say-as interpret-as='date' format='q'>1</say-as>", &["`q`", "yyyymmdd"]);
    refused("<say-as interpret-as='time' format='hms'>1</say-as>", &["`hms`", "hms24"]);
    refused("<mark/>", &["name is missing"]);
    refused("<mark name=''/>", &["0 characters", "256"]);
    refused(&format!("<mark name='{}'/>", "m".repeat(257)), &["257 characters", "256"]);
    refused(&format!("<break time='{}'/>", "9".repeat(5000)), &["(5000 characters)"]);
}

#[test]
fn bombs_are_refused_at_once() {
    let began = Instant::now();
    let entities: String = (1..10)
        .map(|level| format!("<!ENTITY l{level} \"{}\">", format!("&l{};", level - 1).repeat(10)))
        .collect();
    refused(&format!("<!DOCTYPE speak [<!ENTITY l0 \"ha\">{entities}]><speak>&l9;</speak>"), &["DTD"]);
    refused("<!DOCTYPE speak SYSTEM 'file:///etc/passwd'><speak/>", &["DTD"]);
    let deep = format!("<speak>{}", "<p>".repeat(100_000));
    refused(&deep, &["33 elements deep", "32"]);
    assert!(
        IPA.ssml(&format!("<speak>{}a{}</speak>", "<b>".repeat(31), "</b>".repeat(31)), &Reading::default())
            .is_ok()
    );
    refused(&format!("<speak>{}</speak>", "a".repeat(MAX_TEXT_BYTES)), &[&MAX_TEXT_BYTES.to_string()]);
    let attributes: String = (0..90_000).map(|number| format!(" a{number}=''")).collect();
    refused(&format!("<speak{attributes}>a</speak>"), &["32 attributes"]);
    refused(&format!("<speak>{}</speak>", "<mark name='m'/>".repeat(65_001)), &["65000 marks"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn time_is_linear_in_the_length() {
    let element = "a<mark name='m'/> b<break time='1ms'/> <prosody rate='fast'>c</prosody><e x='1'/> &amp; ";
    let time = |count: usize| {
        let ssml = format!("<speak>{}</speak>", element.repeat(count));
        (0..3)
            .map(|_| {
                let began = Instant::now();
                IPA.ssml(&ssml, &Reading::default()).unwrap();
                began.elapsed()
            })
            .min()
            .unwrap()
    };
    let (short, long) = (time(1_000), time(8_000));
    assert!(long < short * 24, "{short:?} for 1,000, {long:?} for 8,000");
}

/// A generator of repeatable numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap()
    }
}

#[test]
fn mutated_documents_are_read_or_refused() {
    const SEED: &str = "<speak version='1.1'><p><s>I <phoneme alphabet='ipa' ph='lˈʌv'>love</phoneme> <sub alias='x y'>z</sub>.</s></p>\
        <break time='1.5s'/><prosody rate='80%' volume='-6dB'>On <say-as interpret-as='date' format='mdy'>3/4/2025</say-as> \
        at <say-as interpret-as='time'>2:05pm</say-as>, <mark name='m'/>call <say-as interpret-as='telephone'>+1 555</say-as>\
        </prosody> &amp; <![CDATA[<x>]]> [[həlˈoʊ]] <emphasis>é🎉</emphasis></speak>";
    const PIECES: [&str; 24] = [
        "<",
        ">",
        "/",
        "'",
        "\"",
        "&",
        ";",
        "]]>",
        "<![CDATA[",
        "<!--",
        "-->",
        "<p>",
        "</p>",
        "<break/>",
        "\u{f0000}",
        "\u{e000}",
        "[[",
        "]]",
        "é",
        "%",
        "-",
        "<say-as interpret-as='characters'>",
        "9",
        "\u{0}",
    ];
    let mut random = Random(11);
    let mut read = 0;
    for _ in 0..1_000 {
        let mut text: Vec<char> = SEED.chars().collect();
        for _ in 0..=random.below(4) {
            let at = random.below(text.len());
            match random.below(3) {
                0 => drop(text.drain(at..(at + random.below(9)).min(text.len()))),
                1 => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].chars())),
                _ => text.swap(at, (at + 1) % 40),
            }
        }
        let text: String = text.into_iter().collect();
        for frontend in [&*IPA, &*CHARACTERS] {
            match frontend.ssml(&text, &Reading::default()) {
                Ok(passage) => {
                    read += 1;
                    assert!(!passage.segments.is_empty(), "{text}");
                }
                Err(Error::InvalidRequest(message)) => assert!(!message.is_empty()),
                Err(other) => panic!("{text}: {other}"),
            }
        }
    }
    assert!(read > 100, "only {read} could be read");
}
