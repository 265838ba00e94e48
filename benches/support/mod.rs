//! What both benches need: the voices that are measured, and the texts.

#![allow(dead_code, reason = "each bench uses its own part")]

#[path = "../../tests/support/mod.rs"]
mod tests;

use std::path::Path;

use mezzavoce::precision::Precision;
use mezzavoce::text::{Frontend, Reading};
use mezzavoce::voice::Voice;
use mezzavoce::voice::config::{AcousticConfig, HifiGanConfig, VocoderConfig};

use tests::random_voice::{NEVER_STOPS, RandomVoice};
pub use tests::{plan, runtime};

/// The precision of every figure.
pub const PRECISION: Precision = Precision::F32;

/// Threads of every figure.
pub const THREADS: usize = 2;

/// 4, 12 and 60 words.
pub const TEXTS: [(&str, &str); 3] = [
    ("4_words", "Good evening, dear listeners."),
    ("12_words", "The river runs past the old mill and under the stone bridge."),
    (
        "60_words",
        "The river runs past the old mill and under the stone bridge. \
         Nobody has lived in the house behind it since the winter of the great flood. \
         In summer the children of the village come down here to swim, \
         and in autumn the path is covered with yellow leaves. \
         Whoever walks along it in the evening hears only the water and the wind.",
    ),
];

/// The text that stage benches use.
pub const SENTENCE: &str = TEXTS[1].1;

const SYMBOLS: (&str, &[u8]) = ("symbols.json", include_bytes!("../../models/default/symbols.json"));

/// 15 symbols a second, the pace of ordinary speech, are 4.2 frames of 16 ms each.
const STOCK_MANIFEST: &str = "[decoder]\nmax_frames_per_symbol = 4.2\n\n[text]\nfrontend = \"ipa\"\n";

/// Sentences that may run to the end of the position table.
const ENDLESS_MANIFEST: &str = "[decoder]\nmax_frames_per_symbol = 20.0\n\n[text]\nfrontend = \"ipa\"\n";

/// A random voice of the size of the stock SpeechT5 and its HiFi-GAN, which spells as the default voice does and
/// ends its sentences at the pace of speech.
pub fn stock_voice(max_speech_positions: usize) -> Voice {
    stock_sized_voice(max_speech_positions, STOCK_MANIFEST)
}

/// As [`stock_voice`], with sentences that may run to the end of the position table.
pub fn endless_stock_voice(max_speech_positions: usize) -> Voice {
    stock_sized_voice(max_speech_positions, ENDLESS_MANIFEST)
}

fn stock_sized_voice(max_speech_positions: usize, manifest: &'static str) -> Voice {
    let config = AcousticConfig {
        max_text_positions: 600,
        max_speech_positions,
        bos_token_id: 1,
        pad_token_id: 0,
        eos_token_id: 2,
        ..AcousticConfig::default()
    };
    random_voice(config, VocoderConfig::HifiGan(HifiGanConfig::default()), manifest)
}

/// A random voice of the size of the default voice, but for its position table.
pub fn default_sized_voice(max_speech_positions: usize) -> Voice {
    let default = Voice::embedded().unwrap();
    random_voice(
        AcousticConfig { max_speech_positions, ..default.config },
        default.vocoder_config,
        ENDLESS_MANIFEST,
    )
}

fn random_voice(config: AcousticConfig, vocoder: VocoderConfig, manifest: &'static str) -> Voice {
    let directory = tempfile::tempdir().unwrap();
    let recipe =
        RandomVoice { config, vocoder, seed: 1, stop_bias: NEVER_STOPS, spelling: SYMBOLS, manifest };
    recipe.write(directory.path()).unwrap();
    Voice::load(Path::new(directory.path()), None).unwrap()
}

/// The symbols of [`SENTENCE`].
pub fn sentence_ids(voice: &Voice) -> Vec<i64> {
    Frontend::load(voice).unwrap().segments(SENTENCE, &Reading::default()).unwrap().remove(0).ids
}

/// The voice's own speaker, or one of ones.
pub fn speaker(voice: &Voice) -> Vec<f32> {
    voice.speakers.named(None).unwrap_or_else(|_| vec![1.0; voice.config.speaker_embedding_dim])
}
