//! The text front-end: prose, and floods of one kind of character, for each byte.
//!
//! Prose of 1,000 characters is to take less than a millisecond, a byte of a flood no more than three times what a
//! byte of prose takes.

use std::time::Duration;

use criterion::{Criterion, Throughput};
use mezzavoce::text::{MAX_TEXT_BYTES, Reading};

#[path = "../tests/voices/mod.rs"]
mod voices;

const PROSE: &str =
    "It was 5 p.m. when Dr. Lee, who had walked 3.5 km in the rain, paid $4.20 for tea and went home. ";

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let (ipa, characters) = (voices::ipa(400), voices::characters(400));
    let reading = Reading::default();
    let prose: String = PROSE.chars().cycle().take(1000).collect();
    for (name, frontend) in [("ipa", &ipa), ("characters", &characters)] {
        criterion.bench_function(&format!("text/prose_1000_characters/{name}"), |bencher| {
            bencher.iter(|| frontend.segments(&prose, &reading).unwrap());
        });
    }
    let mut group = criterion.benchmark_group("text/flood");
    group.throughput(Throughput::Bytes(MAX_TEXT_BYTES as u64));
    let floods =
        [("prose", PROSE), ("digits", "9"), ("parentheses", "("), ("spaces", " "), ("marks", "\u{301}")];
    for (name, unit) in floods {
        let text = unit.repeat(MAX_TEXT_BYTES / unit.len());
        group.bench_function(name, |bencher| bencher.iter(|| characters.segments(&text, &reading).is_ok()));
    }
    group.finish();
    criterion.final_summary();
}
