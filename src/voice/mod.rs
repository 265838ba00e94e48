//! A voice directory in, a validated [`Voice`] out.

pub mod checkpoint;
pub mod config;

use std::collections::BTreeMap;

use checkpoint::Checkpoint;
use config::{AcousticConfig, VocoderConfig};

/// Everything a voice is, validated against its own configuration.
#[derive(Debug)]
pub struct Voice {
    pub name: String,
    pub config: AcousticConfig,
    pub acoustic: Checkpoint,
    pub vocoder_config: VocoderConfig,
    pub vocoder: Checkpoint,
    pub language: String,
    pub symbols: SymbolTable,
    pub speakers: BTreeMap<String, Vec<f32>>,
    pub default_speaker: Option<String>,
    /// Sum of the sigmoid stop values of one step at which a sentence ends.
    pub stop_threshold: f32,
    /// The longest sequence that is spoken in one go, in symbols, `max_text_positions` at most.
    pub segment_symbols: usize,
    /// A sentence is cut, and reported as cut, at this many mel frames per symbol.
    pub max_frames_per_symbol: f32,
}

/// How a voice spells text.
#[derive(Debug)]
pub enum SymbolTable {
    /// IPA characters: `^`, the characters, `$`.
    Ipa(BTreeMap<char, i64>),
    /// A SentencePiece character model (`spm_char.model`), its bytes.
    Characters(Vec<u8>),
}
