//! What the text front-end does with what people type.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use mezzavoce::error::Error;
use mezzavoce::text::spm::CharModel;
use mezzavoce::text::{DateOrder, Frontend, MAX_TEXT_BYTES, MAX_UNMAPPED, Markup, Pause, Reading, Segment};

mod voices;

static IPA: LazyLock<Frontend> = LazyLock::new(|| voices::ipa(400));
static CHARACTERS: LazyLock<Frontend> = LazyLock::new(|| voices::characters(120));

fn texts(segments: &[Segment]) -> Vec<&str> {
    segments.iter().map(|segment| segment.text.as_str()).collect()
}

fn segments(text: &str) -> Vec<Segment> {
    IPA.segments(text, &Reading::default()).unwrap()
}

/// `text` becomes exactly these pieces, and no character is lacking.
fn check(text: &str, expected: &[&str]) {
    let found = segments(text);
    assert_eq!(texts(&found), expected, "{text:?}");
    for segment in found {
        assert!(segment.unmapped.is_empty(), "{text:?} lacks {:?}", segment.unmapped);
    }
}

#[test]
fn text_is_read_as_a_person_would() {
    for (text, expected) in [
        ("Room 42, code 7081.", &["Room forty two, code seven thousand eighty one."] as &[&str]),
        (
            "It is 70.3 outside, -10 tonight, 25.50 due.",
            &["It is seventy point three outside, minus ten tonight, twenty five point five zero due."],
        ),
        ("3,497 seats", &["three thousand four hundred ninety seven seats"]),
        ("1,2,3", &["one, two, three"]),
        ("No. I will not.", &["No.", "I will not."]),
        ("No. 5 is next.", &["number five is next."]),
        (
            "Dr. A. B. Stone paid 3.14 at example.com. Done.",
            &["doctor A. B. Stone paid three point one four at example dot com.", "Done."],
        ),
        ("Milk\nEggs\n\nBread", &["Milk", "Eggs", "Bread"]),
        ("- Milk\r\n* Eggs\n1. Bread", &["Milk", "Eggs", "one.", "Bread"]),
        ("Well… maybe...", &["Well.", "maybe."]),
        ("“Hi” 1\u{202f}000\u{a0}km — it’s…", &["Hi one thousand kilometers, it's."]),
        ("**Bold** 🎉 [docs](https://example.org) #done", &["Bold docs done"]),
        ("run start_now", &["run start now"]),
        ("the 1st, 22nd, 3rd and 12th", &["the first, twenty second, third and twelfth"]),
        (
            "$25.50, $1, $5 million, $3M, 7%",
            &[
                "twenty five dollars and fifty cents, one dollar, five million dollars, three million dollars, \
                 seven percent",
            ],
        ),
        ("R&D @ 9 + 1 = 10", &["R and D at nine plus one equals ten"]),
        ("in 1984 and the 1990s", &["in nineteen eighty four and the nineteen nineties"]),
        ("B2B in 5km, agent 007", &["B two B in five kilometers, agent zero zero seven"]),
        (
            "Mr. and Mrs. Lee vs. St. Paul, e.g. here.",
            &["mister and missus Lee versus saint Paul, for example here."],
        ),
        ("We left at 5 p.m. It rained.", &["We left at five P M.", "It rained."]),
        ("The U.S. Army came.", &["The U S Army came."]),
        ("\"Go!\" he said. (It was late.)", &["Go! he said.", "It was late."]),
        ("Wait (please) here", &["Wait, please, here"]),
        (
            "pages 5-10, call 555-1234-99",
            &["pages five to ten, call five five five one two three four nine nine"],
        ),
        (
            "1234567890123456",
            &["one two three four five six seven eight nine zero one two three four five six"],
        ),
        ("at 10:30, 9:05 and 8:00", &["at ten thirty, nine oh five and eight o'clock"]),
        ("٣ ½ x²", &["three and a half x squared"]),
        ("Hello. *** Bye.", &["Hello.", "Bye."]),
    ] {
        check(text, expected);
    }
}

#[test]
fn digits_of_other_forms_keep_their_value() {
    for (text, expected) in [
        ("10⁹ 2⁵ 10⁻⁹", &["ten to the ninth two to the fifth ten to the minus ninth"] as &[&str]),
        ("a⁻¹, 10¹², 7⁰", &["a to the minus first, ten to the twelfth, seven to the zeroth"]),
        ("xⁿ, 5 km², 2 m³, 3²", &["x to the n, five square kilometers, two cubic meters, three squared"]),
        ("(a+b)² note¹ and notes²", &["a plus b, squared note one and notes two"]),
        ("the 1ˢᵗ and 2ⁿᵈ", &["the first and second"]),
        ("Na⁺ and Ca²⁺", &["Na plus and Ca two plus"]),
        ("2⅓ cups, ⅓ cup, 5½, ¾", &["two and a third cups, one third cup, five and a half, three quarters"]),
        ("①②③ ⑳ ❶ ⓫ ⑴ ⒈", &["one two three twenty one eleven one one"]),
        ("H₂O and CO₂.", &["H two O and CO two."]),
        (
            "1，000 and １２３，４５６",
            &["one thousand and one hundred twenty three thousand four hundred fifty six"],
        ),
        ("№5, №\u{a0}7", &["number five, number seven"]),
        ("𝟏𝟎 at ５：３０", &["ten at five thirty"]),
        ("5㎏, 3㎡, 20℃", &["five kilograms, three square meters, twenty degrees Celsius"]),
        ("¹⁄₃ and 5⁄8 and 17⁄23", &["one third and five eighths and seventeen over twenty three"]),
        ("٣٫١٤", &["three point one four"]),
    ] {
        check(text, expected);
    }
}

#[test]
fn amounts_times_and_spans_are_read_as_such() {
    for (text, expected) in [
        ("$.50, $0.05, $.5", &["fifty cents, five cents, zero point five dollars"] as &[&str]),
        ("$-5 and -$5", &["minus five dollars and minus five dollars"]),
        ("5€, 1€, 5 €, 5¢, 1¢", &["five euros, one euro, five euros, five cents, one cent"]),
        ("25.50€", &["twenty five euros and fifty cents"]),
        ("₹5, ₩5, ₿1", &["five rupees, five won, one bitcoin"]),
        ("$5-$10", &["five dollars to ten dollars"]),
        ("$2½", &["two dollars and a half"]),
        ("00:00, 00:30, 0:05", &["midnight, zero thirty, zero oh five"]),
        ("09:05, 08:00, 14:00", &["nine oh five, eight o'clock, fourteen hundred"]),
        ("10:30:45", &["ten thirty and forty five seconds"]),
        ("10:00am, 9:00 p.m.", &["ten A M, nine P M."]),
        ("~5, ~$5, 5～6, 5~6", &["about five, about five dollars, five to six, five to six"]),
        ("A → B, A -> B", &["A to B, A to B"]),
        ("A ← B ↑", &["A left arrow B up arrow"]),
        ("1,23", &["one, twenty three"]),
        ("3/4, 1/2, 7/8 of it", &["three quarters, one half, seven eighths of it"]),
        ("1 1/2 cups", &["one and a half cups"]),
        ("24/7, 3/4/2024, 9/11", &["twenty four seven, March fourth, twenty twenty four, nine eleven"]),
        ("5µm of 7Ω", &["five micrometers of seven ohms"]),
    ] {
        check(text, expected);
    }
}

/// Every kind of word that `normalize` knows, with five examples of each at least.
#[test]
fn every_kind_of_word_is_read_as_such() {
    for (text, expected) in [
        // Dates
        (
            "2025-03-04, 2025/3/4 or 4.3.2025",
            "March fourth, twenty twenty five, March fourth, twenty twenty five or March fourth, twenty twenty five",
        ),
        (
            "13/4/2025, 2/30/2025",
            "April thirteenth, twenty twenty five, two slash thirty slash twenty twenty five",
        ),
        ("March 4, 2025 and Dec. 25", "March fourth, twenty twenty five and December twenty fifth"),
        (
            "on 4 March 2025, the 4th of July",
            "on the fourth of March, twenty twenty five, the fourth of July",
        ),
        ("the 1990s, '90s, in 1905, '05", "the nineteen nineties, nineties, in nineteen oh five, oh five"),
        ("1990–95 and 2024-25", "nineteen ninety to ninety five and twenty twenty four to twenty five"),
        ("2025-03-04T15:30Z", "March fourth, twenty twenty five at fifteen thirty U T C"),
        (
            "March 4-6, 1/1/99, 1/1/05",
            "March fourth to sixth, January first, nineteen ninety nine, January first, two thousand five",
        ),
        (
            "Mon–Fri, Tue, Nov 5 and Sat 3pm",
            "Monday to Friday, Tuesday, November fifth and Saturday three P M",
        ),
        (
            "1/1/2024–12/31/2024, 2025-03-04T14:30:00+05:30",
            "January first, twenty twenty four to December thirty first, twenty twenty four, March fourth, twenty twenty five at fourteen thirty U T C plus five thirty",
        ),
        // Times and ratios
        (
            "6:05a, 0915 hrs, 5pm EST, UTC-5",
            "six oh five A M, oh nine fifteen hours, five P M E S T, U T C minus five",
        ),
        ("at 3:05 pm, noon-1pm, 9-5pm", "at three oh five P M, noon to one P M, nine to five P M"),
        ("10:30-11:45, at 3.30 p.m. today", "ten thirty to eleven forty five, at three thirty P M today"),
        ("3:1 and 16:9", "three to one and sixteen to nine"),
        // Money
        (
            "$3.50, €1.2bn, £5m, ¥500, 5¢",
            "three dollars and fifty cents, one point two billion euros, five million pounds, five hundred yen, five cents",
        ),
        (
            "USD 20, 20 USD, US$20, C$5, CHF 5",
            "twenty dollars, twenty dollars, twenty dollars, five Canadian dollars, five Swiss francs",
        ),
        ("1 €, 2 €, $5/month, 20 EUR.", "one euro, two euros, five dollars per month, twenty euros."),
        (
            "$5.00 USD, $5-10, CA$10, €1.234,56, ₹1,00,000, 25,50 €",
            "five dollars, five to ten dollars, ten Canadian dollars, one thousand two hundred thirty four euros and fifty six cents, one hundred thousand rupees, twenty five euros and fifty cents",
        ),
        (
            "$1.5M–$2M, €3k, $5/mo, 2/$18",
            "one point five million dollars to two million dollars, three thousand euros, five dollars per month, two for eighteen dollars",
        ),
        // Scores, sums and powers
        ("won 21-19 and 10-0, 20-20 vision", "won twenty one nineteen and ten zero, twenty twenty vision"),
        ("12−5=7, 9-4=5", "twelve minus five equals seven, nine minus four equals five"),
        ("x - y = z, 3x − 4 = 2", "x minus y equals z, three x minus four equals two"),
        (
            "5 * 6, 2 x 3, 5x faster, 80%-90%",
            "five times six, two by three, five times faster, eighty percent to ninety percent",
        ),
        (
            "x^2, 2^10, 10^-3, e^x, 10^6−1",
            "x squared, two to the tenth, ten to the minus third, e to the x, ten to the sixth minus one",
        ),
        ("Δt, α-particles, 2π, ∀ x", "delta t, alpha particles, two pi, for all x"),
        ("A- student, blood group O-, I-", "A minus student, blood group O minus, I"),
        // Units
        (
            "1-3/4 cups, 5/8\" bolt, 12\" pipe, 5' tall, 2 sq ft, 3 fl oz",
            "one and three quarters cups, five eighths inches bolt, twelve inches pipe, five feet tall, two square feet, three fluid ounces",
        ),
        (
            "12h 30m 15s, N95s, 60 fps, 500 mcg",
            "twelve hours thirty minutes fifteen seconds, N ninety five s, sixty frames per second, five hundred micrograms",
        ),
        (
            "40°42'46\"N, 74.5°W",
            "forty degrees forty two minutes forty six seconds north, seventy four point five degrees west",
        ),
        (
            "1 000 000 or 1'000'000, 28.3M km, 10M users",
            "one million or one million, twenty eight point three million kilometers, ten million users",
        ),
        (
            "1 kg, 5 kg, 1km, 10 GB, 60 mph",
            "one kilogram, five kilograms, one kilometer, ten gigabytes, sixty miles per hour",
        ),
        (
            "5 m/s, 5 mg/l, 12 m², 1 m³, 1500 m",
            "five meters per second, five milligrams per liter, twelve square meters, one cubic meter, one thousand five hundred meters",
        ),
        (
            "72°F, -5°C, 1°, 300 K",
            "seventy two degrees Fahrenheit, minus five degrees Celsius, one degree, three hundred K",
        ),
        ("5'10\", 6'1\" and 5' 10\"", "five feet ten inches, six feet one inch and five feet ten inches"),
        (
            "1e-5, 6.02e23, 0x1F, 2 x 4, 2x4",
            "one times ten to the minus fifth, six point zero two times ten to the twenty third, hex one F, two by four, two by four",
        ),
        (
            "1.000.000, 1.000,50, 12,34,567",
            "one million, one thousand point five zero, one million two hundred thirty four thousand five hundred sixty seven",
        ),
        // Telephone numbers
        (
            "555-1234; 555.123.4567; (555) 123-4567",
            "five five five, one two three four; five five five, one two three, four five six seven; five five five, one two three, four five six seven",
        ),
        (
            "+1 (555) 123-4567 or 1-800-555-1234",
            "plus one, five five five, one two three, four five six seven or one, eight hundred, five five five, one two three four",
        ),
        (
            "+44 20 7946 0958 and 1-800-FLOWERS!",
            "plus four four, two zero, seven nine four six, zero nine five eight and one, eight hundred, FLOWERS!",
        ),
        (
            "+44 (0)20 7946 0958, 020 7946 0958",
            "plus four four, zero, two zero, seven nine four six, zero nine five eight, zero two zero, seven nine four six, zero nine five eight",
        ),
        (
            "card 4111 1111 1111 1111, call 911",
            "card four one one one, one one one one, one one one one, one one one one, call nine one one",
        ),
        // Addresses
        (
            "123 N. Main St. Apt #4, MN 55101",
            "one hundred twenty three north Main street Apt number four, MN five five one zero one",
        ),
        ("https://example.org/a_b?c=1", "example dot org slash a underscore b question mark c equals one"),
        ("joe.bloggs@mail.co.uk", "joe dot bloggs at mail dot co dot U K"),
        (
            "/usr/local/bin, C:\\Temp\\x.txt",
            "slash U S R slash local slash bin, C colon backslash Temp backslash x dot txt",
        ),
        ("file_name.rs, www.x.io", "file name dot R S, W W W dot x dot I O"),
        (
            "v1.2.3, v2, 1.2.3, 192.168.0.1",
            "version one point two point three, version two, one point two point three, one hundred ninety two dot one hundred sixty eight dot zero dot one",
        ),
        ("fe80::1", "F E eight zero colon colon one"),
        // Numerals
        ("Ⅷ, Ⅰ, ⅳ, Henry Ⅷ", "eight, one, four, Henry the eighth"),
        ("World War II, Louis XIV, Henry VIII's", "World War two, Louis the fourteenth, Henry the eighth's"),
        (
            "Chapter IV, Act I, Part X, Super Bowl LVIII",
            "Chapter four, Act one, Part ten, Super Bowl fifty eight",
        ),
        ("I saw MIX, DID, CD, MD and CIVIC", "I saw MIX, DID, CD, MD and CIVIC"),
        ("Elizabeth I. MCMXCIV, an IV drip", "Elizabeth the first. nineteen ninety four, an I V drip"),
        // Words without a rule
        (
            "24/7, 50/50, w/o, AT&T, C++, C#",
            "twenty four seven, fifty fifty, without, A T and T, C plus plus, C sharp",
        ),
        ("NASA, FBI, USB-C, CD-ROM, PhD, iPhone, H2O", "NASA, FBI, USB C, CD ROM, P H D, i Phone, H two O"),
        ("Q3, A4, 3D, 4K, 1080p, #1", "Q three, A four, three D, four K, ten eighty P, number one"),
        ("St. Mary lives on Main St. today", "saint Mary lives on Main street today"),
        (
            "on Elm Dr. near Dr. Lee, pp. 10-12, p. 5",
            "on Elm drive near doctor Lee, pages ten to twelve, page five",
        ),
        (
            "≠ ±2 ≥ 5 3 × 4 ∞ ©",
            "is not equal to plus or minus two at least five three times four infinity copyright",
        ),
        // Digits and letters of other forms
        ("߃ ٣ ᠓ 𝟛 ꧓ 𑁩", "three three three three three three"),
        ("Ｆｕｌｌ 𝐇𝐞𝐥𝐥𝐨 ﬁ ℌ ⓐ 🅐 🅱", "Full Hello fi H a A B"),
        // Markup
        ("<b>x</b> <a href=\"a. b\">link</a> &amp; H<sub>2</sub>O &lt;", "x link and H two O less than"),
        ("a < b, <T> and <https://x.org>", "a less than b, less than T greater than and x dot org"),
    ] {
        assert_eq!(texts(&segments(text)).join(" "), expected, "{text:?}");
    }
}

#[test]
fn the_day_comes_first_where_it_is_asked_for() {
    let reading = Reading { date_order: DateOrder::DayFirst, ..Reading::default() };
    for (text, expected) in [
        ("3/4/2025", "April third, twenty twenty five"),
        ("3-4-2025", "April third, twenty twenty five"),
        ("12/31/2025", "December thirty first, twenty twenty five"),
        ("2025-03-04", "March fourth, twenty twenty five"),
        ("1/2 of it", "one half of it"),
    ] {
        assert_eq!(texts(&IPA.segments(text, &reading).unwrap()), [expected], "{text:?}");
    }
}

#[test]
fn markup_is_stripped_spoken_or_kept() {
    for (text, stripped, spoken, kept) in [
        ("😀 hi", "hi", "grinning face hi", "😀"),
        ("👩‍👩‍👧 hi", "hi", "family woman woman girl hi", "👩👧"),
        ("hi 👍🏽", "hi", "hi thumbs up medium skin tone", "👍🏽"),
        ("hi 🇫🇷", "hi", "hi flag France", "🇫🇷"),
        ("1️⃣ hi", "one hi", "keycap one hi", "\u{20e3}"),
        ("**hi**", "hi", "asterisk asterisk hi asterisk asterisk", "*"),
        ("# hi", "hi", "hash hi", "#"),
        ("`hi`", "hi", "backtick hi backtick", "`"),
        ("```rust\nhi\n```", "hi", "backtick backtick backtick rust hi backtick backtick backtick", "``"),
    ] {
        let read = |markup| IPA.segments(text, &Reading { markup, ..Reading::default() }).unwrap();
        assert_eq!(texts(&read(Markup::Strip)).join(" "), stripped, "{text:?}");
        assert_eq!(texts(&read(Markup::Speak)).join(" "), spoken, "{text:?}");
        let reported: String = read(Markup::Keep).iter().flat_map(|s| s.unmapped.clone()).collect();
        assert_eq!(reported, kept, "{text:?}");
    }
    let link = |markup| IPA.segments("[a](b.org)", &Reading { markup, ..Reading::default() }).unwrap();
    assert_eq!(texts(&link(Markup::Strip)), ["a"]);
    assert!(texts(&link(Markup::Speak)).join(" ").contains("b dot org"));
}

#[test]
fn a_single_capital_ends_a_sentence_before_a_word_that_opens_one() {
    for (text, count) in [
        ("Plan B. Then we left.", 2),
        ("Vitamin C. It helps.", 2),
        ("J. R. Jones came.", 1),
        ("I live on Main St. The end.", 2),
        ("In the U.S. It rained.", 2),
        ("The U.S. Army came.", 1),
        ("The cat sat. Then it ran.", 2),
        ("See fig. 3 here.", 1),
        ("Class A. A new one.", 2),
    ] {
        assert_eq!(segments(text).len(), count, "{text:?}");
    }
}

#[test]
fn what_ends_a_segment_decides_the_pause() {
    for (text, expected) in [
        ("One. Two", &[Pause::Sentence, Pause::Line] as &[Pause]),
        ("Milk\nEggs\n\nBread", &[Pause::Line, Pause::Paragraph, Pause::Line]),
        ("Well… maybe...", &[Pause::Ellipsis, Pause::Ellipsis]),
        ("Hi. ***\n\n...\n\nBye.", &[Pause::Paragraph, Pause::Line]),
    ] {
        let found: Vec<Pause> = segments(text).iter().map(|segment| segment.pause).collect();
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn text_without_speech_is_refused() {
    for text in [
        "", "   ", "...!?", "***", "🎉", "\n\n", "\u{0}", "\u{200b}", "---", "[[]]", "\u{fffd}", "你好",
        "\u{301}",
    ] {
        for frontend in [&*IPA, &*CHARACTERS] {
            match frontend.segments(text, &Reading::default()) {
                Err(Error::InvalidRequest(message)) => assert!(message.contains("nothing"), "{message}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_a_voice_lacks_is_reported_beside_what_it_says() {
    let found = segments("Hello 你 there. 好. Bye.");
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].unmapped.as_slice(), found[1].unmapped.as_slice()), (&['你'][..], &['好'][..]));
    let found = CHARACTERS.segments("Ångström: Łódź — naïve Café \u{2603} ж", &Reading::default()).unwrap();
    assert_eq!(found[0].spoken, "angstrom; lodz, naive cafe.");
    assert_eq!(found[0].unmapped, ['ж']);
}

#[test]
fn what_is_lacking_is_named_once_as_it_was_written() {
    for (text, lacking) in [
        ("hello Ωμ", "Ωμ"),
        ("hello \u{2126}\u{2126}", "\u{2126}"),
        ("hello µµ", "µ"),
        ("hello Ж", "Ж"),
        ("hello ﷺﷺ", "ﷺ"),
        ("hello ⇄", "⇄"),
        ("hello 漢字漢字", "漢字"),
        ("hello [[⇄]]", "⇄"),
    ] {
        let found = segments(text);
        assert_eq!(found[0].unmapped.iter().collect::<String>(), lacking, "{text:?}");
        assert_eq!(found[0].text, "hello", "{text:?}");
    }
    let every_ideograph: String = ('\u{4e00}'..'\u{9fff}').collect();
    for frontend in [&*IPA, &*CHARACTERS] {
        let found = frontend
            .segments(&format!("hello {}{every_ideograph}", "漢".repeat(300_000)), &Reading::default())
            .unwrap();
        assert_eq!((found.len(), found[0].unmapped.len()), (1, MAX_UNMAPPED));
        assert_eq!((found[0].unmapped[0], found[0].unmapped[1]), ('漢', '\u{4e00}'));
        assert!(found[0].text == "hello", "{} bytes of text", found[0].text.len());
    }
}

#[test]
fn every_clause_of_a_long_sentence_is_spoken() {
    for frontend in [&*IPA, &*CHARACTERS] {
        let clauses = "it rained, ".repeat(40);
        let found = frontend.segments(&clauses, &Reading::default()).unwrap();
        let joined = texts(&found).join(" ");
        assert_eq!(joined.matches("rained").count(), 40);
        assert!(found.len() > 1 && found.iter().rev().skip(1).all(|s| s.pause == Pause::Clause));
        let found = frontend.segments(&"word ".repeat(200), &Reading::default()).unwrap();
        assert_eq!(texts(&found).join(" ").matches("word").count(), 200);
        assert!(found.iter().rev().skip(1).all(|s| s.pause == Pause::None));
    }
}

#[test]
fn what_has_no_space_is_split_hard() {
    let url = format!("https://example.org/{}", "path-7/x_y?q=%20&".repeat(40));
    let word = "a".repeat(900);
    for frontend in [&*IPA, &*CHARACTERS] {
        for text in [&url, &word, &"é".repeat(900), &"x".repeat(900)] {
            let found = frontend.segments(text, &Reading::default()).unwrap();
            assert!(found.len() > 1, "{text}");
        }
    }
    let found = CHARACTERS.segments(&word, &Reading::default()).unwrap();
    assert_eq!(found.iter().map(|s| s.spoken.matches('a').count()).sum::<usize>(), 900);
}

#[test]
fn inline_phonemes_override_the_dictionary() {
    let found = segments("Say [[kˈoʊɹvɛks]], then [[ ˈa ]]. Done [[unclosed");
    assert_eq!(found[0].spoken, "sˈeɪ kˈoʊɹvɛks, ðˈɛn ˈa.");
    assert_eq!(found[1].text, "Done, unclosed");
    let found = IPA.phonemes("həlˈoʊ wˈɜːld.").unwrap();
    assert_eq!(found[0].ids.first(), Some(&1));
    assert_eq!(found[0].ids.last(), Some(&2));
    assert_eq!(found[0].ids.len(), 2 + "həlˈoʊ wˈɜːld.".chars().count());
    assert!(matches!(CHARACTERS.phonemes("ˈa"), Err(Error::InvalidRequest(_))));
}

#[test]
fn phonemes_are_those_of_the_training() {
    for (text, expected) in [
        ("The apple is in the box.", "ðɪ ˈæpəl ɪz ɪnðə bˈɑːks."),
        ("I use the record; please record the use.", "aɪ jˈuːz ðə ɹˈɛkɚd; plˈiːz ɹᵻkˈɔːɹd ðə jˈuːs."),
        ("to record, a record", "tə ɹᵻkˈɔːɹd, ɐ ɹˈɛkɚd."),
        ("GPUs, the US and HTML", "dʒˌiːpˌiːjˈuːz, ðə jˌuːˈɛs ænd ˌeɪtʃtˌiːˌɛmˈɛl."),
        ("At 5 a.m. the A.I. slept", "æt fˈaɪv ˈeɪ ˈɛm ðɪ ˈeɪ ˈaɪ slˈɛpt."),
        ("She'd've said naïve Zoë.", "ʃiːdəv sˈɛd nɑːˈiːv zˈoʊ."),
        ("one hundred ninety on Monday", "wˈʌn hˈʌndɹɪd nˈaɪnti ˌɔn mˈʌndeɪ."),
        ("well-known Qorvex", "wˈɛlnˈoʊn kˈɔːɹvɛks."),
        ("Wait, what?", "wˈeɪt, wˌʌt?"),
    ] {
        assert_eq!(segments(text)[0].spoken, expected, "{text:?}");
    }
}

#[test]
fn a_front_end_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&*IPA);
}

#[test]
fn text_over_the_limit_is_refused_with_both_sizes() {
    let Err(Error::InvalidRequest(message)) =
        IPA.segments(&"a".repeat(MAX_TEXT_BYTES + 1), &Reading::default())
    else {
        panic!()
    };
    assert!(message.contains("1048577") && message.contains("1048576"), "{message}");
}

/// Four times the text takes about four times as long; eight leaves room for a busy machine.
#[test]
fn floods_take_linear_time() {
    for (name, unit) in [
        ("digits", "9"),
        ("grouped", "9,"),
        ("parentheses", "("),
        ("letters", "a"),
        ("capitals", "Xq"),
        ("marks", "e\u{301}\u{301}"),
        ("dots", "a."),
        ("links", "[a]("),
        ("open links", "]("),
        ("phonemes", "[["),
        ("closed phonemes", "[[a]]"),
        ("hyphens", "a-b-"),
        ("apostrophes", "don't"),
        ("ranges", "5-10"),
        ("spaces", " \u{a0}"),
        ("money", "$5.50"),
        ("headings", "# > "),
        ("lines", "a\n"),
        ("quotes", "\"'"),
        ("ligatures", "ﷺ"),
        ("ideographs", "漢"),
        ("superscripts", "⁹"),
        ("fractions", "½"),
        ("enclosed", "①"),
        ("slashes", "1/"),
        ("currencies", "5$-"),
        ("times", "10:30:"),
        ("tags", "<b"),
        ("comments", "<!-- "),
        ("entities", "&a"),
        ("dates", "3/4/2025 "),
        ("telephones", "555 "),
        ("numerals", "XIV "),
        ("addresses", "a.b/"),
        ("emoji", "👩\u{200d}"),
    ] {
        for frontend in [&*IPA, &*CHARACTERS] {
            let time = |count: usize| {
                let text = unit.repeat(count);
                (0..2)
                    .map(|_| {
                        let started = Instant::now();
                        let _ = frontend.segments(&text, &Reading::default());
                        started.elapsed()
                    })
                    .min()
                    .unwrap()
            };
            // A busy machine may stretch one measurement, not each of six; quadratic time is sixteen in all of them.
            let linear = (0..6).any(|_| {
                let (short, long) = (time(12_500), time(50_000));
                println!("{name}: {short:?} for 12 500, {long:?} for 50 000");
                long < 8 * short.max(Duration::from_millis(10))
            });
            assert!(linear, "{name} takes more than linear time");
        }
    }
}

#[test]
fn a_flood_of_digits_is_spoken_to_the_last() {
    let found = segments(&"9".repeat(100_000));
    assert_eq!(found.iter().map(|segment| segment.text.matches("nine").count()).sum::<usize>(), 100_000);
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn any_unicode_gives_an_answer_or_a_clear_error() {
    let pool: Vec<char> =
        "aeXz09.,-'$%#*_[]()!?\n\r\t \u{301}\u{200f}é你ж🎉…—½ﷺ\u{fffd}\u{0}\u{e000}ß\u{1100}\u{1161}ﬁ"
            .chars()
            .collect();
    let small = [voices::ipa(24), voices::characters(24)];
    let mut seed = 7;
    let mut spoken = 0;
    for round in 0..4000 {
        let length = random(&mut seed) % 120;
        let text: String = (0..length)
            .map(|_| match random(&mut seed) % 8 {
                0 => char::from_u32(u32::try_from(random(&mut seed) % 0x11_0000).unwrap())
                    .unwrap_or('\u{fffd}'),
                _ => pool[usize::try_from(random(&mut seed)).unwrap_or(0) % pool.len()],
            })
            .collect();
        for (frontend, budget) in [(&*IPA, 400), (&*CHARACTERS, 120), (&small[0], 24), (&small[1], 24)] {
            match frontend.segments(&text, &Reading::default()) {
                Err(Error::InvalidRequest(_)) => {}
                Err(other) => panic!("round {round}, {text:?}: {other}"),
                Ok(found) => {
                    spoken += 1;
                    assert!(!found.is_empty());
                    for segment in found {
                        assert!(
                            segment.ids.len() <= budget && segment.ids.len() > 1,
                            "round {round}, {text:?}"
                        );
                        assert!(segment.spoken.chars().any(char::is_alphabetic), "round {round}, {text:?}");
                    }
                }
            }
        }
    }
    assert!(spoken > 8000, "only {spoken} of 16 000 texts were spoken");
}

#[test]
fn no_letter_or_digit_is_lost_among_marks() {
    let pool: Vec<char> = "qqqxxx44 .,-'*_)[]!?\n&\"#>:/\u{2014}…“’é".chars().collect();
    let mut seed = 3;
    for _ in 0..2000 {
        let length = 1 + random(&mut seed) % 60;
        let text: String =
            (0..length).map(|_| pool[usize::try_from(random(&mut seed)).unwrap_or(0) % pool.len()]).collect();
        if !text.contains(char::is_alphanumeric) {
            continue;
        }
        for frontend in [&*IPA, &*CHARACTERS] {
            let found = frontend.segments(&text, &Reading::default()).unwrap();
            let said = texts(&found).join(" ").to_lowercase();
            // Between two numbers the letter x is "by".
            let said = said.replace("by", "x");
            // Behind a number it may be "times": `4x faster`.
            let letters = ['q', 'é', 'x'];
            for letter in letters.into_iter().filter(|letter| *letter != 'x' || !said.contains("times")) {
                assert_eq!(
                    said.matches(letter).count(),
                    text.matches(letter).count(),
                    "{text:?} as {said:?}"
                );
            }
            let fours = ["four", "fort"].iter().map(|word| said.matches(word).count()).sum::<usize>();
            assert!(fours >= usize::from(text.contains('4')), "{text:?} as {said:?}");
            let spoken: usize = found.iter().map(|segment| segment.ids.len()).sum();
            assert!(spoken >= text.matches(['q', 'x', '4']).count());
        }
    }
}

fn stored_model() -> Vec<u8> {
    std::fs::read(voices::data("speecht5_tiny/spm_char.model")).unwrap()
}

#[test]
fn the_tokenizer_agrees_with_the_reference() {
    let model = CharModel::parse(&stored_model(), "tiny").unwrap();
    let json = std::fs::read(voices::data("speecht5_tiny/tokenizer_cases.json")).unwrap();
    let cases: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let cases = cases.as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let mut ids = model.encode(case["text"].as_str().unwrap());
        ids.push(2);
        let expected: Vec<i64> = serde_json::from_value(case["ids"].clone()).unwrap();
        assert_eq!(ids, expected, "{}", case["text"]);
    }
}

#[test]
fn a_corrupt_model_is_an_error_or_still_a_tokenizer() {
    let bytes = stored_model();
    let mut refused = 0;
    let mut seed = 11;
    for _ in 0..300 {
        let mut bad = bytes.clone();
        // Most of the file is the character map: half of the blows fall on the pieces before it.
        let span = if random(&mut seed).is_multiple_of(2) { 700 } else { u64::try_from(bad.len()).unwrap() };
        for _ in 0..1 + random(&mut seed) % 8 {
            let at = usize::try_from(random(&mut seed) % span).unwrap();
            bad[at] = random(&mut seed).to_le_bytes()[0];
        }
        if random(&mut seed).is_multiple_of(4) {
            bad.truncate(usize::try_from(random(&mut seed) % span).unwrap());
        }
        match CharModel::parse(&bad, "bad") {
            Ok(model) => {
                let ids = model.encode("Ｈello, ﷺ naïve ½ “café” — 你好 ﬁ\u{0}");
                let count = i64::try_from(model.len()).unwrap();
                assert!(ids.iter().all(|id| (0..count).contains(id)));
            }
            Err(Error::InvalidVoice { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 50, "only {refused} of 300 were refused");
}

#[test]
fn a_model_of_another_type_is_refused_by_name() {
    let mut bytes = stored_model();
    let at = bytes.windows(3).position(|window| window == b"\x18\x04\x20").unwrap();
    bytes[at + 1] = 2;
    let error = CharModel::parse(&bytes, "bpe").unwrap_err().to_string();
    assert!(error.contains("model type is 2"), "{error}");
}
