//! What was asked of a fine-tune, on the command line or in a file, in; the first answer to each question out.
//!
//! Everything may be left out. Never decides what is left out: see [`super::settings`].

use std::path::PathBuf;
use std::str::FromStr;

use crate::error::{Error, Excerpt, Result};
use crate::precision::{MasterWeights, Precision};

/// One person's answers; `None` where nothing was said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    pub voice: Option<PathBuf>,
    pub vocoder: Option<PathBuf>,
    pub data: Option<PathBuf>,
    pub out: Option<PathBuf>,
    pub precision: Option<Precision>,
    pub optimizer: Option<OptimizerName>,
    pub max_steps: Option<u64>,
    pub batch_size: Option<usize>,
    pub accumulate_grad_batches: Option<usize>,
    pub gradient_clip_val: Option<f32>,
    pub learning_rate: Option<f32>,
    pub betas: Option<[f32; 2]>,
    pub eps: Option<f32>,
    pub weight_decay: Option<f32>,
    pub warmup_steps: Option<u64>,
    pub seed: Option<u64>,
    pub freeze: Option<Vec<String>>,
    pub lora: Option<usize>,
    pub ema: Option<f32>,
    pub validation: Option<Validation>,
    pub patience: Option<u32>,
    pub save_every: Option<u64>,
    pub validate_every: Option<u64>,
    pub speak_every: Option<u64>,
    pub init: Option<Init>,
    pub speaker: Option<String>,
    pub master_weight_bits: Option<MasterBits>,
    pub threads: Option<u16>,
    pub device: Option<Backend>,
    pub trim: Option<bool>,
    pub level: Option<f32>,
    pub min_seconds: Option<f32>,
    pub max_seconds: Option<f32>,
    pub cache: Option<PathBuf>,
}

impl Given {
    /// These answers, and those of `other` where there are none.
    pub fn or(self, other: Self) -> Self {
        Self {
            voice: self.voice.or(other.voice),
            vocoder: self.vocoder.or(other.vocoder),
            data: self.data.or(other.data),
            out: self.out.or(other.out),
            precision: self.precision.or(other.precision),
            optimizer: self.optimizer.or(other.optimizer),
            max_steps: self.max_steps.or(other.max_steps),
            batch_size: self.batch_size.or(other.batch_size),
            accumulate_grad_batches: self.accumulate_grad_batches.or(other.accumulate_grad_batches),
            gradient_clip_val: self.gradient_clip_val.or(other.gradient_clip_val),
            learning_rate: self.learning_rate.or(other.learning_rate),
            betas: self.betas.or(other.betas),
            eps: self.eps.or(other.eps),
            weight_decay: self.weight_decay.or(other.weight_decay),
            warmup_steps: self.warmup_steps.or(other.warmup_steps),
            seed: self.seed.or(other.seed),
            freeze: self.freeze.or(other.freeze),
            lora: self.lora.or(other.lora),
            ema: self.ema.or(other.ema),
            validation: self.validation.or(other.validation),
            patience: self.patience.or(other.patience),
            save_every: self.save_every.or(other.save_every),
            validate_every: self.validate_every.or(other.validate_every),
            speak_every: self.speak_every.or(other.speak_every),
            init: self.init.or(other.init),
            speaker: self.speaker.or(other.speaker),
            master_weight_bits: self.master_weight_bits.or(other.master_weight_bits),
            threads: self.threads.or(other.threads),
            device: self.device.or(other.device),
            trim: self.trim.or(other.trim),
            level: self.level.or(other.level),
            min_seconds: self.min_seconds.or(other.min_seconds),
            max_seconds: self.max_seconds.or(other.max_seconds),
            cache: self.cache.or(other.cache),
        }
    }
}

/// An optimizer as configurations name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptimizerName {
    /// `flashoptim.FlashAdamW`
    FlashAdamW,
    /// `torch.optim.AdamW`
    AdamW,
}

impl FromStr for OptimizerName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "flashoptim.FlashAdamW" => Ok(Self::FlashAdamW),
            "torch.optim.AdamW" => Ok(Self::AdamW),
            _ => Err(unknown("optimizer", text, "flashoptim.FlashAdamW or torch.optim.AdamW")),
        }
    }
}

/// How much of the data is kept apart to validate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Validation {
    /// Above 0 and below 1.
    Share(f32),
    Clips(usize),
}

impl Validation {
    /// How many of `clips` validate: of a share one at least where there are four, and never all.
    pub fn of(self, clips: usize) -> usize {
        let wanted = match self {
            Self::Share(share) => ((clips as f32 * share).round() as usize).max(usize::from(clips >= 4)),
            Self::Clips(count) => count,
        };
        wanted.min(clips.saturating_sub(1))
    }
}

/// A number of clips, or with a point in it a share.
impl FromStr for Validation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let share = text.parse().ok().filter(|share| *share > 0.0 && *share < 1.0);
        let parsed =
            if text.contains('.') { share.map(Self::Share) } else { text.parse().ok().map(Self::Clips) };
        parsed
            .ok_or_else(|| unknown("validation share", text, "above 0.0 and below 1.0, or a number of clips"))
    }
}

/// Where the weights of a run come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Init {
    #[default]
    Checkpoint,
    /// Drawn from the seed; the sizes are those of `config.json`.
    Random,
}

impl FromStr for Init {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "checkpoint" => Ok(Self::Checkpoint),
            "random" => Ok(Self::Random),
            _ => Err(unknown("init", text, "checkpoint or random")),
        }
    }
}

/// How many bits of a weight a flash mode keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MasterBits(pub MasterWeights);

impl FromStr for MasterBits {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "24" => Ok(Self(MasterWeights::Residual24)),
            "32" => Ok(Self(MasterWeights::Residual32)),
            "none" | "None" | "null" => Ok(Self(MasterWeights::None)),
            _ => Err(unknown("master weight bits", text, "24, 32 or none")),
        }
    }
}

/// What a run computes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Backend {
    #[default]
    Cpu,
    Cuda,
    Metal,
    Vulkan,
}

impl FromStr for Backend {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda),
            "metal" => Ok(Self::Metal),
            "vulkan" => Ok(Self::Vulkan),
            _ => Err(unknown("device", text, "cpu, cuda, metal or vulkan")),
        }
    }
}

fn unknown(what: &str, text: &str, accepted: &str) -> Error {
    Error::InvalidRequest(format!("{what} `{}` is not {accepted}", Excerpt(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_counts() {
        let first = Given { max_steps: Some(5), ..Given::default() };
        let second = Given { max_steps: Some(9), lora: Some(4), ..Given::default() };
        assert_eq!(first.or(second), Given { max_steps: Some(5), lora: Some(4), ..Given::default() });
    }

    #[test]
    fn a_share_has_a_point_and_a_count_has_none() {
        let check = |text: &str, clips: usize, expected: usize| {
            assert_eq!(text.parse::<Validation>().unwrap().of(clips), expected, "{text} of {clips}");
        };
        check("0.1", 100, 10);
        check("0.05", 4, 1);
        check("0.05", 3, 0);
        check("0.9", 2, 1);
        check("0", 50, 0);
        check("3", 50, 3);
        check("3", 2, 1);
        for text in ["", "1.0", "0.0", "-1", "0,5", "NaN", "all"] {
            assert!(text.parse::<Validation>().is_err(), "{text}");
        }
    }
}
