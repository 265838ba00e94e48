//! What is streamed against what is made at once, and the same seed against itself.

mod support;

use std::process::Command;

use mezzavoce::engine::{ChunkSizes, Chunker, Tail};
use mezzavoce::postnet::Postnet;
use mezzavoce::precision::Precision;
use mezzavoce::vocoder::Vocoder;
use mezzavoce::voice::Voice;
use support::{Reference, max_abs_difference, plan, root, runtime};

/// The stages behind the decoder.
fn tail(voice: &Voice) -> Tail {
    let plan = plan(voice, Precision::F32);
    let postnet = Postnet::load(runtime(), voice, &plan, 1).unwrap();
    let vocoder = Vocoder::load(runtime(), voice, &plan, 1).unwrap();
    Tail { postnet, vocoder }
}

/// The chunks that `raw` becomes when it arrives in portions of `step` values.
fn chunks(tail: &mut Tail, raw: &[f32], step: usize, sizes: ChunkSizes, rate: f32) -> Vec<Vec<f32>> {
    let mut chunker = Chunker::new(tail, sizes, rate);
    let mut chunks = Vec::new();
    for frames in raw.chunks(step) {
        chunker.push(frames);
        chunks.extend(std::iter::from_fn(|| chunker.next(tail).unwrap()));
    }
    chunker.end();
    chunks.extend(std::iter::from_fn(|| chunker.next(tail).unwrap()));
    assert!(chunker.is_done());
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}

fn check(voice: &Voice, raw: &[f32]) {
    let mut tail = tail(voice);
    let hop_length = voice.vocoder_config.hop_length();
    let step = voice.config.reduction_factor * voice.config.num_mel_bins;
    let raw_frames = (raw.len() / voice.config.num_mel_bins) as f64;
    for (rate, sizes) in [(1.0, &[1, 2, 5, 40][..]), (0.7, &[2, 40]), (1.6, &[2, 40])] {
        let whole = chunks(&mut tail, raw, raw.len(), ChunkSizes::fixed(usize::MAX / 2), rate).concat();
        assert_eq!(whole.len(), (raw_frames / f64::from(rate)).ceil() as usize * hop_length);
        for &frames in sizes {
            let streamed = chunks(&mut tail, raw, step, ChunkSizes::fixed(frames), rate);
            let (last, others) = streamed.split_last().unwrap();
            assert!(
                others.iter().all(|chunk| chunk.len() == frames * hop_length),
                "uneven chunks of {frames}"
            );
            assert_eq!(last.len() % hop_length, 0);
            let difference = max_abs_difference(&streamed.concat(), &whole);
            let case = format!("{}: {} chunks of {frames} frames at {rate}", voice.name, streamed.len());
            println!("{case} are off by {difference:.1e}");
            assert!(difference <= 1e-5, "{case} are off by {difference}");
        }
    }
}

/// The raw mel of every case of a reference, one after the other.
fn raw_mel(reference: &str) -> Vec<f32> {
    let reference =
        Reference::open(&root().join("tests/data").join(reference).join("expected.safetensors")).unwrap();
    (0..3).flat_map(|case| reference.f32(&format!("case{case}.mel_before_postnet"))).collect()
}

#[test]
fn chunks_of_any_size_equal_the_whole_with_vocos() {
    check(&Voice::embedded().unwrap(), &raw_mel("default_voice"));
}

#[test]
fn chunks_of_any_size_equal_the_whole_with_hifigan() {
    let voice = Voice::load(&root().join("tests/data/speecht5_tiny"), None).unwrap();
    check(&voice, &raw_mel("speecht5_tiny"));
}

/// Raw samples of a separate process.
fn process(seed: &str) -> Vec<u8> {
    let text = "The same words, twice over.";
    let output = Command::new(env!("CARGO_BIN_EXE_mezzavoce"))
        .args(["say", "--raw", "--seed", seed, "--threads", "2", text])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_seed_gives_the_same_bytes_in_two_processes_and_another_does_not() {
    let first = process("42");
    assert!(first.len() > 22_050, "{} bytes of audio", first.len());
    assert_eq!(first, process("42"));
    assert_ne!(first, process("43"));
}
