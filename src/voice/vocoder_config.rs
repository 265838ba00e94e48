//! `vocoder/config.json` in, the sizes of a vocoder out.
//!
//! An absent field of a HiFi-GAN has the default of `transformers` (`configuration_speecht5.py`, 5.24). Never
//! reads a tensor.

use serde::Deserialize;

use super::bounds::{
    Checked, MAX_KERNEL, MAX_LAYERS, MAX_WIDTH, between, equal_lengths, json, odd, sample_rate,
};

/// `vocoder/config.json`, told apart by `model_type`.
#[derive(Debug, Clone)]
pub enum VocoderConfig {
    HifiGan(HifiGanConfig),
    Vocos(VocosConfig),
}

/// The field that says which of them it is. A tagged enum would lose the place of what is wrong.
#[derive(Deserialize)]
struct Identity {
    model_type: Option<String>,
}

impl VocoderConfig {
    /// Reads and checks the bytes of a vocoder's `config.json`.
    pub(super) fn parse(bytes: &[u8]) -> Checked<Self> {
        let identity: Identity = json(bytes)?;
        let config = match identity.model_type.as_deref() {
            Some("speecht5_hifigan" | "hifigan") => Self::HifiGan(json(bytes)?),
            Some("vocos") => Self::Vocos(json(bytes)?),
            other => {
                let need = "need `speecht5_hifigan`, `hifigan` or `vocos`";
                return Err(match other {
                    Some(other) => format!("model_type is `{other}`, a foreign vocoder: {need}"),
                    None => format!("model_type is missing: {need}"),
                });
            }
        };
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
