//! `config.json` in, the sizes of an acoustic model and its vocoder out.

use serde::Deserialize;

/// The fields of a Hugging Face `SpeechT5Config` that shape the graphs.
#[derive(Debug, Clone, Deserialize)]
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
}

/// `vocoder/config.json`, told apart by `model_type`.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "model_type")]
pub enum VocoderConfig {
    #[serde(rename = "speecht5_hifigan", alias = "hifigan")]
    HifiGan(HifiGanConfig),
    #[serde(rename = "vocos")]
    Vocos(VocosConfig),
}

/// A `SpeechT5HifiGanConfig`.
#[derive(Debug, Clone, Deserialize)]
pub struct HifiGanConfig {
    pub model_in_dim: usize,
    pub sampling_rate: u32,
    pub upsample_initial_channel: usize,
    pub upsample_rates: Vec<usize>,
    pub upsample_kernel_sizes: Vec<usize>,
    pub resblock_kernel_sizes: Vec<usize>,
    pub resblock_dilation_sizes: Vec<Vec<usize>>,
    pub leaky_relu_slope: f32,
    pub normalize_before: bool,
}

/// A Vocos vocoder: ConvNeXt blocks, then magnitude and phase of an STFT.
#[derive(Debug, Clone, Deserialize)]
pub struct VocosConfig {
    pub sampling_rate: u32,
    pub n_fft: usize,
    pub hop_length: usize,
    pub win_length: usize,
    pub padding: String,
    pub model_in_dim: usize,
    pub dim: usize,
    pub intermediate_dim: usize,
    pub num_layers: usize,
    pub kernel_size: usize,
    pub max_magnitude: f32,
}
