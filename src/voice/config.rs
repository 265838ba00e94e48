//! `config.json` in, the sizes of an acoustic model and its vocoder out.
//!
//! `transformers` leaves fields out that have its default, so an absent field is that default
//! (`configuration_speecht5.py`, 5.24). Nothing here is believed before [`AcousticConfig::parse`] or
//! [`VocoderConfig::parse`] has checked it. Never reads a tensor.

use serde::Deserialize;

/// A reason in words; the caller adds the file.
pub(super) type Checked<T = ()> = std::result::Result<T, String>;

/// Bounds that no speech model of this kind comes near; below them no product of sizes overflows.
const MAX_WIDTH: usize = 1 << 16;
const MAX_LAYERS: usize = 256;
const MAX_POSITIONS: usize = 1 << 20;
const MAX_VOCABULARY: usize = 1 << 22;
const MAX_KERNEL: usize = 1 << 10;
const SAMPLE_RATES_HZ: std::ops::RangeInclusive<usize> = 1_000..=384_000;

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
            ("max_text_positions", self.max_text_positions),
            ("max_speech_positions", self.max_speech_positions),
        ] {
            between(field, value, 1, MAX_POSITIONS)?;
        }
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
        Ok(())
    }
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

impl VocoderConfig {
    /// Reads and checks the bytes of a vocoder's `config.json`.
    pub(super) fn parse(bytes: &[u8]) -> Checked<Self> {
        let config: Self = json(bytes)?;
        match &config {
            Self::HifiGan(config) => config.check()?,
            Self::Vocos(config) => config.check()?,
        }
        Ok(config)
    }

    pub fn sample_rate_hz(&self) -> u32 {
        match self {
            Self::HifiGan(config) => config.sampling_rate,
            Self::Vocos(config) => config.sampling_rate,
        }
    }

    /// Samples per mel frame.
    pub fn hop_length(&self) -> usize {
        match self {
            Self::HifiGan(config) => config.upsample_rates.iter().product(),
            Self::Vocos(config) => config.hop_length,
        }
    }

    /// Mel bins it takes.
    pub fn model_in_dim(&self) -> usize {
        match self {
            Self::HifiGan(config) => config.model_in_dim,
            Self::Vocos(config) => config.model_in_dim,
        }
    }
}

/// A `SpeechT5HifiGanConfig`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
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

impl Default for HifiGanConfig {
    fn default() -> Self {
        Self {
            model_in_dim: 80,
            sampling_rate: 16_000,
            upsample_initial_channel: 512,
            upsample_rates: vec![4; 4],
            upsample_kernel_sizes: vec![8; 4],
            resblock_kernel_sizes: vec![3, 7, 11],
            resblock_dilation_sizes: vec![vec![1, 3, 5]; 3],
            leaky_relu_slope: 0.1,
            normalize_before: true,
        }
    }
}

impl HifiGanConfig {
    fn check(&self) -> Checked {
        sample_rate(self.sampling_rate)?;
        between("model_in_dim", self.model_in_dim, 1, MAX_WIDTH)?;
        between("upsample_initial_channel", self.upsample_initial_channel, 1, MAX_WIDTH)?;
        let stages = self.upsample_rates.len();
        between("number of upsample_rates", stages, 1, 16)?;
        equal_lengths("upsample_rates", stages, "upsample_kernel_sizes", self.upsample_kernel_sizes.len())?;
        let blocks = self.resblock_kernel_sizes.len();
        between("number of resblock_kernel_sizes", blocks, 1, 16)?;
        equal_lengths(
            "resblock_kernel_sizes",
            blocks,
            "resblock_dilation_sizes",
            self.resblock_dilation_sizes.len(),
        )?;
        let mut hop_length: usize = 1;
        for (&rate, &kernel) in self.upsample_rates.iter().zip(&self.upsample_kernel_sizes) {
            between("upsample rate", rate, 1, MAX_KERNEL)?;
            between("upsample kernel size", kernel, rate, MAX_KERNEL)?;
            // Both sides are cut by (kernel - rate) / 2, which must leave exactly `rate` samples a frame.
            if !(kernel - rate).is_multiple_of(2) {
                return Err(format!("upsample kernel size {kernel} and rate {rate} differ by an odd number"));
            }
            hop_length = hop_length.saturating_mul(rate);
        }
        between("product of upsample_rates", hop_length, 1, MAX_WIDTH)?;
        if !self.upsample_initial_channel.is_multiple_of(1 << stages) {
            return Err(format!(
                "upsample_initial_channel {} cannot be halved {stages} times",
                self.upsample_initial_channel
            ));
        }
        for (&kernel, dilations) in self.resblock_kernel_sizes.iter().zip(&self.resblock_dilation_sizes) {
            odd("resblock kernel size", kernel)?;
            between("number of dilations of a resblock", dilations.len(), 1, 16)?;
            for &dilation in dilations {
                between("resblock dilation", dilation, 1, MAX_KERNEL)?;
            }
        }
        if !(0.0..=1.0).contains(&self.leaky_relu_slope) {
            return Err(format!("leaky_relu_slope {} is not in 0..=1", self.leaky_relu_slope));
        }
        Ok(())
    }
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

impl VocosConfig {
    fn check(&self) -> Checked {
        sample_rate(self.sampling_rate)?;
        between("n_fft", self.n_fft, 2, MAX_WIDTH)?;
        for (field, value) in [
            ("model_in_dim", self.model_in_dim),
            ("dim", self.dim),
            ("intermediate_dim", self.intermediate_dim),
        ] {
            between(field, value, 1, MAX_WIDTH)?;
        }
        between("num_layers", self.num_layers, 1, MAX_LAYERS)?;
        odd("kernel_size", self.kernel_size)?;
        if self.padding != "same" {
            return Err(format!("padding is `{}`: only `same` is supported", self.padding));
        }
        let (n_fft, hop, win) = (self.n_fft, self.hop_length, self.win_length);
        if win != n_fft || !n_fft.is_multiple_of(2) {
            return Err(format!("win_length {win} and n_fft {n_fft} must be equal and even"));
        }
        // A window that ends before the next begins leaves samples that nothing wrote.
        between("hop_length", hop, 1, win - 1)?;
        if !(win - hop).is_multiple_of(2) {
            return Err(format!("win_length {win} and hop_length {hop} differ by an odd number"));
        }
        if !(self.max_magnitude.is_finite() && self.max_magnitude > 0.0) {
            return Err(format!("max_magnitude {} is not a positive number", self.max_magnitude));
        }
        Ok(())
    }
}

fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Checked<T> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

fn between(field: &str, value: usize, least: usize, most: usize) -> Checked {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{field} {value} is not in {least}..={most}"))
}

fn odd(field: &str, value: usize) -> Checked {
    between(field, value, 1, MAX_KERNEL)?;
    if value.is_multiple_of(2) { Err(format!("{field} {value} is even")) } else { Ok(()) }
}

fn open_unit(field: &str, value: f32) -> Checked {
    if value > 0.0 && value < 1.0 { Ok(()) } else { Err(format!("{field} {value} is not between 0 and 1")) }
}

fn sample_rate(value_hz: u32) -> Checked {
    let value = usize::try_from(value_hz).unwrap_or(usize::MAX);
    between("sampling_rate", value, *SAMPLE_RATES_HZ.start(), *SAMPLE_RATES_HZ.end())
}

fn equal_lengths(one: &str, one_length: usize, other: &str, other_length: usize) -> Checked {
    if one_length == other_length {
        return Ok(());
    }
    Err(format!("{one} has {one_length} entries and {other} {other_length}"))
}
