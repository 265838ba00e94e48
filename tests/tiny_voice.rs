//! `models/tiny`: a voice of some 47,000 random weights, for tests that need a voice and not its sound.
//!
//! [`recipe`] makes it, and `the_committed_files_are_what_the_recipe_makes` holds the files against it. After
//! a change of the recipe, `UPDATE_TINY_VOICE=1 cargo test --test tiny_voice committed` writes them anew.
//!
//! It spells as the default voice does, so every text and every phoneme string of one is speakable by the
//! other. It never stops by itself: a sentence ends at its cap, which is one decoder step (two mel frames,
//! 8 ms of audio) for each of its symbols, so a test knows the length of what it will hear. A first chunk of
//! one frame is final after 4 steps.

mod support;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use mezzavoce::decoder::End;
use mezzavoce::engine::{AudioChunk, ChunkSizes, EngineOptions, StreamRequest};
use mezzavoce::precision::Precision;
use mezzavoce::synthesizer::{Script, Synthesizer};
use mezzavoce::text::Reading;
use mezzavoce::voice::Voice;
use mezzavoce::voice::config::{AcousticConfig, VocoderConfig, VocosConfig};
use support::random_voice::{NEVER_STOPS, RandomVoice};
use support::{plan, root, runtime};

const SYMBOLS: &[u8] = include_bytes!("../models/default/symbols.json");

const MANIFEST: &str = r#"# Made by tests/tiny_voice.rs.

[voice]
name = "tiny"
language = "en-US"
licence = "random numbers"
description = "For tests: noise, one decoder step a symbol."

[text]
frontend = "ipa"

[mel]
sample_rate_hz = 16000
n_fft = 256
hop_length = 64
win_length = 256
fmin_hz = 0.0
fmax_hz = 8000.0
log = "ln"
floor = 1e-5
padding = "same"

[decoder]
max_frames_per_symbol = 2.0

[speaker]
default = "one"

[speakers]
one = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
other = [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]
"#;

fn recipe() -> RandomVoice<'static> {
    let config = AcousticConfig {
        vocab_size: 96,
        hidden_size: 32,
        encoder_layers: 1,
        encoder_attention_heads: 2,
        encoder_ffn_dim: 64,
        encoder_max_relative_position: 16,
        decoder_layers: 1,
        decoder_attention_heads: 2,
        decoder_ffn_dim: 64,
        num_mel_bins: 16,
        reduction_factor: 2,
        speaker_embedding_dim: 8,
        speech_decoder_prenet_units: 16,
        speech_decoder_postnet_layers: 2,
        speech_decoder_postnet_units: 16,
        speech_decoder_postnet_kernel: 3,
        max_text_positions: 128,
        max_speech_positions: 256,
        bos_token_id: 1,
        pad_token_id: 0,
        eos_token_id: 2,
        ..AcousticConfig::default()
    };
    let vocoder = VocosConfig {
        sampling_rate: 16_000,
        n_fft: 256,
        hop_length: 64,
        win_length: 256,
        padding: "same".to_owned(),
        model_in_dim: 16,
        dim: 32,
        intermediate_dim: 64,
        num_layers: 1,
        kernel_size: 3,
        max_magnitude: 100.0,
    };
    RandomVoice {
        config,
        vocoder: VocoderConfig::Vocos(vocoder),
        seed: 1,
        stop_bias: NEVER_STOPS,
        spelling: ("symbols.json", SYMBOLS),
        manifest: MANIFEST,
    }
}

fn dir() -> PathBuf {
    root().join("models/tiny")
}

#[test]
fn the_committed_files_are_what_the_recipe_makes() {
    let recipe = recipe();
    if std::env::var_os("UPDATE_TINY_VOICE").is_some() {
        recipe.write(&dir()).unwrap();
    }
    let mut total = 0;
    for (file, made) in recipe.files() {
        let committed = std::fs::read(dir().join(file)).unwrap();
        total += committed.len();
        assert!(committed == made, "models/tiny/{file} differs: set UPDATE_TINY_VOICE=1 to write it anew");
    }
    assert!(total < 300_000, "{total} bytes: the test voice outgrows its 300 kB");
}

/// Speaks `text`; -> its chunks.
fn speak(
    synthesizer: &Synthesizer,
    text: &str,
    speaker: Vec<f32>,
    chunk_sizes: ChunkSizes,
) -> Vec<AudioChunk> {
    let script = Script::Text(text.to_owned());
    let request = StreamRequest { chunk_sizes, ..StreamRequest::new(speaker) };
    let segments = synthesizer.passage(&script, &Reading::default()).unwrap().segments;
    synthesizer.speak(segments, request).unwrap().collect::<Result<_, _>>().unwrap()
}

fn samples(chunks: &[AudioChunk]) -> Vec<f32> {
    chunks.iter().flat_map(|chunk| chunk.samples.iter().copied()).collect()
}

/// The root mean square that noise at an ordinary volume has.
const AUDIBLE: RangeInclusive<f32> = 0.01..=0.5;

#[test]
fn is_spoken_end_to_end() {
    let voice = Voice::load(&dir(), None).unwrap();
    let plan = plan(&voice, Precision::F32);
    let synthesizer = Synthesizer::load(runtime(), &voice, &plan, &EngineOptions::solo(1)).unwrap();
    let speaker = || voice.speakers.named(None).unwrap();
    let text = "The river runs past the old mill. Nobody lives there now.";

    let chunks = speak(&synthesizer, text, speaker(), ChunkSizes::fixed(4));
    let sentences: Vec<_> = chunks.iter().filter_map(|chunk| chunk.completes.as_ref()).collect();
    assert_eq!(sentences.len(), 2);
    let hop = voice.vocoder_config.hop_length();
    let mut expected = 0;
    for sentence in sentences {
        assert_eq!(sentence.ending.end, End::Cap);
        assert_eq!(sentence.ending.steps, sentence.segment.ids.len());
        assert_eq!(sentence.segment.unmapped, Vec::<char>::new());
        expected += sentence.ending.frames * hop;
        expected += sentence.segment.pause.duration_ms() as usize * 16;
    }
    let streamed = samples(&chunks);
    assert_eq!(streamed.len(), expected);
    let spoken: Vec<f32> = streamed.iter().copied().filter(|&sample| sample != 0.0).collect();
    let square: f32 = spoken.iter().map(|sample| sample * sample).sum();
    let volume = (square / spoken.len() as f32).sqrt();
    assert!(AUDIBLE.contains(&volume), "the root mean square of the samples is {volume}");

    let whole = samples(&speak(&synthesizer, text, speaker(), ChunkSizes::fixed(1000)));
    let apart = support::max_abs_difference(&streamed, &whole);
    assert!(apart < 1e-4, "chunks and whole are {apart} apart");

    let other = voice.speakers.named(Some("other")).unwrap();
    let other = samples(&speak(&synthesizer, text, other, ChunkSizes::fixed(1000)));
    assert!(support::max_abs_difference(&other, &whole) > 0.01, "both speakers sound alike");
    let text = "The river runs past the old mull. Nobody lives there now.";
    let vowel = samples(&speak(&synthesizer, text, speaker(), ChunkSizes::fixed(1000)));
    assert!(support::max_abs_difference(&vowel, &whole) > 0.01, "another vowel changes nothing");
}
