//! Batches in, one optimizer step at a time out.
//!
//! Every mode takes the same step: forward and loss, backward, gradients to the host, a look for what is not finite,
//! clipping, AdamW. Where tensors rest and in what they are multiplied is [`TrainingPlan`]'s and [`Arithmetic`]'s. A
//! step that is skipped moves neither Adam's count nor the schedule. Never reads a recording.

mod result;

use std::collections::BTreeMap;

use burn::tensor::Device;

use super::average::{Average, decay};
use super::learner::Learner;
use super::lora::{Adapter, is_adapted};
use super::loss::{Loss, Losses};
use super::network::learned_speaker;
use super::network::{Arithmetic, Batch, Dropout, Network, Outputs, Parameters};
use super::optimizer::{AdamW, Rest, Step, Values};
use super::schedule::Schedule;
use crate::error::{Error, Result};
use crate::precision::scaler::{LossScaler, ScalerRule};
use crate::precision::{Dtype, LossScaling, MasterWeights, OptimizerStates, Precision, TrainingPlan};
use crate::split_mix::mix;
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
    /// Attention projections learn through adapters of this rank, and nothing else learns.
    pub lora_rank: Option<usize>,
    /// The limit of the [`decay`] of a moving average, where one is kept.
    pub average_decay: Option<f32>,
}

/// alpha of an adapter for each of its rank: what it adds is multiplied by this.
const LORA_SCALE: f32 = 2.0;

/// A network in training.
pub struct Trainer {
    config: AcousticConfig,
    arithmetic: Arithmetic,
    device: Device,
    pub(super) gradients: Dtype,
    /// Whether each gradient moves its tensor and goes before the next part of the network is differentiated.
    pub(super) releases: bool,
    recipe: Recipe,
    pub(super) parameters: Parameters,
    pub(super) learners: BTreeMap<String, Learner>,
    /// Of every tensor that learns, or of none.
    pub(super) averages: BTreeMap<String, Average>,
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
    /// Tensors nearer to the loss that a skipped step had moved already: see [`Trainer::step`].
    pub moved_before_skip: usize,
}

impl Trainer {
    /// The acoustic model of `voice`, resting as `plan` says; `trained` says which tensors learn.
    ///
    /// # Errors
    /// [`Error::InvalidVoice`] when the checkpoint cannot be read, [`Error::InvalidRequest`] when nothing would learn or
    /// an adapter's rank saves nothing.
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
        let learns = |name: &str| trained(name) && (recipe.lora_rank.is_none() || is_adapted(name));
        let mut parameters = Parameters::of_voice(voice, weights, learns, device)?;
        let rest = Rest { master_weights: plan.master_weights, states: plan.optimizer_states };
        let shapes = parameters.iter().filter(|(.., trained)| *trained);
        let shapes: Vec<_> = shapes.map(|(name, shape, _)| (name.to_owned(), shape.to_vec())).collect();
        let mut learners = BTreeMap::new();
        for (number, (name, shape)) in shapes.into_iter().enumerate() {
            // From the f32 checkpoint and not from what it was rounded to: its last bits live in the residual.
            let dtype = parameters.host(&name)?.dtype();
            let of_checkpoint = voice.acoustic.f32(&name)?;
            let (values, learner) = match (recipe.lora_rank, shape.as_slice()) {
                (Some(rank), &[outputs, inputs]) => {
                    let adapter = Adapter::new([outputs, inputs], rank, LORA_SCALE * rank as f32)?;
                    let seed = mix(recipe.seed ^ mix(number as u64));
                    Learner::thin(of_checkpoint, dtype, rest, adapter, seed)
                }
                _ => Learner::whole(&of_checkpoint, dtype, rest),
            };
            parameters.update(&name, values);
            learners.insert(name, learner);
        }
        if learners.is_empty() {
            return Err(Error::InvalidRequest("nothing is left to learn: freeze less".to_owned()));
        }
        let rule = match plan.loss_scaling {
            LossScaling::Dynamic => ScalerRule::default(),
            LossScaling::None => {
                ScalerRule { initial: 1.0, growth: 1.0, backoff: 1.0, ..ScalerRule::default() }
            }
        };
        let mut trainer = Self {
            config: voice.config.clone(),
            arithmetic: Arithmetic::new(precision),
            device: device.clone(),
            gradients: plan.gradients,
            // Clipping asks for the norm of all gradients and a loss scale for a look at all of them; so does f16,
            // where one that is not finite is to be expected.
            releases: precision == Precision::BF16Flash
                && plan.loss_scaling == LossScaling::None
                && recipe.clip_norm <= 0.0,
            recipe,
            parameters,
            learners,
            averages: BTreeMap::new(),
            scaler: LossScaler::new(rule),
            progress: Progress::default(),
        };
        if recipe.average_decay.is_some() {
            for name in trainer.parameters.trained() {
                trainer.averages.insert(name.clone(), Average::new(&trainer.master(&name)?));
            }
        }
        Ok(trainer)
    }

    /// Lets `embedding` of a speaker called `name` learn with the weights: in f32 whatever the mode is.
    pub fn add_speaker(&mut self, name: &str, embedding: &[f32]) {
        let name = learned_speaker(name);
        let states = OptimizerStates::Plain(Dtype::F32);
        let rest = Rest { master_weights: MasterWeights::SameAsWeights, states };
        let (values, learner) = Learner::whole(embedding, Dtype::F32, rest);
        self.parameters.put(&name, &[embedding.len()], values, true);
        if self.recipe.average_decay.is_some() {
            self.averages.insert(name.clone(), Average::new(embedding));
        }
        self.learners.insert(name, learner);
    }

    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// One step over the mean of `batches`. A gradient that is not finite stops it before a weight has moved, but where
    /// gradients are released (bf16-flash, one batch, no clipping): what lies nearer to the loss has moved by then, and
    /// the report says how much.
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
            for name in self.learners.keys() {
                if let Some(gradient) = self.parameters.take_gradient(name, &mut found)? {
                    accumulate(&mut gradients, name, gradient, batches.len());
                }
            }
        }
        self.progress.tried += 1;
        let inverse = self.scaler.inverse();
        let mut squares = 0.0;
        let mut skipped = losses.not_finite().map(str::to_owned);
        for (name, gradient) in &gradients {
            let of_this = square(gradient);
            if !of_this.is_finite() && skipped.is_none() {
                skipped = Some(name.clone());
            }
            squares += of_this;
        }
        let gradient_norm = crate::precision::cast::f64_to_f32(squares.sqrt() * f64::from(inverse));
        let report =
            StepReport { losses, learning_rate, gradient_norm, loss_scale, skipped, moved_before_skip: 0 };
        if let Some(tensor) = &report.skipped {
            self.skip(tensor)?;
            return Ok(report);
        }
        let clip = self.recipe.clip_norm;
        let shrink = if clip > 0.0 && gradient_norm > clip { clip / gradient_norm } else { 1.0 };
        self.move_weights(gradients, learning_rate, inverse * shrink)?;
        self.scaler.stepped();
        self.follow()?;
        Ok(report)
    }

    /// A step whose `tensor` was not finite moves nothing. Where a weight is not finite itself no step after it could.
    fn skip(&mut self, tensor: &str) -> Result<()> {
        for name in self.learners.keys() {
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
    /// more is moved.
    fn step_released(&mut self, batch: &Batch) -> Result<StepReport> {
        let learning_rate = self.recipe.schedule.learning_rate(self.progress.taken);
        let step = self.recipe.adamw.step(self.progress.taken + 1, learning_rate);
        let (mut squares, mut skipped, mut moved) = (0.0, None, 0);
        let learners = &mut self.learners;
        let mut take = |parameters: &mut Parameters, name: &str, gradient: Values| {
            let of_this = square(&gradient);
            squares += of_this;
            if !of_this.is_finite() {
                skipped.get_or_insert_with(|| name.to_owned());
            }
            let Some(learner) = learners.get_mut(name).filter(|_| skipped.is_none()) else { return Ok(()) };
            moved += 1;
            move_weight(parameters, name, learner, &step, &gradient)
        };
        let network =
            Network { config: &self.config, arithmetic: self.arithmetic, device: self.device.clone() };
        let mut dropout = Dropout::new(self.recipe.seed, self.progress.tried);
        let loss = network.release(&mut self.parameters, batch, &mut dropout, &mut take)?;
        self.progress.tried += 1;
        let losses = Losses::of(&loss);
        let gradient_norm = crate::precision::cast::f64_to_f32(squares.sqrt());
        let skipped = skipped.or_else(|| losses.not_finite().map(str::to_owned));
        let moved_before_skip = if skipped.is_some() { moved } else { 0 };
        let report =
            StepReport { losses, learning_rate, gradient_norm, loss_scale: 1.0, skipped, moved_before_skip };
        match &report.skipped {
            Some(tensor) => self.skip(tensor)?,
            None => {
                self.progress.taken += 1;
                self.scaler.stepped();
                self.follow()?;
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
            let learner = self.learners.get_mut(&name).ok_or_else(missing)?;
            move_weight(&mut self.parameters, &name, learner, &step, &gradient)?;
        }
        Ok(())
    }

    /// Lets the averages follow the weights.
    fn follow(&mut self) -> Result<()> {
        let Some(limit) = self.recipe.average_decay else { return Ok(()) };
        let decay = decay(limit, self.progress.taken);
        let mut averages = std::mem::take(&mut self.averages);
        for (name, average) in &mut averages {
            average.follow(&self.master(name)?, decay)?;
        }
        self.averages = averages;
        Ok(())
    }

    fn loss(&self, batch: &Batch, dropout: &mut Dropout) -> Loss {
        Loss::new(self.outputs(batch, dropout), batch, &self.config, &self.device)
    }

    /// What the network gives for `batch`.
    pub(super) fn outputs(&self, batch: &Batch, dropout: &mut Dropout) -> Outputs {
        let network =
            Network { config: &self.config, arithmetic: self.arithmetic, device: self.device.clone() };
        network.forward(&self.parameters, batch, dropout)
    }

    pub(super) fn config(&self) -> &AcousticConfig {
        &self.config
    }

    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

fn move_weight(
    parameters: &mut Parameters,
    name: &str,
    learner: &mut Learner,
    step: &Step,
    gradient: &Values,
) -> Result<()> {
    let mut weights = parameters.host(name)?;
    learner.take(step, &mut weights, gradient)?;
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
