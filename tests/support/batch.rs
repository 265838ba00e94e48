//! `batch` as a person starts it, and what it leaves.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::root;

/// `batch` with the tiny voice.
pub fn command(arguments: &[&str], out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mezzavoce"));
    let voice = format!("tiny={}", root().join("models/tiny").display());
    command.arg("batch").args(arguments).arg("--out").arg(out).args(["--voice", &voice]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs with the tiny voice. -> exit status and stderr
pub fn batch(input: &Path, out: &Path, more: &[&str]) -> (i32, String) {
    let mut arguments = vec![input.to_str().unwrap()];
    arguments.extend(more);
    told(command(&arguments, out).output().unwrap())
}

/// Joins `shards` into `out`. -> exit status and stderr
pub fn merge(shards: &[&Path], out: &Path) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mezzavoce"));
    told(command.args(["batch", "--merge"]).args(shards).arg("--out").arg(out).output().unwrap())
}

pub fn told(output: Output) -> (i32, String) {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!stderr.contains("panicked"), "{stderr}");
    (output.status.code().unwrap(), stderr)
}

pub struct Scratch {
    pub directory: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn input(&self, bytes: &[u8]) -> PathBuf {
        let path = self.path("input.jsonl");
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

pub fn records_of(manifest: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(manifest).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn records(out: &Path) -> Vec<Value> {
    records_of(&out.join("manifest.jsonl"))
}

/// Every file below `directory` with its bytes.
pub fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => {
                    // Of a run that goes on, what is unfinished comes and goes.
                    let Ok(bytes) = std::fs::read(&path) else { continue };
                    files.insert(path.strip_prefix(directory).unwrap().to_path_buf(), bytes);
                }
            }
        }
    }
    files
}

pub fn lines(count: usize) -> Vec<u8> {
    let words = ["river", "stone", "mill", "bridge", "winter"];
    let line = |n: usize| {
        let text: Vec<&str> = (0..1 + n % 4).map(|i| words[(n + i) % words.len()]).collect();
        format!("{}\n", json!({"id": format!("d{}/u{n}", n % 3), "text": text.join(" "), "seed": n}))
    };
    (0..count).map(line).collect::<String>().into_bytes()
}
