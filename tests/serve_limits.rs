//! The server at its limits: what is too much, too slow, too late or gone.

mod server;

use std::net::TcpStream as BlockingStream;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use mezzavoce::serve::SERVICE;
use mezzavoce::transport::pb;
use pb::speech_client::SpeechClient;
use pb::synthesis_config::Speaker;
use pb::synthesize_response::Event;
use prost::Message;
use prost::bytes::Bytes;
use server::{Client, LONG, collect, incremental, options, piece, request, speak, start, watch_for, with};
use tokio::net::{TcpListener, TcpStream};
use tonic::codegen::http;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;

fn say(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mezzavoce")).arg("say").args(arguments).output().unwrap()
}

/// A gRPC message in its frame.
fn framed(message: &impl Message) -> Bytes {
    let body = message.encode_to_vec();
    [&[0], u32::try_from(body.len()).unwrap().to_be_bytes().as_slice(), &body].concat().into()
}

/// Every message is a DATA frame of its own, as clients in other languages send them.
#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_byte_are_taken_as_fast_as_they_come() {
    let mut options = options();
    options.voices.truncate(1);
    options.feed.max_text_bytes = 100_000;
    let server = start(options).await.serving().await;
    let address = server.address.strip_prefix("http://").unwrap();
    let (client, connection) =
        h2::client::handshake(TcpStream::connect(address).await.unwrap()).await.unwrap();
    let connection = tokio::spawn(connection);
    let open = async |rpc: &str| {
        let request = http::Request::post(format!("{}/{SERVICE}/{rpc}", server.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let mut client = client.clone().ready().await.unwrap();
        client.send_request(request.body(()).unwrap(), false).unwrap()
    };
    let ended_well = async |response: h2::client::ResponseFuture| {
        let mut body = response.await.unwrap().into_body();
        while let Some(data) = body.data().await {
            let length = data.unwrap().len();
            body.flow_control().release_capacity(length).unwrap();
        }
        assert_eq!(body.trailers().await.unwrap().unwrap().get("grpc-status").unwrap(), "0");
    };
    let (beside, mut beside_body) = open("Synthesize").await;
    beside_body.send_data(framed(&request("Two steps.")), true).unwrap();

    use pb::synthesize_incremental_request::Content;
    let (speech, mut body) = open("SynthesizeIncremental").await;
    let config = Content::Config(pb::SynthesisConfig::default());
    body.send_data(framed(&pb::SynthesizeIncrementalRequest { content: Some(config) }), false).unwrap();
    for number in 0..20_000 {
        // Mostly nothing, so that little has to be spoken.
        let text = ["N", "o", ".", " "][if number < 4 { number } else { 3 }];
        body.send_data(framed(&piece(text)), false).unwrap();
    }
    body.send_data(Bytes::new(), true).unwrap();
    ended_well(speech).await;
    ended_well(beside).await;
    assert!(!connection.is_finished());
    assert!(speak(&mut server.client().await, request("No.")).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_value_comes_back_at_length() {
    let server = start(options()).await.serving().await;
    let mut client = server.client().await;
    let long = || "ü".repeat(30_000);
    let check = |refusal: Status, code: Code| {
        assert_eq!(refusal.code(), code, "{refusal}");
        assert!(refusal.message().len() < 1_000, "{} bytes: {refusal}", refusal.message().len());
        assert!(refusal.message().contains("…"), "{refusal}");
    };
    let refused = |request| {
        let mut client = client.clone();
        async move { client.synthesize(request).await.map(|_| ()).unwrap_err() }
    };
    check(refused(with("a", |config| config.voice = long())).await, Code::NotFound);
    let speaker = |config: &mut pb::SynthesisConfig| config.speaker = Some(Speaker::SpeakerName(long()));
    check(refused(with("a", speaker)).await, Code::InvalidArgument);
    let load = |name: String, directory: String| pb::LoadVoiceRequest { name, directory };
    check(client.load_voice(load(long(), "/".into())).await.unwrap_err(), Code::InvalidArgument);
    check(client.load_voice(load("a".into(), long())).await.unwrap_err(), Code::FailedPrecondition);
    check(client.unload_voice(pb::UnloadVoiceRequest { name: long() }).await.unwrap_err(), Code::NotFound);
    let mut late = Request::new(request("a"));
    late.metadata_mut().insert("grpc-timeout", "9".repeat(5_000).parse().unwrap());
    check(client.synthesize(late).await.map(|_| ()).unwrap_err(), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_counted_and_whatever_is_admitted_is_finished() {
    let mut options = options();
    options.voices.truncate(1);
    let server = start(options).await.serving().await;
    let mut client = server.client().await;
    speak(&mut client, request("No.")).await.unwrap();
    assert!(client.synthesize(request("...!?")).await.is_err(), "refused once it has a place");
    let too_long = client.synthesize(request(&"a".repeat(200_000))).await.map(|_| ()).unwrap_err();
    assert_eq!(too_long.code(), Code::InvalidArgument, "{too_long}");
    let unread = client.synthesize(request(&LONG.repeat(20))).await.unwrap();
    server.counts("mezzavoce_requests_in_flight", 1.0).await;
    drop(unread);
    server.counts("mezzavoce_requests_in_flight", 0.0).await;
    assert!(client.synthesize(with("a", |config| config.voice = "nobody".into())).await.is_err());
    assert!(client.load_voice(pb::LoadVoiceRequest::default()).await.is_err());
    let finished = |outcome: &str| {
        server.counted(&format!("mezzavoce_requests_finished_total{{outcome=\"{outcome}\"}}"))
    };
    assert_eq!([finished("completed"), finished("refused"), finished("cancelled")], [1.0; 3]);
    assert_eq!(server.counted("mezzavoce_requests_admitted_total"), 3.0);
    assert_eq!(server.counted("mezzavoce_requests_refused_total{reason=\"invalid\"}"), 4.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_does_not_come_is_given_up() {
    let mut options = options();
    options.voices.truncate(1);
    options.feed.text_timeout = Duration::from_millis(200);
    let server = start(options).await.serving().await;
    let mut client = server.client().await;
    let silent = client.synthesize_incremental(tokio_stream::pending()).await.map(|_| ()).unwrap_err();
    assert_eq!(silent.code(), Code::DeadlineExceeded, "{silent}");
    assert!(silent.message().contains("no config has come for 200 ms"), "{silent}");
    let (sender, responses) = incremental(&mut client, pb::SynthesisConfig::default()).await;
    sender.send(piece("When the rain ")).await.unwrap();
    let end = collect(responses).await.map(|_| ()).unwrap_err();
    assert_eq!(end.code(), Code::DeadlineExceeded, "{end}");
    assert!(end.message().contains("no text has come for 200 ms"), "{end}");
    server.counts("mezzavoce_requests_in_flight", 0.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_takes_nothing_is_told_so() {
    let mut options = options();
    options.voices.truncate(1);
    options.voice_options.engine.slow_client_timeout = Duration::from_millis(300);
    let server = start(options).await.serving().await;
    let channel = Channel::from_shared(server.address.clone()).unwrap();
    let channel =
        channel.initial_stream_window_size(Some(65_535)).initial_connection_window_size(Some(65_535));
    let mut client = SpeechClient::new(channel.connect().await.unwrap());
    let floats = with(&LONG.repeat(4), |config| {
        config.encoding = pb::AudioEncoding::PcmF32le.into();
        config.sample_rate_hz = 48_000;
    });
    let mut responses = client.synthesize(floats).await.unwrap().into_inner();
    responses.message().await.unwrap();
    server.counts("mezzavoce_requests_finished_total{outcome=\"slow_reader\"}", 1.0).await;
    server.counts("mezzavoce_engine_slow_readers_total{voice=\"default\"}", 1.0).await;
    assert_eq!(server.counted("mezzavoce_requests_in_flight"), 0.0);
    assert_eq!(server.counted("mezzavoce_engine_cancels_total{voice=\"default\"}"), 0.0);
    let end = collect(responses).await.map(|_| ()).unwrap_err();
    assert_eq!(end.code(), Code::Aborted, "{end}");
    assert!(end.message().contains("nothing was taken for 300 ms"), "{end}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_is_seen_in_the_metrics() {
    let mut options = options();
    options.voices.truncate(1);
    let server = start(options).await.serving().await;
    let mut client = server.client().await;
    let mut responses = client.synthesize(request(&LONG.repeat(20))).await.unwrap().into_inner();
    let heard = |response: &pb::SynthesizeResponse| matches!(response.event, Some(Event::Audio(_)));
    while !heard(&responses.message().await.unwrap().unwrap()) {}
    drop(responses);
    server.counts("mezzavoce_engine_cancels_total{voice=\"default\"}", 1.0).await;
    // The step that was under way when the cancellation was seen has been counted before it.
    let steps = server.counted("mezzavoce_engine_steps_total{voice=\"default\"}");
    server.counts("mezzavoce_engine_active_slots{voice=\"default\"}", 0.0).await;
    server.counts("mezzavoce_requests_finished_total{outcome=\"cancelled\"}", 1.0).await;
    assert_eq!(server.counted("mezzavoce_engine_steps_total{voice=\"default\"}"), steps);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_the_queue_does_not_allow_is_refused_at_once() {
    let mut options = options();
    options.voices.truncate(1);
    (options.voice_options.engine.max_streams, options.voice_options.engine.queue) = (1, 16);
    let server = start(options).await.serving().await;
    let mut client = server.client().await;
    for _ in 0..3 {
        speak(&mut client, request(LONG)).await.unwrap();
    }
    let mut waiting = Vec::new();
    for _ in 0..16 {
        waiting.push(client.synthesize(request(&LONG.repeat(20))).await.unwrap());
    }
    server.counts("mezzavoce_engine_queued{voice=\"default\"}", 15.0).await;
    let expected_s = server.counted("mezzavoce_engine_expected_wait_seconds{voice=\"default\"}");
    let mut late = Request::new(request("Too late."));
    let half_ms = (expected_s * 500.0) as u64;
    late.metadata_mut().insert("grpc-timeout", format!("{half_ms}m").parse().unwrap());
    let began = Instant::now();
    let refusal = client.synthesize(late).await.map(|_| ()).unwrap_err();
    assert_eq!(refusal.code(), Code::DeadlineExceeded, "{refusal}");
    assert!(refusal.message().contains("others wait"), "{refusal}");
    assert!(began.elapsed() < Duration::from_millis(half_ms), "{:?} of {half_ms} ms", began.elapsed());
    assert_eq!(server.counted("mezzavoce_requests_refused_total{reason=\"deadline\"}"), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_voice_says_so_until_one_comes() {
    let mut options = options();
    options.voices.truncate(1);
    let server = start(options).await;
    let mut health = server.health().await;
    let early = server.client().await.synthesize(request("No.")).await.map(|_| ()).unwrap_err();
    assert!(early.message().contains("still being loaded"), "{early}");
    watch_for(&mut health, 1).await;
    let mut client = server.client().await;
    let unload = |name: &str| pb::UnloadVoiceRequest { name: name.to_owned() };
    client.unload_voice(unload("default")).await.unwrap();
    watch_for(&mut health, 2).await;
    let overall = HealthCheckRequest { service: String::new() };
    assert_eq!(health.check(overall.clone()).await.unwrap().into_inner().status, 2);
    let none = client.synthesize(request("No.")).await.map(|_| ()).unwrap_err();
    assert_eq!(none.code(), Code::Unavailable, "{none}");
    assert!(none.message().starts_with("no voice is loaded") && !none.message().contains("yet"), "{none}");
    let named = client.synthesize(with("No.", |config| config.voice = "x".into())).await.map(|_| ());
    assert_eq!(named.unwrap_err().code(), Code::NotFound);
    assert_eq!(client.unload_voice(unload("default")).await.unwrap_err().code(), Code::NotFound);

    let stock = server::support::root().join("tests/data/speecht5_tiny");
    for name in ["zoe", "two", "abe"] {
        let directory = stock.to_str().unwrap().to_owned();
        client.load_voice(pb::LoadVoiceRequest { name: name.into(), directory }).await.unwrap();
    }
    watch_for(&mut health, 1).await;
    let names = async |client: &mut Client| -> Vec<String> {
        let list = client.list_voices(pb::ListVoicesRequest {}).await.unwrap().into_inner();
        list.voices.into_iter().map(|voice| voice.name).collect()
    };
    assert_eq!(names(&mut client).await, ["zoe", "abe", "two"]);
    server.reload.send(()).await.unwrap();
    let began = Instant::now();
    while names(&mut client).await.len() < 4 {
        assert!(began.elapsed() < server::PATIENCE, "not reloaded");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(names(&mut client).await, ["default", "abe", "two", "zoe"]);
    assert!(speak(&mut client, request("No.")).await.is_ok(), "the first voice needs no speaker");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_sound_is_told_once() {
    let server = start(options()).await.serving().await;
    let spoken =
        speak(&mut server.client().await, request("Say 漢 twice. Say 漢 and 字 again.")).await.unwrap();
    assert_eq!(spoken.completed.unmapped, "漢字");
}

#[tokio::test(flavor = "multi_thread")]
async fn say_does_not_wait_for_a_server_that_says_nothing() {
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = mute.local_addr().unwrap().to_string();
    let began = Instant::now();
    let output = say(&["Hello?", "--raw", "--server", &address, "--server-timeout", "300ms"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(75), "{message}");
    assert!(message.contains(&address) && message.contains("nothing for 300 ms"), "{message}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    drop(mute);
    let gone = say(&["Hello?", "--raw", "--server", &address]);
    assert_eq!(gone.status.code(), Some(75), "{}", String::from_utf8_lossy(&gone.stderr));
    for (address, word) in [("localhost", "HOST:PORT"), ("a b:1", "HOST:PORT"), ("https://a:1", "TLS")] {
        let output = say(&["Hello?", "--raw", "--server", address]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(word), "{message}");
    }
}

/// What `address` answers to `GET /metrics`.
#[cfg(unix)]
fn scrape(address: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = BlockingStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_program_serves_speech_and_metrics_until_it_is_told_to_end() {
    use std::io::{BufRead, BufReader};
    let free = "127.0.0.1:0";
    let mut child = Command::new(env!("CARGO_BIN_EXE_mezzavoce"))
        .args(["serve", "--listen", free, "--metrics-addr", free, "--threads", "1", "--max-streams", "2"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut listens, mut metrics) = (String::new(), String::new());
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    for line in log.by_ref() {
        let after = |words: &str| line.split_once(words).map(|(_, rest)| rest.trim().to_owned());
        if let Some(address) = after("listening on ") {
            listens = address;
        } else if let Some(address) = after("metrics on http://") {
            metrics = address.trim_end_matches("/metrics").to_owned();
        } else if line.trim_end().ends_with("serving") {
            break;
        }
    }
    std::thread::spawn(move || log.count());
    let mut client = SpeechClient::connect(format!("http://{listens}")).await.unwrap();
    speak(&mut client, request("No.")).await.unwrap();
    let began = Instant::now();
    while !scrape(&metrics).contains("mezzavoce_requests_finished_total{outcome=\"completed\"} 1") {
        assert!(began.elapsed() < server::PATIENCE, "{}", scrape(&metrics));
    }
    assert!(scrape(&metrics).contains("mezzavoce_engine_slots{voice=\"default\"} 2"), "{}", scrape(&metrics));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}
