//! `batch --server`: what a server speaks is what `batch` speaks itself, and a server without room is asked again.

mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use mezzavoce::repertoire::VoiceSource;
use serde_json::{Value, json};
use server::support::root;
use server::{Server, options, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn batch(input: &Path, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mezzavoce"));
    command.arg("batch").arg(input).arg("--out").arg(out).args(more).output().unwrap()
}

fn audio(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|kind| kind != "jsonl"))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

fn manifest(directory: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(directory.join("manifest.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowded_server_speaks_every_line_as_batch_would() {
    let mut options = options();
    options.voice_options.engine.max_streams = 1;
    options.voice_options.engine.queue = 1;
    let tiny = root().join("models/tiny");
    options.voices = vec![VoiceSource { name: Some("tiny".to_owned()), directory: Some(tiny.clone()) }];
    let server = start(options).await.serving().await;
    let scratch = tempfile::tempdir().unwrap();
    let input = scratch.path().join("input.jsonl");
    let encodings = ["wav", "s16le", "mulaw"];
    let lines = (0..9).map(|n| {
        let encoding = encodings[n % 3];
        format!(
            "{}\n",
            json!({"id": format!("u{n}"), "text": "A word. And more.", "seed": n, "voice": "tiny",
            "encoding": encoding, "sample_rate_hz": 8000 + 8000 * (n % 2), "lead_silence_ms": 30})
        )
    });
    let mut text: String = lines.collect();
    text.push_str("{\"text\":\"\"}\n{\"id\":\"nobody\",\"text\":\"a\",\"voice\":\"nobody\"}\n");
    text.push_str("{\"text\":\"a\",\"speaker\":\"nobody\"}\n{\"text\":\"a\",\"lexicon\":\"Qorvex\"}\n");
    std::fs::write(&input, text).unwrap();

    let address = server.address.trim_start_matches("http://").to_owned();
    let (here, there) = (scratch.path().join("here"), scratch.path().join("there"));
    let voice = format!("tiny={}", tiny.display());
    let told = tokio::task::spawn_blocking({
        let (input, here, there) = (input.clone(), here.clone(), there.clone());
        move || {
            let by_server = batch(&input, &there, &["--server", &address, "--jobs", "6"]);
            (by_server, batch(&input, &here, &["--voice", &voice]))
        }
    });
    let (by_server, by_itself) = told.await.unwrap();
    for output in [&by_server, &by_itself] {
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (expected, found) = (audio(&here), audio(&there));
    assert_eq!(expected.len(), 9);
    assert!(expected == found, "the server's audio is that of batch itself");
    for (ours, servers) in manifest(&here).iter().zip(manifest(&there)) {
        for field in ["line", "status", "samples", "seconds", "steps", "spans", "sha256", "processed_text"] {
            assert_eq!(ours[field], servers[field], "{field}: {servers}");
        }
        assert_eq!(ours["error"]["code"], servers["error"]["code"], "{ours} {servers}");
    }
    let refused = server.counted("mezzavoce_refusals_total{reason=\"overloaded\"}");
    println!("{refused} refusals, all of them mended by asking again");
}

/// Stands before a server, and cuts every connection over which `poison` is sent.
struct Gate {
    address: String,
    target: Arc<Mutex<String>>,
}

async fn gate(target: &Server, poison: &'static str) -> Gate {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let target = Arc::new(Mutex::new(target.address.trim_start_matches("http://").to_owned()));
    let behind = Arc::clone(&target);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let behind = behind.lock().unwrap().clone();
            tokio::spawn(async move {
                let (mut from_client, mut to_client) = client.into_split();
                let server = TcpStream::connect(behind).await.unwrap();
                let (mut from_server, mut to_server) = server.into_split();
                let back =
                    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
                let mut block = vec![0; 1 << 16];
                while let Ok(read @ 1..) = from_client.read(&mut block).await {
                    if block[..read].windows(poison.len()).any(|part| part == poison.as_bytes()) {
                        break;
                    }
                    to_server.write_all(&block[..read]).await.unwrap();
                }
                back.abort();
            });
        }
    });
    Gate { address, target }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_a_server_breaks_over_fails_alone() {
    let server = start(options()).await.serving().await;
    let gate = gate(&server, "poison").await;
    let scratch = tempfile::tempdir().unwrap();
    let told = tokio::task::spawn_blocking(move || {
        let run = |texts: &[&str]| {
            let lines: String = texts.iter().map(|text| format!("{}\n", json!({"text": text}))).collect();
            let (input, out) =
                (scratch.path().join("input.jsonl"), scratch.path().join(texts.len().to_string()));
            std::fs::write(&input, lines).unwrap();
            let more = ["--server", &gate.address, "--server-patience", "700ms"];
            let status = batch(&input, &out, &more).status.code();
            let codes: Vec<Value> = manifest(&out).iter().map(|line| line["error"]["code"].clone()).collect();
            (status, codes)
        };
        (run(&["a", "poison", "b"]), run(&["poison"]))
    });
    let (among_others, alone) = told.await.unwrap();
    assert_eq!(among_others, (Some(2), vec![Value::Null, json!("unavailable"), Value::Null]));
    assert_eq!(alone, (Some(2), vec![json!("unavailable")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_another_voice_speaks_the_lines_anew() {
    let with_voice = |directory| {
        let mut options = options();
        options.voices =
            vec![VoiceSource { name: Some("joe".to_owned()), directory: Some(root().join(directory)) }];
        options
    };
    let server = start(with_voice("models/tiny")).await.serving().await;
    let other = start(with_voice("tests/data/speecht5_tiny")).await.serving().await;
    let gate = gate(&server, "\n\n").await;
    let scratch = tempfile::tempdir().unwrap();
    let (input, out) = (scratch.path().join("input.jsonl"), scratch.path().join("out"));
    let own = vec![0.25; 8];
    let lines = [json!({"text": "a", "speaker_embedding": own}), json!({"text": "a", "voice": "joe"})];
    std::fs::write(&input, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let told = tokio::task::spawn_blocking(move || {
        let run = || {
            let output = batch(&input, &out, &["--server", &gate.address]);
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (first, again) = (run(), run());
        *gate.target.lock().unwrap() = other.address.trim_start_matches("http://").to_owned();
        [first, again, run()]
    });
    let [first, again, changed] = told.await.unwrap();
    assert!(first.0 == Some(0) && first.1.contains("2 spoken, 0 kept"), "{}", first.1);
    assert!(again.0 == Some(0) && again.1.contains("0 spoken, 2 kept"), "{}", again.1);
    // The other voice has no speaker of its own and takes embeddings of another length.
    assert!(changed.0 == Some(2) && changed.1.contains(" 0 kept"), "{}", changed.1);
}

#[test]
fn a_server_that_is_not_there_ends_the_run_as_one_to_go_on_with() {
    let scratch = tempfile::tempdir().unwrap();
    let input = scratch.path().join("input.jsonl");
    std::fs::write(&input, "{\"text\":\"a\"}\n").unwrap();
    // Nothing listens on a port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let output =
        batch(&input, &scratch.path().join("out"), &["--server", &address, "--server-patience", "500ms"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(75) && stderr.contains("refused"), "{stderr}");
    assert!(stderr.contains("no line was spoken"), "{stderr}");
}
