//! Batches in, one optimizer step at a time out.
//!
//! Every mode takes the same step: forward and loss, backward, gradients to the host, a look for what is not finite,
//! clipping, AdamW. Where tensors rest and in what they are multiplied is [`TrainingPlan`]'s and [`Arithmetic`]'s. A
//! step that is skipped moves neither Adam's count nor the schedule. Never reads a recording.

use std::collections::BTreeMap;

use burn::tensor::Device;

use super::loss::{Loss, Losses};
use super::network::{Arithmetic, Batch, Dropout, Network, Parameters, part};
use super::optimizer::{AdamW, Rest, Slot, Step, Values};
use super::schedule::Schedule;
use crate::error::{Error, Result};
use crate::precision::scaler::{LossScaler, ScalerRule};
use crate::precision::{Dtype, LossScaling, Precision, TrainingPlan};
use crate::voice::Voice;
use crate::voice::config::AcousticConfig;

/// How weights are moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    pub adamw: AdamW,
    pub schedule: Schedule,
    /// The largest norm of all gradients together; 0 is no limit.
    pub clip_norm: f32,
    pub seed: u64,
}

/// A network in training.
pub struct Trainer {
    config: AcousticConfig,
    arithmetic: Arithmetic,
    device: Device,
    gradients: Dtype,
    /// Whether each gradient moves its tensor and goes before the next part of the network is differentiated.
    releases: bool,
    recipe: Recipe,
    pub(super) parameters: Parameters,
    pub(super) slots: BTreeMap<String, Slot>,
    pub(super) scaler: LossScaler,
    pub(super) progress: Progress,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Steps that moved the weights.
    pub taken: u64,
    /// Steps that were tried: what has been read of the data, and what chooses the dropout.
    pub tried: u64,
}

/// What one step was like.
#[derive(Debug, Clone)]
pub struct StepReport {
    pub losses: Losses,
    pub learning_rate: f32,
    /// The norm of all gradients together, before clipping.
    pub gradient_norm: f32,
    pub loss_scale: f32,
    /// The first tensor that was not finite: the step was skipped.
    pub skipped: Option<String>,
}

impl Trainer {
    /// The acoustic model of `voice`, resting as `plan` says; `trained` says which tensors learn.
    ///
    /// # Errors
    /// [`Error::InvalidVoice`] when the checkpoint cannot be read.
    pub fn new(
        voice: &Voice,
        precision: Precision,
        plan: &TrainingPlan,
        recipe: Recipe,
        device: &Device,
        trained: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let weights =
            if precision.narrows_weights() { precision.half().unwrap_or(Dtype::F32) } else { Dtype::F32 };
        let mut parameters = Parameters::of_voice(voice, weights, trained, device)?;
        let rest = Rest { master_weights: plan.master_weights, states: plan.optimizer_states };
        let mut slots = BTreeMap::new();
        for name in parameters.trained() {
            // From the f32 checkpoint and not from what it was rounded to: its last bits live in the residual.
            let dtype = parameters.host(&name)?.dtype();
            let (values, slot) = Slot::new(&voice.acoustic.f32(&name)?, dtype, rest);
            parameters.update(&name, values);
            slots.insert(name, slot);
        }
        let rule = match plan.loss_scaling {
            LossScaling::Dynamic => ScalerRule::default(),
            LossScaling::None => {
                ScalerRule { initial: 1.0, growth: 1.0, backoff: 1.0, ..ScalerRule::default() }
            }
        };
        Ok(Self {
            config: voice.config.clone(),
            arithmetic: Arithmetic::new(precision),
            device: device.clone(),
            gradients: plan.gradients,
            // Clipping asks for the norm of all gradients, and a loss scale for a look at all of them.
            releases: precision.is_flash()
                && plan.loss_scaling == LossScaling::None
                && recipe.clip_norm <= 0.0,
            recipe,
            parameters,
            slots,
            scaler: LossScaler::new(rule),
            progress: Progress::default(),
        })
    }

    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// One step over the mean of `batches`.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when too many steps in a row were skipped, or a weight is not finite.
    pub fn step(&mut self, batches: &[Batch]) -> Result<StepReport> {
        if let ([batch], true) = (batches, self.releases) {
            return self.step_released(batch);
        }
        let learning_rate = self.recipe.schedule.learning_rate(self.progress.taken);
        let loss_scale = self.scaler.scale();
        let mut losses = Losses::default();
        let mut gradients = BTreeMap::new();
        for (index, batch) in batches.iter().enumerate() {
            let place = self.progress.tried * batches.len() as u64 + index as u64;
            let loss = self.loss(batch, &mut Dropout::new(self.recipe.seed, place));
            losses.add_mean(Losses::of(&loss), batches.len());
            let mut found = (loss.total() * f64::from(loss_scale) / batches.len() as f64).backward();
            for name in self.slots.keys() {
                if let Some(gradient) = self.parameters.take_gradient(name, &mut found)? {
                    accumulate(&mut gradients, name, gradient, batches.len());
                }
            }
        }
        self.progress.tried += 1;
        let inverse = self.scaler.inverse();
        let mut squares = 0.0;
        let mut skipped = (!losses.total().is_finite()).then(|| "the loss".to_owned());
        for (name, gradient) in &gradients {
            let of_this = square(gradient);
            if !of_this.is_finite() && skipped.is_none() {
                skipped = Some(name.clone());
            }
            squares += of_this;
        }
        let gradient_norm = crate::precision::cast::f64_to_f32(squares.sqrt() * f64::from(inverse));
        let report = StepReport { losses, learning_rate, gradient_norm, loss_scale, skipped };
        if let Some(tensor) = &report.skipped {
            self.skip(tensor)?;
            return Ok(report);
        }
        let clip = self.recipe.clip_norm;
        let shrink = if clip > 0.0 && gradient_norm > clip { clip / gradient_norm } else { 1.0 };
        self.move_weights(gradients, learning_rate, inverse * shrink)?;
        self.scaler.stepped();
        Ok(report)
    }

    /// A step whose `tensor` was not finite moves nothing. Where a weight is not finite itself no step after it could.
    fn skip(&mut self, tensor: &str) -> Result<()> {
        for name in self.slots.keys() {
            if !square(&self.parameters.host(name)?).is_finite() {
                return Err(Error::InvalidRequest(format!(
                    "the weight {name} is not finite after {} steps: go on from an earlier checkpoint, with a lower \
                     learning rate, or in a bf16 mode or 32",
                    self.progress.taken
                )));
            }
        }
        self.scaler.skipped(tensor)
    }

    /// One step that holds the gradients of one part of the network at a time. Once a gradient is not finite nothing
    /// more is moved: what lies nearer to the loss has been by then.
    fn step_released(&mut self, batch: &Batch) -> Result<StepReport> {
        let learning_rate = self.recipe.schedule.learning_rate(self.progress.taken);
        let step = self.recipe.adamw.step(self.progress.taken + 1, learning_rate);
        let (mut squares, mut skipped) = (0.0, None);
        let slots = &mut self.slots;
        let mut take = |parameters: &mut Parameters, name: &str, gradient: Values| {
            let of_this = square(&gradient);
            squares += of_this;
            if !of_this.is_finite() {
                skipped.get_or_insert_with(|| name.to_owned());
            }
            let Some(slot) = slots.get_mut(name).filter(|_| skipped.is_none()) else { return Ok(()) };
            move_weight(parameters, name, slot, &step, &gradient)
        };
        let network =
            Network { config: &self.config, arithmetic: self.arithmetic, device: self.device.clone() };
        let mut dropout = Dropout::new(self.recipe.seed, self.progress.tried);
        let loss = network.release(&mut self.parameters, batch, &mut dropout, &mut take)?;
        self.progress.tried += 1;
        let losses = Losses::of(&loss);
        let gradient_norm = crate::precision::cast::f64_to_f32(squares.sqrt());
        let skipped = skipped.or_else(|| (!losses.total().is_finite()).then(|| "the loss".to_owned()));
        let report = StepReport { losses, learning_rate, gradient_norm, loss_scale: 1.0, skipped };
        match &report.skipped {
            Some(tensor) => self.skip(tensor)?,
            None => {
                self.progress.taken += 1;
                self.scaler.stepped();
            }
        }
        Ok(report)
    }

    fn move_weights(
        &mut self,
        gradients: BTreeMap<String, Values>,
        learning_rate: f32,
        factor: f32,
    ) -> Result<()> {
        self.progress.taken += 1;
        let step = self.recipe.adamw.step(self.progress.taken, learning_rate);
        for (name, gradient) in gradients {
            let gradient = if factor == 1.0 { gradient } else { scaled(&gradient, factor) };
            let missing = || Error::Internal(format!("{name} has no optimizer state"));
            let slot = self.slots.get_mut(&name).ok_or_else(missing)?;
            move_weight(&mut self.parameters, &name, slot, &step, &gradient)?;
        }
        Ok(())
    }

    /// The loss of `batch`, nothing dropped.
    pub fn validate(&self, batches: &[Batch]) -> Losses {
        let mut losses = Losses::default();
        for batch in batches {
            losses.add_mean(Losses::of(&self.loss(batch, &mut Dropout::none())), batches.len());
        }
        losses
    }

    fn loss(&self, batch: &Batch, dropout: &mut Dropout) -> Loss {
        let network =
            Network { config: &self.config, arithmetic: self.arithmetic, device: self.device.clone() };
        let outputs = network.forward(&self.parameters, batch, dropout);
        Loss::new(outputs, batch, &self.config, &self.device)
    }

    /// All the bits that are known of a tensor.
    ///
    /// # Errors
    /// [`Error::Internal`] when there is no such tensor.
    pub fn master(&self, name: &str) -> Result<Vec<f32>> {
        let weights = self.parameters.host(name)?;
        Ok(match self.slots.get(name) {
            Some(slot) => slot.master(&weights),
            None => weights.to_f32(),
        })
    }

    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Bytes of every kind for each trained parameter: at rest, and of gradients the most that are held at once.
    pub fn bytes_per_parameter(&self) -> Result<BytesPerParameter> {
        let mut bytes = BytesPerParameter::default();
        let mut gradients: BTreeMap<&str, f64> = BTreeMap::new();
        let mut count = 0;
        for (name, slot) in &self.slots {
            let weights = self.parameters.host(name)?;
            count += weights.len();
            bytes.weights += weights.size_bytes() as f64;
            let narrow = if weights.dtype() == Dtype::F32 { Dtype::F32 } else { self.gradients };
            let of_this = (weights.len() * narrow.size_bytes()) as f64;
            *gradients.entry(part(name)).or_default() += of_this;
            bytes.residual += slot.residual.size_bytes() as f64;
            bytes.states += slot.moments.size_bytes() as f64;
        }
        bytes.gradients = match self.releases {
            true => gradients.into_values().fold(0.0, f64::max),
            false => gradients.into_values().sum(),
        };
        let each = |total: f64| total / count.max(1) as f64;
        Ok(BytesPerParameter {
            weights: each(bytes.weights),
            gradients: each(bytes.gradients),
            residual: each(bytes.residual),
            states: each(bytes.states),
        })
    }
}

/// What a parameter takes while it is trained.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BytesPerParameter {
    pub weights: f64,
    pub gradients: f64,
    pub residual: f64,
    pub states: f64,
}

fn move_weight(
    parameters: &mut Parameters,
    name: &str,
    slot: &mut Slot,
    step: &Step,
    gradient: &Values,
) -> Result<()> {
    let mut weights = parameters.host(name)?;
    step.take(&mut weights, slot, gradient)?;
    parameters.update(name, weights);
    Ok(())
}

/// Sums of several batches are f32, whatever the gradients are.
fn accumulate(sums: &mut BTreeMap<String, Values>, name: &str, gradient: Values, batches: usize) {
    let sum = match sums.remove(name) {
        Some(sum) => {
            let sum = sum.to_f32().into_iter().zip(gradient.to_f32()).map(|(a, b)| a + b).collect();
            Values::F32(sum)
        }
        None if batches > 1 => Values::F32(gradient.to_f32()),
        None => gradient,
    };
    sums.insert(name.to_owned(), sum);
}

fn square(values: &Values) -> f64 {
    values.to_f32().iter().map(|value| f64::from(*value).powi(2)).sum()
}

fn scaled(gradient: &Values, factor: f32) -> Values {
    Values::F32(gradient.to_f32().into_iter().map(|v| v * factor).collect())
}
