//! `config.json` in, the sizes of an acoustic model out.
//!
//! `transformers` leaves fields out that have its default, so an absent field is that default
//! (`configuration_speecht5.py`, 5.24). Never reads a tensor.

use serde::Deserialize;

use super::bounds::{
    Checked, MAX_LAYERS, MAX_POSITIONS, MAX_VOCABULARY, MAX_WIDTH, SEGMENT_SYMBOLS, between, json, odd,
    open_unit, position_table, stream_cache,
};
pub use super::training_config::TrainingConfig;
pub use super::vocoder_config::{HifiGanConfig, VocoderConfig, VocosConfig};

/// The fields of a Hugging Face `SpeechT5Config` that shape the graphs.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct AcousticConfig {
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub encoder_layers: usize,
    pub encoder_attention_heads: usize,
    pub encoder_ffn_dim: usize,
    pub encoder_max_relative_position: usize,
    pub decoder_layers: usize,
    pub decoder_attention_heads: usize,
    pub decoder_ffn_dim: usize,
    pub layer_norm_eps: f32,
    pub num_mel_bins: usize,
    pub reduction_factor: usize,
    pub speaker_embedding_dim: usize,
    pub speech_decoder_prenet_layers: usize,
    pub speech_decoder_prenet_units: usize,
    pub speech_decoder_prenet_dropout: f32,
    pub speech_decoder_postnet_layers: usize,
    pub speech_decoder_postnet_units: usize,
    pub speech_decoder_postnet_kernel: usize,
    pub max_text_positions: usize,
    pub max_speech_positions: usize,
    pub bos_token_id: i64,
    pub pad_token_id: i64,
    pub eos_token_id: i64,
    #[serde(flatten)]
    pub training: TrainingConfig,
}

impl Default for AcousticConfig {
    fn default() -> Self {
        Self {
            vocab_size: 81,
            hidden_size: 768,
            encoder_layers: 12,
            encoder_attention_heads: 12,
            encoder_ffn_dim: 3072,
            encoder_max_relative_position: 160,
            decoder_layers: 6,
            decoder_attention_heads: 12,
            decoder_ffn_dim: 3072,
            layer_norm_eps: 1e-5,
            num_mel_bins: 80,
            reduction_factor: 2,
            speaker_embedding_dim: 512,
            speech_decoder_prenet_layers: 2,
            speech_decoder_prenet_units: 256,
            speech_decoder_prenet_dropout: 0.5,
            speech_decoder_postnet_layers: 5,
            speech_decoder_postnet_units: 256,
            speech_decoder_postnet_kernel: 5,
            max_text_positions: 450,
            max_speech_positions: 4000,
            bos_token_id: 0,
            pad_token_id: 1,
            eos_token_id: 2,
            training: TrainingConfig::default(),
        }
    }
}

/// The fields that say which model this is, before its sizes mean anything.
#[derive(Deserialize)]
struct Identity {
    model_type: Option<String>,
    #[serde(default)]
    architectures: Option<Vec<String>>,
    hidden_act: Option<String>,
    #[serde(default)]
    scale_embedding: bool,
}

impl AcousticConfig {
    /// Reads and checks the bytes of `config.json`.
    pub(super) fn parse(bytes: &[u8]) -> Checked<Self> {
        let identity: Identity = json(bytes)?;
        match identity.model_type.as_deref() {
            Some("speecht5") => {}
            Some(other) => return Err(format!("model_type is `{other}`, a foreign model: need `speecht5`")),
            None => return Err("model_type is missing: need `speecht5`".into()),
        }
        let architectures = identity.architectures.unwrap_or_default();
        if !architectures.is_empty() && !architectures.iter().any(|name| name == "SpeechT5ForTextToSpeech") {
            return Err(format!("architectures is {architectures:?}: need `SpeechT5ForTextToSpeech`"));
        }
        if let Some(other) = identity.hidden_act.filter(|name| name != "gelu") {
            return Err(format!("hidden_act is `{other}`: only `gelu` is supported"));
        }
        if identity.scale_embedding {
            return Err("scale_embedding is true: only false is supported".into());
        }
        let config: Self = json(bytes)?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Checked {
        between("vocab_size", self.vocab_size, 1, MAX_VOCABULARY)?;
        for (field, value) in [
            ("hidden_size", self.hidden_size),
            ("encoder_ffn_dim", self.encoder_ffn_dim),
            ("decoder_ffn_dim", self.decoder_ffn_dim),
            ("num_mel_bins", self.num_mel_bins),
            ("speaker_embedding_dim", self.speaker_embedding_dim),
            ("speech_decoder_prenet_units", self.speech_decoder_prenet_units),
            ("speech_decoder_postnet_units", self.speech_decoder_postnet_units),
        ] {
            between(field, value, 1, MAX_WIDTH)?;
        }
        for (field, value) in [
            ("encoder_layers", self.encoder_layers),
            ("decoder_layers", self.decoder_layers),
            ("speech_decoder_prenet_layers", self.speech_decoder_prenet_layers),
            ("speech_decoder_postnet_layers", self.speech_decoder_postnet_layers),
            ("reduction_factor", self.reduction_factor),
        ] {
            between(field, value, 1, MAX_LAYERS)?;
        }
        for (field, value) in [
            ("encoder_max_relative_position", self.encoder_max_relative_position),
            ("max_speech_positions", self.max_speech_positions),
        ] {
            between(field, value, 1, MAX_POSITIONS)?;
        }
        let (text, speech) = (self.max_text_positions, self.max_speech_positions);
        between("max_text_positions", text, *SEGMENT_SYMBOLS.start(), *SEGMENT_SYMBOLS.end())?;
        position_table("max_text_positions", text, self.hidden_size)?;
        position_table("max_speech_positions", speech, self.hidden_size)?;
        stream_cache(speech, text, self.decoder_layers, self.hidden_size)?;
        for (field, heads) in [
            ("encoder_attention_heads", self.encoder_attention_heads),
            ("decoder_attention_heads", self.decoder_attention_heads),
        ] {
            between(field, heads, 1, MAX_WIDTH)?;
            if !self.hidden_size.is_multiple_of(heads) {
                return Err(format!("{field} {heads} does not divide hidden_size {}", self.hidden_size));
            }
        }
        // Sine and cosine alternate in the positional table.
        if !self.hidden_size.is_multiple_of(2) {
            return Err(format!("hidden_size {} is odd", self.hidden_size));
        }
        odd("speech_decoder_postnet_kernel", self.speech_decoder_postnet_kernel)?;
        open_unit("layer_norm_eps", self.layer_norm_eps)?;
        let dropout = self.speech_decoder_prenet_dropout;
        if !(0.0..1.0).contains(&dropout) {
            return Err(format!("speech_decoder_prenet_dropout {dropout} is not in 0..1"));
        }
        for (field, id) in [
            ("bos_token_id", self.bos_token_id),
            ("pad_token_id", self.pad_token_id),
            ("eos_token_id", self.eos_token_id),
        ] {
            if !usize::try_from(id).is_ok_and(|id| id < self.vocab_size) {
                return Err(format!("{field} {id} is outside the vocabulary of {}", self.vocab_size));
            }
        }
        self.training.check()
    }
}
