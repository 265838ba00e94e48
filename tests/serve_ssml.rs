//! SSML and the ways of reading, through the server and through `say`.

mod server;

use std::process::Command;

use mezzavoce::transport::pb;
use pb::synthesize_request::Content;
use server::{Server, incremental, options, piece, request, speak, start, with};
use tonic::Code;

/// Samples of the default voice in `ms`.
fn samples(ms: u64) -> u64 {
    22_050 * ms / 1000
}

fn ssml(inner: &str) -> pb::SynthesizeRequest {
    let content = Some(Content::Ssml(format!("<speak>{inner}</speak>")));
    pb::SynthesizeRequest { content, ..request("") }
}

fn say(arguments: &[&str]) -> (Vec<u8>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_mezzavoce")).arg("say").args(arguments).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{messages}");
    (output.stdout, messages)
}

async fn server() -> Server {
    start(options()).await.serving().await
}

#[tokio::test(flavor = "multi_thread")]
async fn ssml_is_spoken_with_its_breaks_and_marks() {
    let server = server().await;
    let mut client = server.client().await;
    let inner = "<break time='200ms'/><mark name='a'/>Zero one. <break time='1s'/><mark name='b'/>Two <mark name='m'/>\
                 three.<mark name='c'/><break time='500ms'/><mark name='d'/><emphasis/>";
    let mut wanted = ssml(inner);
    let config = wanted.config.as_mut().unwrap();
    (config.lead_silence_ms, config.tail_silence_ms, config.sentence_silence_ms) = (100, 50, Some(0));
    let spoken = speak(&mut client, wanted).await.unwrap();
    assert_eq!(spoken.started.processed_text, "Zero one.\nTwo three.");
    assert_eq!(spoken.started.notices.len(), 1, "{:?}", spoken.started.notices);
    assert!(spoken.started.notices[0].contains("<emphasis>"));
    let completed = &spoken.completed;
    let [first, second] = &completed.sentences[..] else { panic!("{completed:?}") };
    assert_eq!(first.first_sample, samples(300));
    assert!(spoken.audio[..2 * samples(300) as usize].iter().all(|&byte| byte == 0));
    assert_eq!(second.first_sample, first.first_sample + first.samples + samples(1000));
    let end = second.first_sample + second.samples;
    assert_eq!(completed.samples, end + samples(500) + samples(50));
    let marks: Vec<(&str, u64)> =
        completed.marks.iter().map(|mark| (mark.name.as_str(), mark.sample)).collect();
    let inside = marks[2].1;
    let expected = [
        ("a", first.first_sample),
        ("b", second.first_sample),
        ("m", inside),
        ("c", end),
        ("d", end + samples(500)),
    ];
    assert_eq!(marks, expected);
    assert!(
        inside > second.first_sample + second.samples / 4 && inside < end - second.samples / 4,
        "{inside}"
    );

    let text = format!("<speak>{inner}</speak>");
    let seed = ["--raw", "--seed", "7", "--ssml"];
    let (here, messages) = say(&[&[text.as_str(), "--log", "info"], &seed[..]].concat());
    for word in ["mark `a` at sample 4410", "mark `d`", "<emphasis> is not served"] {
        assert!(messages.contains(word), "no {word:?} in {messages}");
    }
    let address = server.address.strip_prefix("http://").unwrap();
    let (through, remote_messages) =
        say(&[&[text.as_str(), "--log", "info", "--server", address], &seed[..]].concat());
    assert!(here == through, "{} bytes here, {} through the server", here.len(), through.len());
    assert_eq!(here.len() as u64, 2 * (completed.samples - samples(150)));
    assert!(remote_messages.contains("mark `a` at sample 4410"), "{remote_messages}");
    assert!(remote_messages.contains("<emphasis> is not served"), "{remote_messages}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_says_how_its_text_is_read() {
    let server = server().await;
    let mut client = server.client().await;
    let given = speak(&mut client, request("Is [[zˈɪp]] here?")).await.unwrap();
    let dictionary =
        |text: &str, dictionary: &str| with(text, |config| config.custom_dictionary = dictionary.to_owned());
    let found = speak(&mut client, dictionary("Is Qorvex here?", "Qorvex  zˈɪp")).await.unwrap();
    assert!(found.audio == given.audio, "the dictionary was not used");
    assert_eq!(found.started.notices, [""; 0]);
    let plain = speak(&mut client, request("Is Qorvex here?")).await.unwrap();
    assert!(plain.audio != given.audio, "the dictionary outlived its request");
    let twice = speak(&mut client, dictionary("Hi.", "a  ə,a  eɪ")).await.unwrap();
    assert_eq!(twice.started.notices.len(), 1);

    let (sender, responses) = incremental(&mut client, dictionary("", "Qorvex  zˈɪp").config.unwrap()).await;
    sender.send(piece("Is Qorvex here?")).await.unwrap();
    drop(sender);
    assert!(server::collect(responses).await.unwrap().audio == given.audio);

    let date = |order: i32| {
        let mut wanted = ssml("<say-as interpret-as='date'>3/4/2025</say-as>");
        wanted.config.as_mut().unwrap().date_order = order;
        wanted
    };
    for (order, expected) in [(0, "March fourth"), (1, "March fourth"), (2, "April third")] {
        let spoken = speak(&mut client, date(order)).await.unwrap().started.processed_text;
        assert!(spoken.starts_with(expected), "{order}: {spoken}");
    }
    let (spoken, _) = say(&[
        "<speak><say-as interpret-as='date'>3/4/2025</say-as></speak>",
        "--raw",
        "--seed",
        "7",
        "--ssml",
        "--date-order",
        "day-first",
    ]);
    assert!(spoken == speak(&mut client, date(2)).await.unwrap().audio);

    let markup = |markup: i32| with("Hi 🎉 there", |config| config.markup = markup);
    assert_eq!(speak(&mut client, markup(0)).await.unwrap().completed.unmapped, "");
    assert_eq!(speak(&mut client, markup(1)).await.unwrap().completed.unmapped, "");
    assert_eq!(speak(&mut client, markup(3)).await.unwrap().completed.unmapped, "🎉");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_refused_before_it_is_spoken() {
    let server = server().await;
    let mut client = server.client().await;
    let mut check = async |request: pb::SynthesizeRequest, words: &[&str]| {
        let refusal = speak(&mut client, request).await.map(|_| ()).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
        for word in words {
            assert!(refusal.message().contains(word), "no {word:?} in {refusal}");
        }
    };
    check(ssml("a\n<break time='11s'/>"), &["line 2, column 1", "`11s`", "10000 ms"]).await;
    check(ssml("<p>"), &["line 1, column 11"]).await;
    check(ssml(&"a".repeat(10_000)), &["10015", "10000"]).await;
    check(ssml(""), &["nothing to speak"]).await;
    let mut fast = ssml("<prosody rate='150%'>Hi</prosody>");
    fast.config.as_mut().unwrap().speaking_rate = 2.0;
    check(fast, &["1.5", "makes 3", "0.5 to 2"]).await;
    check(with("a", |c| c.markup = 9), &["markup 9", "KEEP = 3"]).await;
    check(with("a", |c| c.date_order = -1), &["date_order -1", "DAY_FIRST = 2"]).await;
    check(with("a", |c| c.custom_dictionary = "nonsense".into()), &["custom_dictionary:1:1"]).await;
    let big = format!("a  {}", "ə".repeat(40_000));
    check(with("a", |c| c.custom_dictionary = big), &["custom_dictionary", "65536"]).await;
    let stock = with("a", |c| {
        c.voice = "stock".into();
        c.speaker = Some(pb::synthesis_config::Speaker::SpeakerEmbedding(pb::SpeakerEmbedding {
            values: vec![1.0; 16],
        }));
        c.custom_dictionary = "Qorvex  zˈɪp".into();
    });
    check(stock, &["Qorvex", "letters"]).await;
    let changes: [fn(&mut pb::SynthesisConfig); 3] =
        [|c| c.markup = 1, |c| c.date_order = 1, |c| c.custom_dictionary = "a  ə".into()];
    for (change, name) in changes.into_iter().zip(["markup", "date_order", "custom_dictionary"]) {
        let phonemes = Some(Content::Phonemes("həlˈoʊ".to_owned()));
        check(pb::SynthesizeRequest { content: phonemes, ..with("", change) }, &[name, "phonemes"]).await;
    }
}
