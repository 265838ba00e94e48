//! What was asked of a fine-tune in, what it does in every respect out, and what identifies it.
//!
//! Here are the defaults, the limits, and which answers do not go together. Never touches a file.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::backend;
use super::corpus::CorpusOptions;
use super::given::{Backend, Given, Init, OptimizerName, Validation};
use super::optimizer::AdamW;
use super::schedule::Schedule;
use super::selection::Selection;
use super::trainer::Recipe;
use crate::error::{Error, Result};
use crate::precision::{MasterWeights, Plan, Precision, Purpose, resolve};
use crate::voice::Voice;

/// How a run goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub precision: Precision,
    /// What a flash mode keeps of its weights, where that is not the mode's own choice.
    pub master_weights: Option<MasterWeights>,
    pub recipe: Recipe,
    pub selection: Selection,
    frozen: Vec<String>,
    pub max_steps: u64,
    pub batch_size: usize,
    pub accumulate_grad_batches: usize,
    pub validation: Validation,
    pub patience: Option<u32>,
    /// Steps between two of these; 0 is never, and a checkpoint is written at the end whatever it says.
    pub save_every: u64,
    pub validate_every: u64,
    pub speak_every: u64,
    pub init: Init,
    /// A speaker of the voice, a file with an embedding, or [`LEARNED`].
    pub speaker: Option<String>,
    pub backend: Backend,
}

/// The `--speaker` whose embedding is trained.
pub const LEARNED: &str = "learned";

const SEED: u64 = 42;
const MAX_WARMUP_STEPS: u64 = 100;
const MAX_STEPS: u64 = 1_000_000_000;
const MAX_BATCH: usize = 4096;

/// Where the data of a run lie and its results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub data: PathBuf,
    pub out: PathBuf,
}

impl Given {
    /// # Errors
    /// [`Error::InvalidRequest`] when they are not named.
    pub fn data(&self) -> Result<PathBuf> {
        let missing = || Error::InvalidRequest("--data, the recordings to learn from, is missing".to_owned());
        self.data.clone().ok_or_else(missing)
    }

    /// How recordings are taken in.
    pub fn corpus_options(&self) -> CorpusOptions {
        let defaults = CorpusOptions::default();
        CorpusOptions {
            trim: self.trim.unwrap_or(defaults.trim),
            level: self.level.or(defaults.level),
            cache: self.cache.clone().or(defaults.cache),
            min_seconds: self.min_seconds.unwrap_or(defaults.min_seconds),
            max_seconds: self.max_seconds.unwrap_or(defaults.max_seconds),
        }
    }

    /// # Errors
    /// [`Error::InvalidRequest`] when either is missing.
    pub fn place(&self) -> Result<Place> {
        let missing =
            || Error::InvalidRequest("--out, the directory of the new voice, is missing".to_owned());
        Ok(Place { data: self.data()?, out: self.out.clone().ok_or_else(missing)? })
    }

    /// What these answers mean.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a value beyond its limits, or answers that do not go together.
    pub fn settings(&self) -> Result<Settings> {
        let precision = self.precision.unwrap_or_default();
        check_optimizer(precision, self.optimizer)?;
        let master_weights = self.master_weight_bits.map(|bits| bits.0);
        if master_weights.is_some() && !precision.is_flash() {
            return Err(Error::InvalidRequest(format!(
                "master weight bits are a choice of the flash modes: precision {precision} has none"
            )));
        }
        let max_steps = within("max_steps", self.max_steps.unwrap_or(1000), 1, MAX_STEPS)?;
        let warmup = self.warmup_steps.unwrap_or(MAX_WARMUP_STEPS.min(max_steps / 10));
        let [beta1, beta2] = self.betas.unwrap_or([0.9, 0.999]);
        let share =
            |what: &str, value: f32| real(what, value, |v| (0.0..1.0).contains(&v), "from 0 to below 1");
        let positive = |what: &str, value: f32| real(what, value, |v| v > 0.0, "above 0");
        let from_0 = |what: &str, value: f32| real(what, value, |v| v >= 0.0, "0 or more");
        let defaults = AdamW::default();
        let adamw = AdamW {
            beta1: share("betas", beta1)?,
            beta2: share("betas", beta2)?,
            eps: positive("eps", self.eps.unwrap_or(defaults.eps))?,
            weight_decay: from_0("weight_decay", self.weight_decay.unwrap_or(defaults.weight_decay))?,
        };
        let peak = positive("lr", self.learning_rate.unwrap_or(1e-4))?;
        let recipe = Recipe {
            adamw,
            schedule: Schedule {
                peak,
                warmup_steps: within("warmup_steps", warmup, 0, max_steps)?,
                max_steps,
            },
            clip_norm: from_0("gradient_clip_val", self.gradient_clip_val.unwrap_or(1.0))?,
            seed: self.seed.unwrap_or(SEED),
            lora_rank: self.lora,
            average_decay: self.ema.map(|decay| share("ema", decay)).transpose()?,
        };
        let validate_every = self.validate_every.unwrap_or(100);
        let validation = self.validation.unwrap_or(Validation::Share(0.05));
        if self.patience.is_some() && (validate_every == 0 || validation == Validation::Clips(0)) {
            return Err(Error::InvalidRequest(
                "a run without validation has nothing to be patient about: give --validate-every and \
                 --validation-share, or no --patience"
                    .to_owned(),
            ));
        }
        let frozen = self.freeze.clone().unwrap_or_default();
        Ok(Settings {
            precision,
            master_weights,
            recipe,
            selection: Selection::without(frozen.iter().map(String::as_str))?,
            frozen,
            max_steps,
            batch_size: within("batch_size", self.batch_size.unwrap_or(8), 1, MAX_BATCH)?,
            accumulate_grad_batches: within(
                "accumulate_grad_batches",
                self.accumulate_grad_batches.unwrap_or(1),
                1,
                MAX_BATCH,
            )?,
            validation,
            patience: self.patience.map(|patience| within("patience", patience, 1, u32::MAX)).transpose()?,
            save_every: self.save_every.unwrap_or(100),
            validate_every,
            speak_every: self.speak_every.unwrap_or(500),
            init: self.init.unwrap_or_default(),
            speaker: self.speaker.clone(),
            backend: self.device.unwrap_or_default(),
        })
    }
}

/// A flash mode is what FlashAdamW does, and no other mode is.
fn check_optimizer(precision: Precision, optimizer: Option<OptimizerName>) -> Result<()> {
    let reason = match (optimizer, precision.is_flash()) {
        (Some(OptimizerName::AdamW), true) => format!(
            "precision {precision} steps with FlashAdamW, which keeps the bits that its weights cannot hold; \
             torch.optim.AdamW loses them: write optimizer._target_ flashoptim.FlashAdamW, or leave it out"
        ),
        (Some(OptimizerName::FlashAdamW), false) => format!(
            "flashoptim.FlashAdamW is the optimizer of bf16-flash and fp16-flash; precision {precision} steps with \
             AdamW: choose a flash mode, or write optimizer._target_ torch.optim.AdamW, or leave it out"
        ),
        _ => return Ok(()),
    };
    Err(Error::InvalidRequest(reason))
}

fn within<T: PartialOrd + std::fmt::Display>(what: &str, value: T, least: T, most: T) -> Result<T> {
    if value >= least && value <= most {
        return Ok(value);
    }
    Err(Error::InvalidRequest(format!("{what} {value} is not {least} to {most}")))
}

fn real(what: &str, value: f32, fits: impl Fn(f32) -> bool, range: &str) -> Result<f32> {
    if value.is_finite() && fits(value) {
        return Ok(value);
    }
    Err(Error::InvalidRequest(format!("{what} {value} is not a number {range}")))
}

impl Settings {
    /// What the precision of this run means for `voice`.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a device that this program was not built for.
    pub fn plan(&self, voice: &Voice) -> Result<Plan> {
        let device = backend::facts(self.backend)?;
        let mut plan = resolve(Purpose::Training, self.precision, voice.acoustic.stored_dtype(), &device)?;
        if let (Some(training), Some(master)) = (&mut plan.training, self.master_weights) {
            training.master_weights = master;
        }
        Ok(plan.with_vocoder_stored(voice.vocoder.stored_dtype()))
    }

    /// Everything that decides the numbers of a run over data and a voice of these digests.
    pub fn identity(&self, data: &str, voice: &str) -> Map<String, Value> {
        let Recipe { adamw, schedule, clip_norm, seed, lora_rank, average_decay } = self.recipe;
        let AdamW { beta1, beta2, eps, weight_decay } = adamw;
        // As people write them: an f32 as JSON shows the digits of the f64 that it is.
        let text = |value: f32| value.to_string();
        let identity = json!({
            "data": data,
            "voice": voice,
            "precision": self.precision.to_string(),
            "master_weights": self.master_weights.map(|master| format!("{master:?}")),
            "lr": text(schedule.peak),
            "warmup_steps": schedule.warmup_steps,
            "max_steps": self.max_steps,
            "betas": [text(beta1), text(beta2)],
            "eps": text(eps),
            "weight_decay": text(weight_decay),
            "gradient_clip_val": text(clip_norm),
            "seed": seed,
            "lora": lora_rank,
            "ema": average_decay.map(text),
            "freeze": self.frozen,
            "batch_size": self.batch_size,
            "accumulate_grad_batches": self.accumulate_grad_batches,
            "validation_share": format!("{:?}", self.validation),
            "patience": self.patience,
            "validate_every": self.validate_every,
            "init": format!("{:?}", self.init),
            "speaker": self.speaker,
        });
        match identity {
            Value::Object(identity) => identity,
            _ => Map::new(),
        }
    }
}

/// What is not the same in two identities, a sentence for each; empty for equal ones.
pub fn differences(was: &Map<String, Value>, is: &Map<String, Value>) -> Vec<String> {
    let keys = is.keys().chain(was.keys().filter(|key| !is.contains_key(*key)));
    let null = Value::Null;
    keys.filter_map(|key| {
        let (was, is) = (was.get(key).unwrap_or(&null), is.get(key).unwrap_or(&null));
        (was != is).then(|| format!("{key} was {was} and is {is}"))
    })
    .collect()
}
