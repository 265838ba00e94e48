//! The server as its clients meet it.

mod server;

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mezzavoce::error::Result;
use mezzavoce::serve::SERVICE;
use mezzavoce::transport::pb;
use pb::speech_client::SpeechClient;
use pb::synthesis_config::Speaker;
use pb::synthesize_request::Content;
use pb::synthesize_response::Event;
use server::support::root;
use server::{Client, LONG, collect, incremental, options, piece, request, speak, start, watch_for, with};
use tokio_stream::StreamExt;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;

/// A server that all tests share, on a runtime that outlives them.
async fn shared() -> Client {
    static ADDRESS: OnceLock<String> = OnceLock::new();
    let address = tokio::task::spawn_blocking(|| {
        ADDRESS.get_or_init(|| {
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                tokio::runtime::Runtime::new().unwrap().block_on(async {
                    let server = start(options()).await.serving().await;
                    sender.send(server.address.clone()).unwrap();
                    server.ended.await.unwrap().unwrap();
                });
            });
            receiver.recv().unwrap()
        })
    });
    SpeechClient::connect(address.await.unwrap().clone()).await.unwrap()
}

fn say(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_mezzavoce")).arg("say").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

const TEXTS: [&str; 8] = [
    "The kettle was on.",
    "I took two steps forward and looked back, and there was nothing on the road but dust.",
    "No.",
    "She counted the steps: one, two, three. Then she stopped.",
    "A long letter came from the north on Tuesday.",
    "Rain again.",
    "What would you have done?",
    "They sold the boat, the nets, and the small red house above the harbour.",
];
#[tokio::test(flavor = "multi_thread")]
async fn streams_the_bytes_that_say_writes() {
    let mut client = shared().await;
    let text = "One voice. Two doors, and three rooms.\n\nThen the garden.";
    let spoken = speak(&mut client, request(text)).await.unwrap();
    assert_eq!(spoken.audio, say(&[text, "--raw", "--seed", "7"]));
    assert_eq!(spoken.started.format.unwrap().sample_rate_hz, 22_050);
    assert_eq!(spoken.started.processed_text.lines().count(), 3);
    assert_eq!(spoken.completed.samples as usize * 2, spoken.audio.len());
    assert_eq!(spoken.completed.frames, spoken.completed.steps * 3);

    let speaker = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    std::fs::write(speaker.path(), serde_json::to_string(&vec![0.25f32; 16]).unwrap()).unwrap();
    let stock = root().join("tests/data/speecht5_tiny");
    let (stock, file) = (stock.to_str().unwrap(), speaker.path().to_str().unwrap());
    let expected = say(&["hello there", "--raw", "--voice", stock, "--speaker", file]);
    let embedding = pb::SpeakerEmbedding { values: vec![0.25; 16] };
    let ours = with("hello there", |config| {
        config.voice = "stock".to_owned();
        config.seed = None;
        config.speaker = Some(Speaker::SpeakerEmbedding(embedding));
    });
    assert_eq!(speak(&mut client, ours).await.unwrap().audio, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn say_speaks_through_a_server() {
    let server = start(options()).await.serving().await;
    let address = server.address.strip_prefix("http://").unwrap().to_owned();
    let text = "Two doors. One voice.";
    let through = |arguments: &[&str]| {
        let common = ["say", text, "--raw", "--server", &address];
        Command::new(env!("CARGO_BIN_EXE_mezzavoce")).args(common).args(arguments).output().unwrap()
    };
    assert_eq!(through(&["--voice", "default", "--speaker", "joe"]).stdout, say(&[text, "--raw"]));
    let http = format!("http://{address}/");
    let twice = ["say", text, "--raw", "--server", &http];
    let output = Command::new(env!("CARGO_BIN_EXE_mezzavoce")).args(twice).output().unwrap();
    assert_eq!(output.stdout, say(&[text, "--raw"]));

    let speaker = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    // Exact in f32: a message has no room for more.
    let values: Vec<f32> = (0..16).map(|value| value as f32 * 0.375 - 2.0).collect();
    std::fs::write(speaker.path(), serde_json::to_string(&values).unwrap()).unwrap();
    let stock = root().join("tests/data/speecht5_tiny");
    let (stock, file) = (stock.to_str().unwrap(), speaker.path().to_str().unwrap());
    let remote = through(&["--voice", "stock", "--speaker", file]);
    assert_eq!(remote.stdout, say(&[text, "--raw", "--voice", stock, "--speaker", file]));
    let nowhere = through(&["--voice", "stock", "--speaker", "/nowhere/x.npy"]);
    assert_eq!(nowhere.status.code(), Some(2));

    let refused = through(&["--voice", "nobody"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no voice is called `nobody`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_requests_at_once_equal_their_solo_runs() {
    let mut client = shared().await;
    let mut solo = Vec::new();
    for text in TEXTS {
        solo.push(speak(&mut client, request(text)).await.unwrap().audio);
    }
    let together: Vec<_> = TEXTS
        .into_iter()
        .map(|text| {
            let mut client = client.clone();
            tokio::spawn(async move { speak(&mut client, request(text)).await.unwrap().audio })
        })
        .collect();
    for ((text, solo), together) in TEXTS.iter().zip(solo).zip(together) {
        assert!(together.await.unwrap() == solo, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_served_is_refused_with_value_and_limit() {
    let mut client = shared().await;
    let mut check = async |request: pb::SynthesizeRequest, code: Code, words: &[&str]| {
        let refusal = client.synthesize(request).await.map(|_| ()).unwrap_err();
        assert_eq!(refusal.code(), code, "{words:?}: {refusal}");
        for word in words {
            assert!(refusal.message().contains(word), "no {word:?} in {refusal}");
        }
        // What is too long to be decoded, and an id that is refused, have none.
        let nameless = words.contains(&"request_id") || words.contains(&"200");
        assert_eq!(refusal.metadata().contains_key("x-request-id"), !nameless, "{refusal}");
    };
    let invalid = Code::InvalidArgument;
    check(pb::SynthesizeRequest::default(), invalid, &["neither text nor phonemes"]).await;
    check(request(""), invalid, &["nothing to speak"]).await;
    check(request("...!?"), invalid, &["nothing"]).await;
    check(request(&"a".repeat(10_001)), invalid, &["10001", "10000"]).await;
    check(request(&"a".repeat(200_000)), invalid, &["text of 10000 bytes, the limit", "200"]).await;
    check(with("a", |c| c.voice = "nobody".into()), Code::NotFound, &["nobody", "default, stock"]).await;
    let named = |name: &str| Some(Speaker::SpeakerName(name.to_owned()));
    check(with("a", |c| c.speaker = named("/etc/x.npy")), invalid, &["/etc/x.npy", "joe"]).await;
    let stock = |speaker| {
        with("a", |c| {
            c.voice = "stock".into();
            c.speaker = speaker;
        })
    };
    check(stock(None), invalid, &["stock", "16 values"]).await;
    let values = |values: Vec<f32>| Some(Speaker::SpeakerEmbedding(pb::SpeakerEmbedding { values }));
    check(stock(values(vec![])), invalid, &["0 values", "16"]).await;
    check(stock(values(vec![1.0; 17])), invalid, &["17 values", "16"]).await;
    check(stock(values([vec![1.0; 15], vec![f32::NAN]].concat())), invalid, &["NaN", "15"]).await;
    check(stock(values(vec![0.0; 16])), invalid, &["norm 0"]).await;
    for rate in [f32::NAN, f32::INFINITY, 0.1, 2.5, -1.0] {
        let rate_text = rate.to_string();
        check(with("a", |c| c.speaking_rate = rate), invalid, &["speaking_rate", &rate_text, "0.5 to 2"])
            .await;
    }
    for number in [5, -1, i32::MAX] {
        check(with("a", |c| c.encoding = number), invalid, &["encoding", &number.to_string()]).await;
    }
    for rate in [1, 7_999, 48_001, u32::MAX] {
        let words = ["sample_rate_hz", &rate.to_string(), "8000 to 48000"];
        check(with("a", |c| c.sample_rate_hz = rate), invalid, &words).await;
    }
    check(with("a", |c| c.lead_silence_ms = 10_001), invalid, &["lead_silence_ms", "10001", "10000"]).await;
    check(with("a", |c| c.tail_silence_ms = u32::MAX), invalid, &["tail_silence_ms", "10000"]).await;
    check(with("a", |c| c.sentence_silence_ms = Some(10_001)), invalid, &["sentence_silence_ms"]).await;
    check(with("a", |c| c.first_chunk_frames = 513), invalid, &["first_chunk_frames", "513", "512"]).await;
    check(with("a", |c| c.max_chunk_frames = 5), invalid, &["max_chunk_frames 5", "6"]).await;
    check(with("a", |c| c.request_id = "a".repeat(129)), invalid, &["request_id", "129 bytes", "128"]).await;
    check(
        with("a", |c| c.request_id = "a\nb".into()),
        invalid,
        &["request_id", "a\\nb", "3 bytes", "printable"],
    )
    .await;
    check(with("a", |c| c.whole_sentences = true), invalid, &["whole_sentences"]).await;
    let mut phonemes = stock(values(vec![1.0; 16]));
    phonemes.content = Some(Content::Phonemes("a".to_owned()));
    check(phonemes, invalid, &["phonemes", "stock"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_cannot_be_met_is_refused() {
    let mut client = shared().await;
    let mut late = Request::new(request("Too late."));
    late.metadata_mut().insert("grpc-timeout", "0m".parse().unwrap());
    let refusal = client.synthesize(late).await.map(|_| ()).unwrap_err();
    // The client's own clock may be the first to notice.
    assert!(matches!(refusal.code(), Code::DeadlineExceeded | Code::Cancelled), "{refusal}");
    let mut in_time = Request::new(request("In time."));
    in_time.metadata_mut().insert("grpc-timeout", "30S".parse().unwrap());
    assert!(collect(client.synthesize(in_time).await.unwrap().into_inner()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_encoding_has_all_samples_and_one_header() {
    let mut client = shared().await;
    let text = "Last word matters. So does this.";
    let pcm = speak(&mut client, request(text)).await.unwrap();
    let samples = pcm.audio.len() / 2;
    for (encoding, bytes) in [
        (pb::AudioEncoding::PcmS16le, 2 * samples),
        (pb::AudioEncoding::PcmF32le, 4 * samples),
        (pb::AudioEncoding::Mulaw, samples),
        (pb::AudioEncoding::WavS16, 2 * samples + 44),
    ] {
        let spoken =
            speak(&mut client, with(text, |config| config.encoding = encoding.into())).await.unwrap();
        assert_eq!(spoken.audio.len(), bytes, "{encoding:?}");
        assert_eq!(spoken.started.format.unwrap().encoding, i32::from(encoding));
        assert_eq!(spoken.completed.samples as usize, samples, "{encoding:?}");
        if encoding == pb::AudioEncoding::WavS16 {
            assert_eq!(spoken.audio[..4], *b"RIFF");
            assert_eq!(spoken.audio[44..], pcm.audio);
        }
    }
    for rate in [8_000, 44_100] {
        let spoken = speak(&mut client, with(text, |config| config.sample_rate_hz = rate)).await.unwrap();
        assert_eq!(spoken.started.format.unwrap().sample_rate_hz, rate);
        let expected = samples as f64 * f64::from(rate) / 22_050.0;
        assert!((spoken.audio.len() as f64 / 2.0 - expected).abs() < 2.0, "{rate} Hz");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silences_are_as_long_as_asked_and_spans_lie_between_them() {
    let mut client = shared().await;
    let text = "Zero one two. Three four.";
    let plain = speak(&mut client, request(text)).await.unwrap();
    let spaced = with(text, |config| {
        config.lead_silence_ms = 300;
        config.tail_silence_ms = 100;
        config.sentence_silence_ms = Some(1000);
    });
    let spaced = speak(&mut client, spaced).await.unwrap();
    let (lead, tail, between) = (6_615, 2_205, 22_050);
    assert!(spaced.audio[..2 * lead].iter().all(|&byte| byte == 0));
    let [first, second] = &spaced.completed.sentences[..] else { panic!("{:?}", spaced.completed) };
    assert_eq!(first.first_sample as usize, lead);
    assert_eq!(second.first_sample, first.first_sample + first.samples + between);
    assert_eq!(spaced.completed.samples, second.first_sample + second.samples + tail);
    let spans = &plain.completed.sentences;
    assert_eq!((spans[0].first_sample, spans[0].samples), (0, first.samples));
    assert_eq!(spans[0].text, "Zero one two.");
    let start = 2 * lead;
    assert_eq!(
        spaced.audio[start..start + 2 * first.samples as usize],
        plain.audio[..2 * first.samples as usize]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn request_ids_come_back() {
    let mut client = shared().await;
    let mut named = Request::new(request("No."));
    named.metadata_mut().insert("x-request-id", "call 17".parse().unwrap());
    let response = client.synthesize(named).await.unwrap();
    assert_eq!(response.metadata().get("x-request-id").unwrap(), "call 17");
    assert_eq!(collect(response.into_inner()).await.unwrap().started.request_id, "call 17");
    let own = speak(&mut client, with("No.", |config| config.request_id = "mine".into())).await.unwrap();
    assert_eq!(own.started.request_id, "mine");
    let given = speak(&mut client, request("No.")).await.unwrap().started.request_id;
    assert_eq!(given.len(), 16);
    let refusal = client.synthesize(with("", |config| config.request_id = "mine".into())).await.map(|_| ());
    assert_eq!(refusal.unwrap_err().metadata().get("x-request-id").unwrap(), "mine");
}

/// Numbers that look random and are the same each time (Knuth's MMIX generator).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }
}

/// Sends bytes as they are.
#[derive(Debug, Default, Clone)]
struct Raw;

impl tonic::codec::Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl tonic::codec::Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut tonic::codec::EncodeBuf<'_>) -> Result<(), Status> {
        prost::bytes::BufMut::put_slice(buffer, &item);
        Ok(())
    }
}

impl tonic::codec::Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, buffer: &mut tonic::codec::DecodeBuf<'_>) -> Result<Option<()>, Status> {
        use prost::bytes::Buf;
        buffer.advance(buffer.remaining());
        Ok(Some(()))
    }
}

/// A request with a field or two out of the ordinary.
fn odd_fields(random: &mut Random) -> pb::SynthesizeRequest {
    let texts = ["No.", "", "\u{0}", "[[", "](](", "\u{202e}a", "1e999", "A.", "\u{1f600}", "[[ə]]", "$-0.0"];
    let numbers = [0, 1, 7, 8_000, 22_050, 48_000, 48_001, 10_000, u32::MAX, 1 << 31];
    let floats = [0.0, -0.0, 0.5, 1.0, 2.0, f32::NAN, f32::MIN_POSITIVE, f32::MAX, f32::NEG_INFINITY];
    let mut request = request(texts[random.below(texts.len())]);
    if random.below(4) == 0 {
        request.content = Some(Content::Phonemes(texts[random.below(texts.len())].to_owned()));
    }
    let config = request.config.as_mut().unwrap();
    let number = numbers[random.below(numbers.len())];
    let float = floats[random.below(floats.len())];
    match random.below(11) {
        0 => config.sample_rate_hz = number,
        1 => config.lead_silence_ms = number,
        2 => config.tail_silence_ms = number,
        3 => config.sentence_silence_ms = Some(number),
        4 => config.first_chunk_frames = number,
        5 => config.max_chunk_frames = number,
        6 => config.encoding = number as i32 % 7,
        7 => config.speaking_rate = float,
        8 => config.seed = Some(u64::MAX - u64::from(number)),
        9 => config.voice = texts[random.below(texts.len())].to_owned(),
        _ => {
            let values = vec![float; [0, 16, 31, 32, 33][random.below(5)]];
            config.speaker = Some(Speaker::SpeakerEmbedding(pb::SpeakerEmbedding { values }));
        }
    }
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_panics_on_mutated_requests() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        usual(panic);
    }));
    let mut client = shared().await;
    let before = speak(&mut client, request("No.")).await.unwrap().audio;

    let server = start(options()).await.serving().await;
    let mut raw = tonic::client::Grpc::new(
        Channel::from_shared(server.address.clone()).unwrap().connect().await.unwrap(),
    );
    let mut random = Random(3);
    let mut refused = 0;
    for number in 0..1_000 {
        let mut bytes = prost::Message::encode_to_vec(&odd_fields(&mut random));
        if number % 2 == 0 {
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
            bytes.truncate(bytes.len() - random.below(bytes.len().min(4)));
        }
        let rpc = ["Synthesize", "SynthesizeIncremental"][usize::from(number % 10 == 0)];
        raw.ready().await.unwrap();
        let path = format!("/{SERVICE}/{rpc}").parse().unwrap();
        let outcome = raw.server_streaming(Request::new(bytes), path, Raw).await;
        match outcome {
            // The first message, then the client leaves.
            Ok(response) => _ = response.into_inner().next().await,
            Err(status) => {
                let known = [Code::InvalidArgument, Code::NotFound, Code::ResourceExhausted];
                assert!(known.contains(&status.code()), "{status}");
                assert!(!status.message().contains("internal fault"), "{status}");
                refused += 1;
            }
        }
    }
    println!("{refused} of 1000 refused");
    assert!((200..950).contains(&refused), "{refused} of 1000 refused: too few of either kind");
    assert_eq!(PANICS.load(Ordering::SeqCst), 0);
    assert!(speak(&mut server.client().await, request("No.")).await.unwrap().audio == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn speaks_before_the_text_is_complete_and_equals_the_whole() {
    let mut client = shared().await;
    let text = "The kettle was on, at 3.14 degrees. She had no milk! Dr. Who? ...\n\nNobody.";
    let whole = speak(&mut client, request(text)).await.unwrap();
    let config = pb::SynthesisConfig { whole_sentences: true, seed: Some(7), ..Default::default() };
    let (sender, mut responses) = incremental(&mut client, config).await;
    let mut audio = Vec::new();
    let (head, tail) = text.split_at(38);
    for part in head.as_bytes().chunks(3) {
        sender.send(piece(std::str::from_utf8(part).unwrap())).await.unwrap();
    }
    while audio.is_empty() {
        if let Some(Event::Audio(bytes)) = responses.message().await.unwrap().unwrap().event {
            audio.extend(bytes);
        }
    }
    for part in tail.as_bytes().chunks(5) {
        sender.send(piece(std::str::from_utf8(part).unwrap())).await.unwrap();
    }
    drop(sender);
    let rest = collect(responses).await.unwrap();
    audio.extend(rest.audio);
    assert!(audio == whole.audio);
    assert_eq!(rest.completed.sentences, whole.completed.sentences);
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_begins_at_the_first_clause() {
    let mut client = shared().await;
    let (sender, mut responses) = incremental(&mut client, pb::SynthesisConfig::default()).await;
    sender.send(piece("When the rain stopped, ")).await.unwrap();
    let heard = |response: &pb::SynthesizeResponse| matches!(response.event, Some(Event::Audio(_)));
    while !heard(&responses.message().await.unwrap().unwrap()) {}
    sender.send(piece("we went out. ")).await.unwrap();
    drop(sender);
    let spans = collect(responses).await.unwrap().completed.sentences;
    let texts: Vec<&str> = spans.iter().map(|span| span.text.as_str()).collect();
    assert_eq!(texts, ["When the rain stopped,", "we went out."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn incremental_requests_are_refused_with_reasons() {
    let mut client = shared().await;
    let first =
        client.synthesize_incremental(tokio_stream::iter([piece("a")])).await.map(|_| ()).unwrap_err();
    assert_eq!((first.code(), first.message()), (Code::InvalidArgument, "the first message is not a config"));
    let mut check = async |pieces: Vec<pb::SynthesizeIncrementalRequest>, words: &str| {
        let (sender, responses) = incremental(&mut client, pb::SynthesisConfig::default()).await;
        for piece in pieces {
            sender.send(piece).await.unwrap();
        }
        drop(sender);
        let refusal = collect(responses).await.map(|_| ()).unwrap_err();
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
        assert!(refusal.message().contains(words), "{refusal}");
    };
    check(vec![], "nothing to speak").await;
    check(vec![piece(" ...")], "nothing to speak").await;
    check(vec![piece(&"a".repeat(6_000)), piece(&"a".repeat(6_000))], "12000").await;
    let config = pb::synthesize_incremental_request::Content::Config(pb::SynthesisConfig::default());
    check(vec![pb::SynthesizeIncrementalRequest { content: Some(config) }], "first message alone").await;
    check(vec![pb::SynthesizeIncrementalRequest { content: None }], "without text").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_frees_its_place() {
    let mut options = options();
    options.voices.truncate(1);
    (options.voice_options.engine.max_streams, options.voice_options.engine.queue) = (1, 0);
    let server = start(options).await.serving().await;
    let mut client = server.client().await;
    let mut responses = client.synthesize(request(&LONG.repeat(20))).await.unwrap().into_inner();
    responses.message().await.unwrap();
    let refusal = client.synthesize(request("No.")).await.map(|_| ()).unwrap_err();
    assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
    assert!(refusal.message().contains("1 streams and a queue of 0"), "{refusal}");
    let told = refusal.metadata().get("retry-after-ms").unwrap().to_str().unwrap();
    assert!(refusal.message().contains(&format!("{told} ms")), "{refusal}");
    // What the warm-up has taken, not a constant.
    assert!((10..1000).contains(&told.parse::<u64>().unwrap()), "{told}");
    drop(responses);
    let began = std::time::Instant::now();
    while client.synthesize(request("No.")).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(2), "the place is not free");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("free after {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn health_tells_when_it_serves_and_a_drain_loses_nothing() {
    let server = start(options()).await;
    let mut health = server.health().await;
    let check = HealthCheckRequest { service: String::new() };
    assert_eq!(health.check(check.clone()).await.unwrap().into_inner().status, 2);
    let mut client = server.client().await;
    let early = client.synthesize(request("No.")).await.map(|_| ()).unwrap_err();
    assert_eq!(early.code(), Code::Unavailable, "{early}");
    watch_for(&mut health, 1).await;
    assert_eq!(health.check(check.clone()).await.unwrap().into_inner().status, 1);
    let unknown = HealthCheckRequest { service: "nobody".to_owned() };
    assert_eq!(health.check(unknown).await.unwrap_err().code(), Code::NotFound);

    let expected = speak(&mut client, request(LONG)).await.unwrap().audio;
    let mut running = Vec::new();
    for _ in 0..10 {
        running.push(client.synthesize(request(LONG)).await.unwrap().into_inner());
    }
    server.shutdown.send(()).unwrap();
    watch_for(&mut health, 2).await;
    let late = client.synthesize(request("No.")).await.map(|_| ()).unwrap_err();
    assert_eq!(late.code(), Code::Unavailable, "{late}");
    for responses in running {
        assert!(collect(responses).await.unwrap().audio == expected);
    }
    server.ended.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_takes_too_long_ends_with_unavailable() {
    let mut options = options();
    options.voices.truncate(1);
    options.drain_timeout = Duration::from_millis(50);
    let server = start(options).await.serving().await;
    let mut client = server.client().await;
    let responses = client.synthesize(request(&LONG.repeat(50))).await.unwrap().into_inner();
    server.shutdown.send(()).unwrap();
    let end = collect(responses).await.unwrap_err();
    assert_eq!(end.code(), Code::Unavailable, "{end}");
    assert!(end.message().contains("50ms"), "{end}");
    server.ended.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn voices_come_and_go() {
    let mut options = options();
    options.voices.truncate(1);
    let server = start(options).await.serving().await;
    let mut client = server.client().await;
    let load =
        |name: &str, directory: &str| pb::LoadVoiceRequest { name: name.into(), directory: directory.into() };
    let stock = root().join("tests/data/speecht5_tiny");
    let loaded = client.load_voice(load("two", stock.to_str().unwrap())).await.unwrap().into_inner();
    assert_eq!(loaded.voice.unwrap().speaker_embedding_dim, 16);
    let names = async |client: &mut Client| -> Vec<String> {
        let list = client.list_voices(pb::ListVoicesRequest {}).await.unwrap().into_inner();
        list.voices.into_iter().map(|voice| voice.name).collect()
    };
    assert_eq!(names(&mut client).await, ["default", "two"]);
    let refusal = client.load_voice(load("default", "/no/such/voice")).await.unwrap_err();
    assert_eq!(refusal.code(), Code::FailedPrecondition, "{refusal}");
    assert!(client.load_voice(load("", "/")).await.is_err());
    server.reload.send(()).await.unwrap();
    assert!(speak(&mut client, request("No.")).await.is_ok());

    let speaking = client.synthesize(request(LONG)).await.unwrap().into_inner();
    client.unload_voice(pb::UnloadVoiceRequest { name: "default".into() }).await.unwrap();
    assert!(collect(speaking).await.is_ok(), "what was accepted is finished");
    let gone = client.unload_voice(pb::UnloadVoiceRequest { name: "nobody".into() }).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn describes_itself() {
    let mut client = shared().await;
    let told = client.describe(pb::DescribeRequest {}).await.unwrap().into_inner();
    let version = told.onnx_runtime.split(',').next().unwrap();
    assert!(version.split('.').count() == 3 && version.starts_with("1."), "{}", told.onnx_runtime);
    assert!(told.onnx_runtime.contains("Build Info"), "{}", told.onnx_runtime);
    let limits = told.limits.unwrap();
    assert_eq!((limits.max_streams, limits.queue, limits.max_text_bytes), (8, 8, 10_000));
    assert_eq!((limits.slow_client_timeout_ms, limits.text_timeout_ms), (10_000, 120_000));
    let plan = &told.plans[0];
    assert_eq!((plan.voice.as_str(), plan.streams), ("default", 8));
    let decoder = plan.decoder.clone().unwrap();
    assert_eq!((decoder.stored.as_str(), decoder.executed.unwrap().kv_cache.as_str()), ("f16", "f32"));
    let voices = client.list_voices(pb::ListVoicesRequest {}).await.unwrap().into_inner().voices;
    assert_eq!(voices[0].speakers, ["joe"]);
    assert!(voices[0].phonemes && !voices[1].phonemes);
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_lists_the_service() {
    let server = start(options()).await;
    let channel = Channel::from_shared(server.address.clone()).unwrap().connect().await.unwrap();
    {
        use tonic_reflection::pb::v1::ServerReflectionRequest;
        use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
        use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
        use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
        let message_request = Some(MessageRequest::ListServices(String::new()));
        let request = ServerReflectionRequest { host: String::new(), message_request };
        let mut client = ServerReflectionClient::new(channel.clone());
        let mut answers =
            client.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
        let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
        assert!(list.service.iter().any(|service| service.name == SERVICE), "{list:?}");
    }
    {
        use tonic_reflection::pb::v1alpha::ServerReflectionRequest;
        use tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient;
        use tonic_reflection::pb::v1alpha::server_reflection_request::MessageRequest;
        let message_request = Some(MessageRequest::FileContainingSymbol(SERVICE.to_owned()));
        let request = ServerReflectionRequest { host: String::new(), message_request };
        let mut client = ServerReflectionClient::new(channel);
        let mut answers =
            client.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
        assert!(answers.message().await.unwrap().unwrap().message_response.is_some());
    }
}
