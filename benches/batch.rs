//! Lines a second with `--jobs 1` and with more, the same threads: audio-hours per hour of the default voice.
//!
//! Prints a line for every number of jobs; the first one is what the others are held against.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

const LINES: usize = 200;
const JOBS: [&str; 5] = ["1", "4", "8", "16", "32"];
const TEXTS: [&str; 4] = [
    "Good evening, dear listeners.",
    "The river runs past the old mill and under the stone bridge.",
    "Nobody has lived in the house behind it since the winter of the great flood.",
    "In summer the children of the village come down here to swim, and in autumn the path is covered with leaves.",
];

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input.jsonl");
    let line = |n: usize| format!("{}\n", json!({"text": TEXTS[n % TEXTS.len()], "seed": n}));
    std::fs::write(&input, (0..LINES).map(line).collect::<String>()).unwrap();
    let none = directory.path().join("none.jsonl");
    std::fs::write(&none, "").unwrap();
    let mut alone = None;
    for jobs in JOBS {
        let out = directory.path().join(jobs);
        let start = run(&none, &directory.path().join("start"), jobs);
        let time = run(&input, &out, jobs).saturating_sub(start);
        let audio_s: f64 = std::fs::read_to_string(out.join("manifest.jsonl"))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seconds"].as_f64().unwrap())
            .sum();
        let speed = audio_s / time.as_secs_f64();
        let factor = speed / *alone.get_or_insert(speed);
        println!("--jobs {jobs}: {speed:.1} hours of audio an hour, {factor:.2} times --jobs 1");
    }
}

fn run(input: &Path, out: &Path, jobs: &str) -> Duration {
    let began = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mezzavoce"));
    command.arg("batch").arg(input).arg("--out").arg(out).args(["--quiet", "--threads", "2", "--jobs", jobs]);
    assert!(command.status().unwrap().success());
    began.elapsed()
}
