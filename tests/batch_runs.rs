//! `batch` beside other runs: shards and what joins them, directories that are taken, inputs that must stay, signals.

#[path = "support/batch.rs"]
mod program;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use program::{Scratch, batch, command, lines, merge, told, tree};
use serde_json::json;
use support::root;

#[test]
fn jobs_and_shards_do_not_change_a_byte() {
    let scratch = Scratch::new();
    let input = scratch.input(&lines(30));
    let whole = scratch.path("whole");
    assert_eq!(batch(&input, &whole, &[]).0, 0);
    let expected = tree(&whole);
    assert_eq!(expected.len(), 31);

    let alone = scratch.path("alone");
    assert_eq!(batch(&input, &alone, &["--jobs", "1"]).0, 0);
    assert!(tree(&alone) == expected, "--jobs 1 gives other files");

    let shards: Vec<PathBuf> = (0..3).map(|index| scratch.path(&format!("shard{index}"))).collect();
    let merged = scratch.path("merged");
    let all: Vec<&Path> = shards.iter().map(PathBuf::as_path).collect();
    for (index, shard) in shards.iter().enumerate() {
        if index == 2 {
            let missing = merge(&all[..2], &merged);
            assert!(missing.0 == 2 && missing.1.contains("shard 2 of 3 is missing"), "{}", missing.1);
        }
        assert_eq!(batch(&input, shard, &["--shard", &format!("{index}/3")]).0, 0);
    }
    let work = shards[1].join(".mezzavoce-batch-1-of-3");
    std::fs::create_dir(&work).unwrap();
    let lock = std::fs::File::create(work.join("lock")).unwrap();
    for (is_spoken, why) in
        [(true, "shard 1 of 3 is still being spoken"), (false, "shard 1 of 3 is not finished")]
    {
        let locked = if is_spoken { lock.try_lock().is_ok() } else { lock.unlock().is_ok() };
        assert!(locked);
        let refused = merge(&all, &merged);
        assert!(refused.0 == 2 && refused.1.contains(why), "{}", refused.1);
    }
    assert!(!merged.exists());
    std::fs::remove_dir_all(&work).unwrap();
    let (status, stderr) = merge(&all, &merged);
    assert!(status == 0 && stderr.contains("30 lines joined from 3 shards"), "{stderr}");
    assert!(tree(&merged) == expected, "the merged shards are other files");
}

#[test]
fn what_is_read_is_not_written_over() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    std::fs::create_dir_all(out.join("sub")).unwrap();
    let check = |input: &str, output: &str, more: &[&str], named: [&str; 2]| {
        let input = out.join(input);
        let line = json!({"text": "a", "output": output}).to_string();
        std::fs::write(&input, &line).unwrap();
        let before = tree(&out);
        let (status, stderr) = batch(&input, &out, more);
        assert!(status == 2 && named.iter().all(|name| stderr.contains(name)), "{stderr}");
        assert!(tree(&out) == before, "{output} is overwritten: {stderr}");
        std::fs::remove_file(&input).unwrap();
    };
    let manifest = ["the input", "the manifest of this run"];
    check("manifest.jsonl", "a.wav", &[], manifest);
    check("manifest-0-of-2.jsonl", "a.wav", &["--shard", "0/2"], manifest);
    check("in.jsonl", "in.jsonl", &[], ["line 1", "the input"]);
    check("sub/in.jsonl", "sub/./in.jsonl", &[], ["line 1", "the input"]);
    check(".mezzavoce-x", "a.wav", &[], ["the input", "files of a run"]);
    let lexicon = out.join("words.tsv");
    std::fs::write(&lexicon, "Qorvex\tkwˈɔːɹvɛks\n").unwrap();
    let voice = format!("own={}", out.display());
    std::fs::copy(root().join("models/tiny/config.json"), out.join("config.json")).unwrap();
    check("in.jsonl", "config.json", &["--voice", &voice], ["line 1", "a file of the voice"]);
    check("in.jsonl", "words.tsv", &["--lexicon", lexicon.to_str().unwrap()], ["line 1", "the lexicon"]);
}

#[test]
fn shards_of_different_runs_are_not_joined() {
    let scratch = Scratch::new();
    let shard = |name: &str, index: u64, count: usize, more: &[&str]| {
        let out = scratch.path(name);
        let index = format!("{index}/2");
        let mut options = vec!["--shard", &index];
        options.extend(more);
        let (status, stderr) = batch(&scratch.input(&lines(count)), &out, &options);
        assert_eq!(status, 0, "{stderr}");
        out
    };
    let first = shard("first", 0, 6, &[]);
    let check = |other: &Path, why: &[&str]| {
        let merged = scratch.path("merged");
        let (status, stderr) = merge(&[&first, other], &merged);
        assert!(status == 2 && why.iter().all(|why| stderr.contains(why)), "{stderr}");
        assert!(!merged.exists());
    };
    check(&shard("shorter", 1, 5, &[]), &["6 lines, 5 lines", "shorter"]);
    check(&shard("seed", 1, 6, &["--seed", "9"]), &["--seed (42, 9)"]);
    check(&shard("mulaw", 1, 6, &["--encoding", "mulaw"]), &["--encoding"]);
    let text = String::from_utf8(lines(6)).unwrap().replace("river", "rover");
    let other = scratch.path("text");
    assert_eq!(batch(&scratch.input(text.as_bytes()), &other, &["--shard", "1/2"]).0, 0);
    check(&other, &["the text of the input"]);

    let good = shard("good", 1, 6, &[]);
    let manifest = good.join("manifest-1-of-2.jsonl");
    let whole = std::fs::read_to_string(&manifest).unwrap();
    let short: String = whole.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(&manifest, short).unwrap();
    check(&good, &["shard 1 of 2 in ", "good lacks line 6"]);
    std::fs::write(&manifest, "{\"audio\":\"a.wav\"}\n").unwrap();
    check(&good, &["foreign manifest", "line 2"]);
    std::fs::write(&manifest, format!("{whole}{whole}")).unwrap();
    check(&good, &["more than its share"]);
    std::fs::write(&manifest, &whole).unwrap();
    std::fs::write(good.join("manifest-0-of-3.jsonl"), "").unwrap();
    check(&good, &["shards of 2", "shards of 3"]);
    std::fs::remove_file(good.join("manifest-0-of-3.jsonl")).unwrap();
    std::fs::write(good.join("d2/u5.wav"), "").unwrap();
    check(&good, &["line 6", "d2/u5.wav"]);
    let (status, stderr) = told(command(&["--merge", "x"], &scratch.path("merged")).output().unwrap());
    assert!(status == 2 && stderr.contains("--voice"), "{stderr}");
}

/// Runs a full run, a shard, or a shard of another input beside a shard that waits for the end of a long text.
#[cfg(unix)]
#[test]
fn one_directory_takes_one_run_at_a_time_or_shards_of_one_run() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let long = |name: &str| {
        let path = scratch.path(name);
        let slow = json!({"id": "long", "text": "winter river ".repeat(2000)});
        std::fs::write(&path, format!("{slow}\n{}\n", json!({"id": name, "text": "a"}))).unwrap();
        path
    };
    let (input, other) = (long("input"), long("other"));
    let mut first = command(&[input.to_str().unwrap(), "--shard", "0/2"], &out).spawn().unwrap();
    let journal = out.join(".mezzavoce-batch-0-of-2/journal.jsonl");
    while !journal.exists() {
        assert!(first.try_wait().unwrap().is_none(), "the first shard has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    let refused = [batch(&input, &out, &[]), batch(&other, &out, &["--shard", "1/2"])];
    let beside = batch(&input, &out, &["--shard", "1/2"]);
    assert!(first.try_wait().unwrap().is_none(), "the first shard has ended");
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(
        refused.iter().all(|(status, stderr)| *status == 75 && stderr.contains("writes to")),
        "{refused:?}"
    );
    assert_eq!(beside.0, 0, "{}", beside.1);
    assert!(!out.join("other.wav").exists() && out.join("input.wav").exists());
}

#[cfg(unix)]
#[test]
fn a_run_that_waits_for_stdin_ends_when_it_is_told_to() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let child = command(&["-"], &out).stdin(Stdio::piped()).spawn().unwrap();
        check_signal(child, signal, &out.join(".mezzavoce-batch/stdin.jsonl"));
        assert!(std::fs::read_dir(&out).unwrap().next().is_none());
    }
}

#[cfg(unix)]
#[test]
fn a_run_that_waits_for_a_silent_server_ends_when_it_is_told_to() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    // The system accepts the connection; nobody ever answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mezzavoce"));
    command.arg("batch").arg(scratch.input(&lines(1))).arg("--out").arg(&out).stderr(Stdio::null());
    command.args(["--server-timeout", "10m", "--server", &silent.local_addr().unwrap().to_string()]);
    check_signal(command.spawn().unwrap(), libc::SIGTERM, &out.join(".mezzavoce-batch/journal.jsonl"));
}

/// Once `begun` is there, `signal` ends `child` with 130.
#[cfg(unix)]
fn check_signal(mut child: Child, signal: i32, begun: &Path) {
    while !begun.exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: it takes two numbers; the child has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    let began = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("signal {signal} does not end it");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[cfg(unix)]
#[test]
fn a_run_does_not_keep_its_files_behind_a_link() {
    let scratch = Scratch::new();
    let (input, out, outside) = (scratch.input(&lines(1)), scratch.path("out"), scratch.path("outside"));
    std::fs::create_dir_all(&out).unwrap();
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("precious"), "a").unwrap();
    for (name, target) in
        [(".mezzavoce-batch", outside.clone()), (".mezzavoce-lock", outside.join("precious"))]
    {
        std::os::unix::fs::symlink(target, out.join(name)).unwrap();
        let (status, stderr) = batch(&input, &out, &[]);
        assert!(status == 2 && stderr.contains("is a link"), "{stderr}");
        assert_eq!(std::fs::read(outside.join("precious")).unwrap(), b"a");
        std::fs::remove_file(out.join(name)).unwrap();
    }
}
