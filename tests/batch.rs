//! `batch` as a person meets it: records, files, exit statuses, kills.

#[path = "support/batch.rs"]
mod program;
mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use program::{Scratch, batch, command, lines, records, told, tree};
use serde_json::{Value, json};
use support::root;

#[test]
fn every_bad_line_has_a_record_and_every_good_one_is_spoken() {
    let scratch = Scratch::new();
    let deep = format!("{{\"text\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let long = format!("{{\"text\":\"{}\"}}", "a".repeat(7 << 20));
    let bad: Vec<(Vec<u8>, &str)> = vec![
        (b"5".to_vec(), "not_an_object"),
        (b"{}".to_vec(), "missing_text"),
        (b"\xff".to_vec(), "not_utf8"),
        (b"[]".to_vec(), "not_an_object"),
        (b"null".to_vec(), "not_an_object"),
        (br#"{"text":"a"} {"text":"b"}"#.to_vec(), "not_json"),
        (br#"{"text":"a""#.to_vec(), "not_json"),
        (br#"{'text':'a'}"#.to_vec(), "not_json"),
        (br#"{"text":"a","seed":NaN}"#.to_vec(), "not_json"),
        (br#"{"text":"a","seed":1e999}"#.to_vec(), "not_json"),
        (br#"{"text":"\ud800"}"#.to_vec(), "not_json"),
        (b"{\"text\":\"a\0b\"}".to_vec(), "not_json"),
        (deep.into_bytes(), "not_json"),
        (long.into_bytes(), "line_too_long"),
        (br#"{"text":"a","text":"b"}"#.to_vec(), "duplicate_field"),
        (br#"{"text":"a","sped":1}"#.to_vec(), "unknown_field"),
        (br#"{"text":5}"#.to_vec(), "wrong_type"),
        (br#"{"text":"a","seed":1.5}"#.to_vec(), "wrong_type"),
        (br#"{"text":"a","seed":-1}"#.to_vec(), "out_of_range"),
        (br#"{"text":"a","speaking_rate":9}"#.to_vec(), "out_of_range"),
        (br#"{"text":"a","sample_rate_hz":1}"#.to_vec(), "out_of_range"),
        (br#"{"text":"a","encoding":"mp3"}"#.to_vec(), "out_of_range"),
        (br#"{"text":"a","lead_silence_ms":10001}"#.to_vec(), "out_of_range"),
        (br#"{"text":"a","phonemes":"b"}"#.to_vec(), "conflicting_fields"),
        (br#"{"text":"a","voice":"nobody"}"#.to_vec(), "unknown_voice"),
        (br#"{"text":"a","speaker":"nobody"}"#.to_vec(), "unknown_speaker"),
        (br#"{"text":"a","speaker_id":99}"#.to_vec(), "unknown_speaker"),
        (br#"{"text":""}"#.to_vec(), "invalid_request"),
        (br#"{"ssml":"<speak>"}"#.to_vec(), "invalid_request"),
        (br#"{"text":"a","output":"../x.wav"}"#.to_vec(), "bad_output"),
        (br#"{"text":"a","output":"/x.wav"}"#.to_vec(), "bad_output"),
        (br#"{"text":"a","output":"a/../../x.wav"}"#.to_vec(), "bad_output"),
        (br#"{"text":"a","output":"..\\x.wav"}"#.to_vec(), "bad_output"),
        (br#"{"text":"a","output":"x\u0000.wav"}"#.to_vec(), "bad_output"),
        (br#"{"text":"a","output":"Manifest.jsonl"}"#.to_vec(), "bad_output"),
        (br#"{"text":"a","output":"manifest.jsonl/a.wav"}"#.to_vec(), "bad_output"),
        (br#"{"text":"a","output":"nul.wav"}"#.to_vec(), "bad_output"),
        (br#"{"text":"a","id":""}"#.to_vec(), "bad_output"),
        (br#"{"uttid":"g","syn_text":"a","prompt_text":"b"}"#.to_vec(), "unsupported_field"),
    ];
    let mut input = b"\xef\xbb\xbf{\"text\":\"first\"}\r\n".to_vec();
    for (line, _) in &bad {
        input.extend_from_slice(line);
        input.push(b'\n');
    }
    input.extend_from_slice(b" \t\r\n\xef\xbb\xbf{\"text\":\"last\",\"output_file\":\"sub/last.wav\"}");
    let out = scratch.path("out");
    let (status, stderr) = batch(&scratch.input(&input), &out, &[]);
    assert_eq!(status, 2, "{stderr}");
    let told = format!("{} of {} lines failed, first line 2 (", bad.len(), bad.len() + 3);
    assert!(stderr.contains(&told) && stderr.contains("out/manifest.jsonl"), "{stderr}");
    let records = records(&out);
    assert_eq!(records.len(), bad.len() + 3);
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record["line"], at + 1);
    }
    for ((line, code), record) in bad.iter().zip(&records[1..]) {
        let line = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        assert_eq!(record["error"]["code"], *code, "{line}: {record}");
        assert!(record["error"]["message"].as_str().unwrap().len() < 1000, "{line}");
    }
    assert_eq!(records[bad.len() + 1]["status"], "skipped");
    for (record, name) in [(&records[0], "000001.wav"), (&records[bad.len() + 2], "sub/last.wav")] {
        assert_eq!((&record["status"], &record["output"]), (&json!("ok"), &json!(name)));
        let reader = hound::WavReader::open(out.join(name)).unwrap();
        assert_eq!(json!(reader.len()), record["samples"]);
    }
    assert_eq!(tree(&out).len(), 3, "{:?}", tree(&out).keys());
    assert!(!scratch.path("x.wav").exists());
}

#[test]
fn two_lines_that_claim_one_path_stop_everything() {
    let scratch = Scratch::new();
    for (first, second, told) in [
        ("a.wav", "./a.wav", "lines 1 and 2"),
        (
            "a",
            "a/b.wav",
            "line 2 (INPUT:2) claims the output `a/b.wav`, which lies in what line 1 claims as a file",
        ),
        ("a/b.wav", "a", "line 2 (INPUT:2) claims the output `a`, which is a directory for line 1"),
    ] {
        let line = |output| format!("{}\n", json!({"text": "a", "output": output}));
        let input = scratch.input(format!("{}{}", line(first), line(second)).as_bytes());
        let out = scratch.path("out");
        let (status, stderr) = batch(&input, &out, &[]);
        assert_eq!(status, 2, "{stderr}");
        let told = told.replace("INPUT", input.to_str().unwrap());
        assert!(stderr.contains(&told), "{stderr}");
        assert!(tree(&out).is_empty());
    }
}

#[test]
fn a_refusal_says_what_can_be_mended() {
    let scratch = Scratch::new();
    let cases = [
        (
            json!({"text": "a", "sample_rate_hz": -1}),
            "out_of_range",
            "sample_rate_hz -1 is not in 8000 to 48000",
        ),
        (
            json!({"text": "a", "sample_rate_hz": 1}),
            "out_of_range",
            "sample_rate_hz 1 is not in 8000 to 48000",
        ),
        (
            json!({"text": "a", "lead_silence_ms": -1}),
            "out_of_range",
            "lead_silence_ms -1 is not in 0 to 10000",
        ),
        (json!({"text": "a", "id": "a:b"}), "bad_output", "a colon behind its first letter"),
        (json!({"text": "a", "lexicon": "Qorvex"}), "invalid_request", "lexicon:1"),
        (json!({"text": "a", "foo": 1}), "unknown_field", "no field is called `foo` ("),
        (json!({"text": "a", "voce": 1}), "unknown_field", "is `voice` meant?"),
        (json!({"text": "a", "output": "q.mp3"}), "bad_output", "ends in .mp3, its encoding is wav"),
        (json!({"text": "a", "output": "q.raw"}), "bad_output", "ends in .raw"),
        (json!({"text": "a", "output": "q.WAV", "encoding": "f32le"}), "bad_output", "end it in .f32"),
    ];
    let good = [
        json!({"text": "a", "output": "q.WAV"}),
        json!({"text": "a", "output": "a.raw", "encoding": "mulaw"}),
        json!({"text": "a", "output": "v1.2"}),
        json!({"text": "a", "id": "q.mp3"}),
    ];
    let lines = cases.iter().map(|(line, ..)| line).chain(&good).map(|line| format!("{line}\n"));
    let (input, out) = (scratch.input(lines.collect::<String>().as_bytes()), scratch.path("out"));
    assert_eq!(batch(&input, &out, &[]).0, 2);
    let records = records(&out);
    for ((line, code, why), record) in cases.iter().zip(&records) {
        let error = &record["error"];
        assert!(
            error["code"] == *code && error["message"].as_str().unwrap().contains(why),
            "{line}: {record}"
        );
    }
    for record in &records[cases.len()..] {
        assert_eq!(record["status"], "ok", "{record}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_does_not_lead_out() {
    let scratch = Scratch::new();
    let (out, outside) = (scratch.path("out"), scratch.path("outside"));
    std::fs::create_dir_all(&out).unwrap();
    std::fs::create_dir_all(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, out.join("link")).unwrap();
    let input = scratch.input(br#"{"text":"a","output":"link/new/a.wav"}"#);
    let (status, stderr) = batch(&input, &out, &[]);
    assert_eq!(status, 2, "{stderr}");
    assert_eq!(records(&out)[0]["error"]["code"], "bad_output");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_second_run_redoes_what_is_missing_or_changed_and_nothing_else() {
    let scratch = Scratch::new();
    let (input, out) = (scratch.input(&lines(6)), scratch.path("out"));
    assert_eq!(batch(&input, &out, &[]).0, 0);
    let expected = tree(&out);
    let kept = |more: &[&str], spoken: usize, kept: usize| {
        let (status, stderr) = batch(&input, &out, more);
        assert_eq!(status, 0, "{stderr}");
        assert!(stderr.contains(&format!("{spoken} spoken, {kept} kept")), "{stderr}");
    };
    kept(&[], 0, 6);
    std::fs::remove_file(out.join("d1/u1.wav")).unwrap();
    std::fs::write(out.join("d2/u2.wav"), b"short").unwrap();
    kept(&[], 2, 4);
    assert!(tree(&out) == expected);
    let mut damaged = expected[Path::new("d0/u0.wav")].clone();
    damaged[100] ^= 1;
    std::fs::write(out.join("d0/u0.wav"), damaged).unwrap();
    kept(&[], 1, 5);
    assert!(tree(&out) == expected);
    kept(&["--rate", "1.5"], 6, 0);
    let changed = String::from_utf8(lines(6)).unwrap().replace("\"seed\":3", "\"seed\":33");
    std::fs::write(&input, changed).unwrap();
    kept(&["--rate", "1.5"], 1, 5);
}

#[test]
fn a_line_that_fails_leaves_the_file_of_an_earlier_run() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let line = |text: &str, speaker: &str| {
        scratch.input(json!({"id": "a", "text": text, "speaker": speaker}).to_string().as_bytes())
    };
    assert_eq!(batch(&line("river", "other"), &out, &[]).0, 0);
    let finished = std::fs::read(out.join("a.wav")).unwrap();
    for (text, speaker) in [("river", "nobody"), ("", "other")] {
        assert_eq!(batch(&line(text, speaker), &out, &[]).0, 2);
        assert_eq!(records(&out)[0]["status"], "failed");
        assert!(std::fs::read(out.join("a.wav")).unwrap() == finished, "{text} {speaker}");
    }
    // Its bytes are no reason to keep them for another text.
    let (status, stderr) = batch(&line("stone", "other"), &out, &[]);
    assert!(status == 0 && stderr.contains("1 spoken, 0 kept"), "{stderr}");
    assert!(std::fs::read(out.join("a.wav")).unwrap() != finished);
}

#[test]
fn a_line_that_is_kept_keeps_its_record_to_the_last_digit() {
    let scratch = Scratch::new();
    let (input, out) = (scratch.input(&lines(40)), scratch.path("out"));
    let rate = ["--sample-rate-hz", "44100"];
    assert_eq!(batch(&input, &out, &rate).0, 0);
    let manifest = || std::fs::read_to_string(out.join("manifest.jsonl")).unwrap();
    let before = manifest();
    // Another source: every record is read and written again.
    let moved = scratch.path("moved.jsonl");
    std::fs::rename(&input, &moved).unwrap();
    let (status, stderr) = batch(&moved, &out, &rate);
    assert!(status == 0 && stderr.contains(" 0 spoken, 40 kept"), "{stderr}");
    assert!(manifest().replace("moved.jsonl", "input.jsonl") == before);
}

#[test]
fn the_order_of_the_lines_does_not_change_a_file() {
    let scratch = Scratch::new();
    let text = String::from_utf8(lines(12)).unwrap();
    let (forth, back) = (scratch.path("forth"), scratch.path("back"));
    assert_eq!(batch(&scratch.input(text.as_bytes()), &forth, &[]).0, 0);
    let reversed: String = text.lines().rev().map(|line| format!("{line}\n")).collect();
    assert_eq!(batch(&scratch.input(reversed.as_bytes()), &back, &[]).0, 0);
    let audio = |out: &Path| {
        let mut files = tree(out);
        files.remove(Path::new("manifest.jsonl")).unwrap();
        files
    };
    assert!(audio(&forth) == audio(&back) && audio(&forth).len() == 12);
    let order: Vec<Value> = records(&back).iter().map(|record| record["id"].clone()).collect();
    assert_eq!((&order[0], &order[11]), (&json!("d2/u11"), &json!("d0/u0")));
}

#[test]
fn a_voice_without_a_speaker_of_its_own_takes_one_from_the_command_line_or_the_line() {
    let scratch = Scratch::new();
    let values = vec![0.25f32; 16];
    let speaker = scratch.path("speaker.json");
    std::fs::write(&speaker, serde_json::to_string(&values).unwrap()).unwrap();
    let input = [
        json!({"text": "a", "id": "default"}),
        json!({"text": "a", "id": "own", "speaker_embedding": values}),
        json!({"text": "a", "id": "short", "speaker_embedding": [1, 2.5]}),
        json!({"text": "a", "id": "word", "speaker_embedding": [1, "x"]}),
        json!({"text": "a", "id": "both", "speaker": "joe", "speaker_embedding": values}),
    ];
    let input = scratch.input(input.map(|line| line.to_string()).join("\n").as_bytes());
    let stock = root().join("tests/data/speecht5_tiny");
    let codes = |out: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mezzavoce"));
        let out = scratch.path(out);
        command
            .args(["batch", input.to_str().unwrap(), "--voice", stock.to_str().unwrap(), "--out"])
            .arg(&out);
        let (status, stderr) = told(command.args(more).output().unwrap());
        assert_eq!(status, 2, "{stderr}");
        records(&out).iter().map(|record| record["error"]["code"].clone()).collect::<Vec<_>>()
    };
    let refused = [json!("bad_embedding"), json!("wrong_type"), json!("conflicting_fields")];
    let without = codes("without", &[]);
    assert_eq!(without[..2], [json!("unknown_speaker"), Value::Null]);
    assert_eq!(without[2..], refused);
    let with = codes("with", &["--speaker", speaker.to_str().unwrap()]);
    assert_eq!(with[..2], [Value::Null, Value::Null]);
    let file = |name: &str| std::fs::read(scratch.path("with").join(name)).unwrap();
    assert!(file("default.wav") == file("own.wav"), "one embedding, two voices");
}

#[test]
fn a_file_of_another_run_is_not_taken_for_its_length() {
    let scratch = Scratch::new();
    let (input, out) = (scratch.input(b"{\"text\":\"river\",\"id\":\"a\"}\n"), scratch.path("out"));
    assert_eq!(batch(&input, &out, &[]).0, 0);
    let expected = tree(&out);
    let others = scratch.path("others");
    assert_eq!(batch(&input, &others, &["--seed", "9"]).0, 0);
    let mut of_same_length = std::fs::read(others.join("a.wav")).unwrap();
    of_same_length.resize(expected[Path::new("a.wav")].len(), 0);
    assert!(of_same_length != expected[Path::new("a.wav")]);
    // What a run with another seed leaves when it is killed between the file and its record.
    std::fs::write(out.join("a.wav"), of_same_length).unwrap();
    let (status, stderr) = batch(&input, &out, &[]);
    assert!(status == 0 && stderr.contains("1 spoken, 0 kept"), "{stderr}");
    assert!(tree(&out) == expected);
}

#[test]
fn a_default_speaker_that_no_voice_takes_stops_everything() {
    let scratch = Scratch::new();
    let (input, out) = (scratch.input(&lines(1)), scratch.path("out"));
    let short = scratch.path("short.json");
    std::fs::write(&short, "[1,2]").unwrap();
    for speaker in ["nobody", "missing.npy", short.to_str().unwrap()] {
        let (status, stderr) = batch(&input, &out, &["--speaker", speaker]);
        assert!(status == 2 && stderr.contains("speaker"), "{stderr}");
        assert!(std::fs::read_dir(&out).unwrap().next().is_none(), "{speaker} leaves something behind");
    }
    assert_eq!(batch(&input, &out, &["--speaker", "other"]).0, 0);
}

/// Kills `child` after `delay` unless it has ended.
fn kill_after(mut child: Child, delay: Duration) {
    std::thread::sleep(delay);
    let _ = child.kill();
    child.wait().unwrap();
}

fn check_kills(count: usize, kills: u64) {
    let scratch = Scratch::new();
    let input = scratch.input(&lines(count));
    let (whole, broken) = (scratch.path("whole"), scratch.path("broken"));
    let began = std::time::Instant::now();
    assert_eq!(batch(&input, &whole, &[]).0, 0);
    let unbroken = began.elapsed();
    for kill in 0..kills {
        // Spread over the run; what is random is where the machine stands by then.
        let delay = unbroken.mul_f64(0.2 + 0.8 * ((kill * 7 + 3) % 20) as f64 / 20.0);
        kill_after(command(&[input.to_str().unwrap()], &broken).spawn().unwrap(), delay);
        for (name, bytes) in tree(&broken) {
            let is_wav = name.extension().is_some_and(|kind| kind == "wav");
            let ours = name.starts_with(".mezzavoce-batch");
            assert!(!is_wav || ours || tree(&whole)[&name] == bytes, "{} is half a file", name.display());
        }
    }
    let (status, stderr) = batch(&input, &broken, &[]);
    assert_eq!(status, 0, "{stderr}");
    assert!(tree(&broken) == tree(&whole), "other files after {kills} kills");
}

/// A run that ends early with `status`, as `disturb` makes it, is taken up again to the tree of an unbroken one.
#[cfg(unix)]
fn check_early_end(status: i32, disturb: impl Fn(&mut Command), signal: Option<i32>) {
    let scratch = Scratch::new();
    let mut text = lines(60);
    text.extend(format!("{}\n", json!({"id": "long", "text": "winter river ".repeat(400)})).bytes());
    let input = scratch.input(&text);
    let (whole, broken) = (scratch.path("whole"), scratch.path("broken"));
    assert_eq!(batch(&input, &whole, &[]).0, 0);
    let mut first = command(&[input.to_str().unwrap()], &broken);
    disturb(&mut first);
    let child = first.spawn().unwrap();
    if let Some(signal) = signal {
        let spoken = || std::fs::read_dir(broken.join("d0")).is_ok_and(|mut files| files.next().is_some());
        let began = std::time::Instant::now();
        while !spoken() {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing was spoken");
            std::thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: it takes two numbers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    }
    let (ended, stderr) = told(child.wait_with_output().unwrap());
    assert_eq!(ended, status, "{stderr}");
    assert!(stderr.contains(" of 61 lines are done, as far as this run has come: run it again"), "{stderr}");
    assert!(!broken.join("manifest.jsonl").exists() && !broken.join("long.wav").exists());
    let (status, stderr) = batch(&input, &broken, &[]);
    assert_eq!(status, 0, "{stderr}");
    assert!(!stderr.contains(" 0 kept"), "what was finished is spoken again: {stderr}");
    assert!(tree(&broken) == tree(&whole));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_is_taken_up_again() {
    check_early_end(130, |_| (), Some(libc::SIGINT));
}

#[cfg(unix)]
#[test]
fn a_disk_that_takes_no_more_ends_the_run_and_keeps_what_is_finished() {
    use std::os::unix::process::CommandExt;
    let limit_files = || {
        let limit = libc::rlimit { rlim_cur: 600 << 10, rlim_max: 600 << 10 };
        // SAFETY: both are async-signal-safe and take plain values.
        let done = unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit)
        };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: what runs between fork and exec allocates nothing.
    let disturb = |command: &mut Command| unsafe { _ = command.pre_exec(limit_files) };
    check_early_end(5, disturb, None);
}

#[test]
fn a_killed_run_is_taken_up_again() {
    check_kills(60, 3);
}

#[test]
#[ignore = "minutes"]
fn five_hundred_lines_survive_twenty_kills() {
    check_kills(500, 20);
}

#[test]
fn stdin_and_several_files_are_read_in_their_order() {
    let scratch = Scratch::new();
    let (input, out) = (scratch.input(b"{\"text\":\"a\"}"), scratch.path("out"));
    let mut child = command(&[input.to_str().unwrap(), "-"], &out).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"{\"text\":\"b\"}\n5").unwrap();
    let (status, stderr) = told(child.wait_with_output().unwrap());
    assert_eq!(status, 2, "{stderr}");
    let records = records(&out);
    let sources: Vec<&str> = records.iter().map(|record| record["source"].as_str().unwrap()).collect();
    assert!(sources[0].ends_with("input.jsonl:1"), "{sources:?}");
    assert_eq!(sources[1..], ["stdin:1", "stdin:2"]);
}

#[test]
fn every_encoding_and_alias_is_served() {
    let scratch = Scratch::new();
    let input = [
        json!({"text": "a", "id": "s", "encoding": "s16le", "sample_rate_hz": 8000}),
        json!({"text": "a", "id": "m", "encoding": "mulaw", "sample_rate_hz": 8000}),
        json!({"text": "a", "id": "f", "encoding": "f32le", "sample_rate_hz": 8000, "lead_silence_ms": 500}),
        json!({"uttid": "g", "syn_text": "a", "prompt_text": "", "prompt_speech": null}),
        json!({"text": "a", "id": "p", "speaker_id": null, "extra": 1}),
    ];
    let input = input.map(|line| line.to_string()).join("\n");
    let out = scratch.path("out");
    let (status, stderr) = batch(&scratch.input(input.as_bytes()), &out, &["--allow-unknown"]);
    assert_eq!(status, 0, "{stderr}");
    let samples = |at: usize| records(&out)[at]["samples"].as_u64().unwrap();
    for (name, at, width) in [("s.s16", 0, 2), ("m.ul", 1, 1), ("f.f32", 2, 4)] {
        assert_eq!(std::fs::metadata(out.join(name)).unwrap().len(), samples(at) * width, "{name}");
    }
    assert_eq!(samples(2), samples(0) + 4000);
    assert!(out.join("g.wav").is_file() && out.join("p.wav").is_file());
}

#[test]
fn what_a_person_asked_wrongly_has_its_status() {
    let scratch = Scratch::new();
    let input = scratch.input(&lines(1));
    assert_eq!(batch(&scratch.path("missing.jsonl"), &scratch.path("out"), &[]).0, 5);
    assert_eq!(batch(&input, &input, &[]).0, 5);
    for shard in ["3/3", "x", "-1/2", "0/0"] {
        assert_eq!(batch(&input, &scratch.path("out"), &["--shard", shard]).0, 2, "{shard}");
    }
}
