//! An engine that is dropped leaves neither threads nor memory behind. Alone in its process, to count both.

mod support;

use std::fs;
use std::time::Duration;

use mezzavoce::engine::{EngineOptions, StreamRequest};
use mezzavoce::precision::Precision;
use mezzavoce::synthesizer::{Script, Synthesizer};
use mezzavoce::text::Reading;
use mezzavoce::voice::Voice;
use support::{plan, runtime};

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

fn rss_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Starts an engine, drops it while it speaks, and tells the memory that it took.
fn live_and_die(voice: &Voice) -> usize {
    let before = rss_kib();
    let options = EngineOptions {
        threads: 2,
        max_streams: 4,
        queue: 0,
        kv_cache_bytes: 1 << 30,
        slow_client_timeout: Duration::from_secs(600),
    };
    let synthesizer = Synthesizer::load(runtime(), voice, &plan(voice, Precision::F32), &options).unwrap();
    let request = || StreamRequest::new(vec![1.0; voice.config.speaker_embedding_dim]);
    let text =
        Script::Text("She counted the steps. Then she stopped. Nobody came, and nobody spoke.".to_owned());
    let speak = || {
        synthesizer
            .speak(synthesizer.passage(&text, &Reading::default()).unwrap().segments, request())
            .unwrap()
    };
    let (mut reads, stalls) = (speak(), speak());
    reads.next().unwrap().unwrap();
    let taken = rss_kib().saturating_sub(before);
    drop(synthesizer);
    drop((reads, stalls));
    taken
}

#[test]
fn a_dropped_engine_ends_its_threads_and_frees_its_memory() {
    if !cfg!(target_os = "linux") {
        println!("skipped: threads and memory are counted in /proc");
        return;
    }
    let voice = Voice::embedded().unwrap();
    // The first one brings what stays: the library, its thread pools' globals, the lexicon.
    let taken = live_and_die(&voice);
    let (threads_before, rss_before) = (threads(), rss_kib());
    for _ in 0..8 {
        live_and_die(&voice);
    }
    let grown = rss_kib().saturating_sub(rss_before);
    println!("the first engine took {taken} KiB; after eight more, {grown} KiB more are resident");
    assert_eq!(threads(), threads_before);
    // The allocator keeps some of what is freed; engines that leaked would be eight.
    assert!(grown < taken, "{grown} KiB more after eight engines of {taken} KiB");
}
