//! Words that are spelled alike and spoken by what they mean in their sentence.
//!
//! Of the first 117 sentences the rules read 113 as expected when they were first run, of the last 80, which were
//! written after the rules, 71; what was wrong then was mended. `misaki-rs`'s port of spaCy's statistical tagger
//! took 5 ms a sentence and tagged five of the first 117 such that another reading would follow (`They read every
//! evening`, `The shops close at six`).

use mezzavoce::text::{Frontend, Reading};

mod voices;

/// A sentence, the word of it that is meant, and its phonemes.
const CASES: &[(&str, &str, &str)] = &[
    ("I will read it tonight.", "read", "ɹˈiːd"),
    ("She has read that book twice.", "read", "ɹˈɛd"),
    ("He read the letter aloud and left.", "read", "ɹˈɛd"),
    ("Yesterday I read the news on the train.", "read", "ɹˈɛd"),
    ("They read every evening.", "read", "ɹˈiːd"),
    ("Did he read the manual?", "read", "ɹˈiːd"),
    ("The report was read in silence.", "read", "ɹˈɛd"),
    ("Please read the sign.", "read", "ɹˈiːd"),
    ("Mary read the note and sighed.", "read", "ɹˈɛd"),
    ("I like to read and write.", "read", "ɹˈiːd"),
    ("He will lead the team.", "lead", "lˈiːd"),
    ("They found a lead pipe under the floor.", "lead", "lˈɛd"),
    ("The paint contains lead and zinc.", "lead", "lˈɛd"),
    ("She took the lead in the race.", "lead", "lˈiːd"),
    ("Lead is a heavy metal.", "lead", "lˈɛd"),
    ("A pound of lead fell on the floor.", "lead", "lˈɛd"),
    ("All roads lead to Rome.", "lead", "lˈiːd"),
    ("We live in a small town.", "live", "lˈɪv"),
    ("The band played a live show.", "live", "lˈaɪv"),
    ("The stream is live now.", "live", "lˈaɪv"),
    ("She wants to live abroad.", "live", "lˈɪv"),
    ("They went live at noon.", "live", "lˈaɪv"),
    ("He lives near the station.", "lives", "lˈɪvz"),
    ("The storm cost many lives.", "lives", "lˈaɪvz"),
    ("They spent their lives at sea.", "lives", "lˈaɪvz"),
    ("The cold wind blew all night.", "wind", "wˈɪnd"),
    ("You must wind the clock.", "wind", "wˈaɪnd"),
    ("The wind tears at the flags.", "wind", "wˈɪnd"),
    ("The wind tears at the flags.", "tears", "tˈɛɹz"),
    ("A tear ran down her cheek.", "tear", "tˈɪɹ"),
    ("Do not tear the page.", "tear", "tˈɛɹ"),
    ("There was a tear in the fabric.", "tear", "tˈɛɹ"),
    ("She burst into tears.", "tears", "tˈɪɹz"),
    ("Please close the door.", "close", "klˈoʊz"),
    ("We live close to the sea.", "close", "klˈoʊs"),
    ("He is a close friend of mine.", "close", "klˈoʊs"),
    ("The shops close at six.", "close", "klˈoʊz"),
    ("At the close of the day we rested.", "close", "klˈoʊz"),
    ("She came close and whispered.", "close", "klˈoʊs"),
    ("Is there any use in trying?", "use", "jˈuːs"),
    ("You can use my pen.", "use", "jˈuːz"),
    ("The use of force was banned.", "use", "jˈuːs"),
    ("They use a new tool.", "use", "jˈuːz"),
    ("She broke the world record.", "record", "ɹˈɛkɚd"),
    ("We will record the meeting.", "record", "ɹᵻkˈɔːɹd"),
    ("Record your answer here.", "record", "ɹᵻkˈɔːɹd"),
    ("Farmers produce milk.", "produce", "pɹədˈuːs"),
    ("Fresh produce is sold here.", "produce", "pɹˈoʊdˌuːs"),
    ("I would like to present the results.", "present", "pɹᵻzˈɛnt"),
    ("He gave her a present.", "present", "pɹˈɛzənt"),
    ("Nobody was present at the time.", "present", "pɹˈɛzənt"),
    ("I object to that plan.", "object", "əbdʒˈɛkt"),
    ("A strange object fell from the sky.", "object", "ˈɑːbdʒəkt"),
    ("The project is late.", "project", "pɹˈɑːdʒˌɛkt"),
    ("They project a loss this year.", "project", "pɹədʒˈɛkt"),
    ("Her conduct was perfect.", "conduct", "kˈɑːndˌʌkt"),
    ("She will conduct the orchestra.", "conduct", "kəndˈʌkt"),
    ("He signed the contract on Monday.", "contract", "kˈɑːntɹˌækt"),
    ("Metals contract when they cool.", "contract", "kəntɹˈækt"),
    ("The content of the letter is secret.", "content", "kˈɑːntɛnt"),
    ("She was content with the result.", "content", "kəntˈɛnt"),
    ("Camels cross the desert.", "desert", "dˈɛzɚt"),
    ("The soldiers may desert their post.", "desert", "dᵻzˈɜːt"),
    ("I refuse to answer.", "refuse", "ɹᵻfjˈuːz"),
    ("The refuse was collected on Friday.", "refuse", "ɹˈɛfjˌuːs"),
    ("Wait a minute.", "minute", "mˈɪnət"),
    ("There is a minute difference between them.", "minute", "maɪnˈuːt"),
    ("He plays the bass guitar.", "bass", "bˈeɪs"),
    ("He caught a bass in the lake.", "bass", "bˈæs"),
    ("The actors bow at the end.", "bow", "bˈaʊ"),
    ("She tied a bow in her hair.", "bow", "bˈoʊ"),
    ("He took a bow after the show.", "bow", "bˈaʊ"),
    ("A dove sat on the roof.", "dove", "dˈʌv"),
    ("He dove into the pool.", "dove", "dˈoʊv"),
    ("The wound healed slowly.", "wound", "wˈuːnd"),
    ("He wound the rope around the post.", "wound", "wˈaʊnd"),
    ("Does she know?", "does", "dˈʌz"),
    ("The house is empty.", "house", "hˈaʊs"),
    ("The museum will house the statue.", "house", "hˈaʊz"),
    ("That is no excuse.", "excuse", "ɛkskjˈuːs"),
    ("Please excuse me.", "excuse", "ɛkskjˈuːz"),
    ("The abuse must stop.", "abuse", "ɐbjˈuːs"),
    ("They abuse their power.", "abuse", "ɐbjˈuːz"),
    ("We sleep in separate rooms.", "separate", "sˈɛpɚɹət"),
    ("Try to separate the eggs.", "separate", "sˈɛpɚɹˌeɪt"),
    ("The estimate was too low.", "estimate", "ˈɛstɪmət"),
    ("Experts estimate the cost at ten million.", "estimate", "ˈɛstɪmˌeɪt"),
    ("She is a graduate of Yale.", "graduate", "ɡɹˈædʒuːət"),
    ("They graduate in May.", "graduate", "ɡɹˈædʒuːˌeɪt"),
    ("A moderate wind is expected.", "moderate", "mˈɑːdɚɹət"),
    ("You need a permit to fish.", "permit", "pˈɜːmɪt"),
    ("The rules do not permit it.", "permit", "pɚmˈɪt"),
    ("The rebel was caught.", "rebel", "ɹˈɛbəl"),
    ("They rebel against the king.", "rebel", "ɹᵻbˈɛl"),
    ("They may reject the offer.", "reject", "ɹᵻdʒˈɛkt"),
    ("The subject is closed.", "subject", "sˈʌbdʒɛkt"),
    ("Do not subject them to that.", "subject", "səbdʒˈɛkt"),
    ("I suspect that he lied.", "suspect", "səspˈɛkt"),
    ("The suspect ran away.", "suspect", "sˈʌspˌɛkt"),
    ("Prices increase every year.", "increase", "ɪŋkɹˈiːs"),
    ("We saw an increase in prices.", "increase", "ˈɪŋkɹˌiːs"),
    ("Insert the card here.", "insert", "ɪnsˈɜːt"),
    ("The password is invalid.", "invalid", "ɪnvˈælɪd"),
    ("Polish the table, please.", "Polish", "pˈɑːlɪʃ"),
    ("She speaks Polish at home.", "Polish", "pˈoʊlɪʃ"),
    ("The show will resume shortly.", "resume", "ɹᵻzˈuːm"),
    ("Send us your resume by email.", "resume", "ɹˈɛzəmˌeɪ"),
    ("They moved to let him record the song.", "record", "ɹᵻkˈɔːɹd"),
    ("He made a deliberate mistake.", "deliberate", "dᵻlˈɪbɚɹət"),
    ("The jury will deliberate tomorrow.", "deliberate", "dᵻlˈɪbɚɹˌeɪt"),
    ("The export of grain was stopped.", "export", "ˈɛkspˌɔːɹt"),
    ("Few countries export oil.", "export", "ɛkspˈɔːɹt"),
    ("The road winds through the hills.", "winds", "wˈaɪndz"),
    ("Strong winds hit the coast.", "winds", "wˈɪndz"),
    ("The company records its calls.", "records", "ɹᵻkˈɔːɹdz"),
    ("Medical records are private.", "records", "ɹˈɛkɚdz"),
    ("A machine that records sound is useful.", "records", "ɹᵻkˈɔːɹdz"),
    ("Her lead over the others grew.", "lead", "lˈiːd"),
    ("Pipes of lead were common in Rome.", "lead", "lˈɛd"),
    ("Cats have nine lives.", "lives", "lˈaɪvz"),
    ("My sister lives with us.", "lives", "lˈɪvz"),
    ("I read your letter last week.", "read", "ɹˈɛd"),
    ("Can you read this?", "read", "ɹˈiːd"),
    ("The wind is strong today.", "wind", "wˈɪnd"),
    ("It is too close to call.", "close", "klˈoʊs"),
    ("You must not refuse.", "refuse", "ɹᵻfjˈuːz"),
    ("We had a record year.", "record", "ɹˈɛkɚd"),
    ("He wants to record and sell it.", "record", "ɹᵻkˈɔːɹd"),
    ("The uses of iron are many.", "uses", "jˈuːsᵻz"),
    ("She uses a cane.", "uses", "jˈuːzᵻz"),
    ("Ducks sometimes use the pond.", "use", "jˈuːz"),
    ("The workers protest against the law.", "protest", "pɹətˈɛst"),
    ("The protest was loud.", "protest", "pɹˈoʊtˌɛst"),
    ("He was shot with a bow and arrow.", "bow", "bˈoʊ"),
    ("The oldest houses are empty.", "houses", "hˈaʊsᵻz"),
    ("It houses a famous library.", "houses", "hˈaʊzᵻz"),
    ("An elaborate plan was made.", "elaborate", "ᵻlˈæbɚɹət"),
    (
        "The committee rejected the first draft because its authors refused to separate fact from opinion.",
        "separate",
        "sˈɛpɚɹˌeɪt",
    ),
    ("When the lights went out, nobody could read the signs.", "read", "ɹˈiːd"),
    ("I have never read anything like it.", "read", "ɹˈɛd"),
    ("The students who read most learn fastest.", "read", "ɹˈiːd"),
    ("After lunch she sat down and read for an hour.", "read", "ɹˈɛd"),
    ("Have you read the terms?", "read", "ɹˈɛd"),
    ("You should have read the terms.", "read", "ɹˈɛd"),
    ("The leaflet must be read before use.", "read", "ɹˈɛd"),
    ("The leaflet must be read before use.", "use", "jˈuːs"),
    ("Old houses often have lead in the water pipes.", "lead", "lˈɛd"),
    ("The detectives followed a new lead.", "lead", "lˈiːd"),
    ("Smoking can lead to illness.", "lead", "lˈiːd"),
    ("This road does not lead anywhere.", "lead", "lˈiːd"),
    ("Two of my cousins live in Canada.", "live", "lˈɪv"),
    ("We watched the game live on television.", "live", "lˈaɪv"),
    ("Where do the swans live in winter?", "live", "lˈɪv"),
    ("The wires are live, so keep away.", "live", "lˈaɪv"),
    ("A doctor saves lives every day.", "lives", "lˈaɪvz"),
    ("The woman who lives upstairs is kind.", "lives", "lˈɪvz"),
    ("A gust of wind took his hat.", "wind", "wˈɪnd"),
    ("Wind the bandage around your wrist.", "wind", "wˈaɪnd"),
    ("The streets wind up the hill.", "wind", "wˈaɪnd"),
    ("Her eyes filled with tears.", "tears", "tˈɪɹz"),
    ("He tears the letter into pieces.", "tears", "tˈɛɹz"),
    ("Be careful not to tear it.", "tear", "tˈɛɹ"),
    ("Keep your friends close.", "close", "klˈoʊs"),
    ("They are very close friends.", "close", "klˈoʊs"),
    ("The factory may close next year.", "close", "klˈoʊz"),
    ("Close your eyes and count to ten.", "close", "klˈoʊz"),
    ("The two results are close.", "close", "klˈoʊs"),
    ("It is of no use to anyone.", "use", "jˈuːs"),
    ("Most people use only one.", "use", "jˈuːz"),
    ("The tools that we use are simple.", "use", "jˈuːz"),
    ("His latest record sold well.", "record", "ɹˈɛkɚd"),
    ("The nurses record every dose.", "record", "ɹᵻkˈɔːɹd"),
    ("Temperatures reached record levels.", "record", "ɹˈɛkɚd"),
    ("The factory will produce a thousand cars.", "produce", "pɹədˈuːs"),
    ("They sell produce at the market.", "produce", "pɹˈoʊdˌuːs"),
    ("The mayor will present the prize.", "present", "pɹᵻzˈɛnt"),
    ("At present we have no plans.", "present", "pɹˈɛzənt"),
    ("The present owner bought it in May.", "present", "pɹˈɛzənt"),
    ("If the neighbours object, we will stop.", "object", "əbdʒˈɛkt"),
    ("What is that object on the table?", "object", "ˈɑːbdʒəkt"),
    ("Critics of the bridge project were silent.", "project", "pɹˈɑːdʒˌɛkt"),
    ("He could not project his voice.", "project", "pɹədʒˈɛkt"),
    ("The conduct of the war was cruel.", "conduct", "kˈɑːndˌʌkt"),
    ("Copper wires conduct electricity.", "conduct", "kəndˈʌkt"),
    ("Muscles contract and relax.", "contract", "kəntɹˈækt"),
    ("Under the contract he must leave.", "contract", "kˈɑːntɹˌækt"),
    ("The web content is updated daily.", "content", "kˈɑːntɛnt"),
    ("They seemed quite content.", "content", "kəntˈɛnt"),
    ("Few plants grow in desert soil.", "desert", "dˈɛzɚt"),
    ("He would never desert his friends.", "desert", "dᵻzˈɜːt"),
    ("They never refuse a challenge.", "refuse", "ɹᵻfjˈuːz"),
    ("Trucks carry the refuse away.", "refuse", "ɹˈɛfjˌuːs"),
    ("The house can seat forty.", "house", "hˈaʊs"),
    ("These buildings house the archive.", "house", "hˈaʊz"),
    ("There is an excuse for everything.", "excuse", "ɛkskjˈuːs"),
    ("The judge will excuse the witness.", "excuse", "ɛkskjˈuːz"),
    ("We need to increase our efforts.", "increase", "ɪŋkɹˈiːs"),
    ("A sharp increase was seen.", "increase", "ˈɪŋkɹˌiːs"),
    ("The police suspect foul play.", "suspect", "səspˈɛkt"),
    ("A suspect was arrested.", "suspect", "sˈʌspˌɛkt"),
    ("The general would not permit a retreat.", "permit", "pɚmˈɪt"),
    ("Parking without a permit is illegal.", "permit", "pˈɜːmɪt"),
    ("The rebel army crossed the river.", "rebel", "ɹˈɛbəl"),
    ("Teenagers sometimes rebel.", "rebel", "ɹᵻbˈɛl"),
    ("They perfect their craft over years.", "perfect", "pɚfˈɛkt"),
    ("Nobody is perfect.", "perfect", "pˈɜːfəkt"),
    ("They deliberate for hours.", "deliberate", "dᵻlˈɪbɚɹˌeɪt"),
    ("The insult was deliberate.", "deliberate", "dᵻlˈɪbɚɹət"),
    ("You can estimate the height.", "estimate", "ˈɛstɪmˌeɪt"),
    ("That is only an estimate.", "estimate", "ˈɛstɪmət"),
    ("My brother plays bass in a band.", "bass", "bˈeɪs"),
    ("The sailors stood at the bow of the ship.", "bow", "bˈaʊ"),
    ("He drew the bow and let the arrow fly.", "bow", "bˈoʊ"),
    ("The nurse cleaned the wound.", "wound", "wˈuːnd"),
    ("She wound up the old clock.", "wound", "wˈaʊnd"),
    ("We found many insects and a minute beetle.", "minute", "maɪnˈuːt"),
    ("They import tea and coffee.", "import", "ɪmpˈɔːɹt"),
];

fn phonemes(frontend: &Frontend, sentence: &str) -> Vec<String> {
    let segments = frontend.segments(sentence, &Reading::default()).unwrap();
    let words = segments.iter().flat_map(|segment| segment.spoken.split(' '));
    words.map(|ipa| ipa.trim_end_matches([',', '.', '!', '?']).to_owned()).collect()
}

#[test]
fn heteronyms_are_spoken_by_what_they_mean() {
    let frontend = voices::ipa(400);
    let mut wrong = Vec::new();
    for (sentence, word, expected) in CASES {
        let found = phonemes(&frontend, sentence);
        if !found.iter().any(|ipa| ipa == expected) {
            wrong.push(format!("{sentence:?}: {word} is not {expected} in {found:?}"));
        }
    }
    println!("heteronyms: {} of {} as expected", CASES.len() - wrong.len(), CASES.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_in_any_order_are_read() {
    let frontend = voices::ipa(400);
    let words: Vec<&str> = CASES.iter().flat_map(|(sentence, ..)| sentence.split(' ')).collect();
    let mut state = 3u64;
    for length in (1..=12).cycle().take(4000) {
        let text: Vec<&str> = (0..length)
            .map(|_| {
                // Knuth's MMIX generator.
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                words[(state >> 33) as usize % words.len()]
            })
            .collect();
        frontend.segments(&text.join(" "), &Reading::default()).unwrap();
    }
    for conjunction in ["and", "or", "and then", "but never", "not"] {
        frontend.segments(&format!("{conjunction} record"), &Reading::default()).unwrap();
    }
}
