//! Many streams at once: equal to themselves alone, out of each other's way, refused when they are too many.

mod support;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mezzavoce::engine::{AudioStream, ChunkSizes, EngineOptions, StreamRequest};
use mezzavoce::error::Error;
use mezzavoce::precision::Precision;
use mezzavoce::synthesizer::{Script, Synthesizer};
use mezzavoce::voice::Voice;
use support::{plan, root, runtime};

/// An engine for the default voice.
fn synthesizer(max_streams: usize, queue: usize) -> Synthesizer {
    load(&Voice::embedded().unwrap(), max_streams, queue)
}

fn load(voice: &Voice, max_streams: usize, queue: usize) -> Synthesizer {
    let options = EngineOptions {
        threads: 2,
        max_streams,
        queue,
        kv_cache_bytes: 1 << 30,
        slow_client_timeout: Duration::from_millis(500),
    };
    Synthesizer::load(runtime(), voice, &plan(voice, Precision::F32), &options).unwrap()
}

fn request(seed: u64) -> StreamRequest {
    StreamRequest {
        speaker: vec![1.0; 32],
        seed,
        chunk_sizes: ChunkSizes::default(),
        speaking_rate: 1.0,
        deadline: None,
    }
}

fn speak(synthesizer: &Synthesizer, text: &str, seed: u64) -> AudioStream {
    let segments = synthesizer.segments(&Script::Text(text.to_owned())).unwrap();
    synthesizer.speak(segments, request(seed)).unwrap()
}

fn samples(stream: AudioStream) -> Vec<f32> {
    stream.flat_map(|chunk| chunk.unwrap().samples).collect()
}

const TEXTS: [&str; 8] = [
    "The kettle was on.",
    "I took two steps forward and looked back, and there was nothing on the road but dust.",
    "No.",
    "She counted the steps: one, two, three. Then she stopped.",
    "A long letter came from the north on Tuesday, and nobody in the house could read the hand it was written in, \
     nor say who had sent it.",
    "Rain again.",
    "What would you have done?",
    "They sold the boat, the nets, and the small red house above the harbour.",
];

#[test]
fn eight_streams_at_once_equal_their_solo_runs() {
    let synthesizer = synthesizer(8, 0);
    let solo: Vec<Vec<f32>> = TEXTS.iter().map(|text| samples(speak(&synthesizer, text, 7))).collect();
    let together: Vec<AudioStream> = TEXTS.iter().map(|text| speak(&synthesizer, text, 7)).collect();
    for ((text, solo), stream) in TEXTS.iter().zip(&solo).zip(together) {
        let together = samples(stream);
        assert_eq!(solo.len(), together.len(), "{text}");
        let difference = support::max_abs_difference(solo, &together);
        println!("{text}: {} samples, off by {difference:.1e}", solo.len());
    }
}
