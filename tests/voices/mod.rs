//! Front-ends for tests, from symbol tables alone.

use std::path::PathBuf;

use mezzavoce::text::Frontend;
use mezzavoce::voice::SymbolTable;
use mezzavoce::voice::config::AcousticConfig;

pub fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn config(vocab_size: usize, positions: usize, [bos, pad, eos]: [i64; 3]) -> AcousticConfig {
    serde_json::from_value(serde_json::json!({
        "vocab_size": vocab_size, "max_text_positions": positions, "max_speech_positions": 1200,
        "bos_token_id": bos, "pad_token_id": pad, "eos_token_id": eos,
        "hidden_size": 64, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 128,
        "encoder_max_relative_position": 16, "decoder_layers": 2, "decoder_attention_heads": 4,
        "decoder_ffn_dim": 128, "layer_norm_eps": 1e-5, "num_mel_bins": 80, "reduction_factor": 2,
        "speaker_embedding_dim": 16, "speech_decoder_prenet_layers": 2, "speech_decoder_prenet_units": 32,
        "speech_decoder_prenet_dropout": 0.5, "speech_decoder_postnet_layers": 3,
        "speech_decoder_postnet_units": 32, "speech_decoder_postnet_kernel": 5
    }))
    .unwrap()
}

/// The default voice's IPA table; segments of `budget` ids.
pub fn ipa(budget: usize) -> Frontend {
    let json = std::fs::read_to_string(data("symbols.json")).unwrap();
    let symbols = SymbolTable::Ipa(serde_json::from_str(&json).unwrap());
    Frontend::with_symbols(&symbols, &config(96, 600, [1, 0, 2]), budget, "ipa").unwrap()
}

/// The tiny SpeechT5's character model; segments of `budget` ids.
#[allow(dead_code)]
pub fn characters(budget: usize) -> Frontend {
    let symbols = SymbolTable::Characters(std::fs::read(data("speecht5_tiny/spm_char.model")).unwrap());
    Frontend::with_symbols(&symbols, &config(40, 600, [0, 1, 2]), budget, "characters").unwrap()
}
