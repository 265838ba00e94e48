//! What was decided for every stage, and why, in; a table a person can read out.
//!
//! Never decides anything: that is [`resolve()`](super::resolve()).

use std::fmt;

use super::{Dtype, Precision};

/// The five independent settings of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dtypes {
    pub weights: Dtype,
    /// Operands of matrix products and convolutions, and what is kept between them.
    pub activations: Dtype,
    pub accumulation: Dtype,
    /// The decoder's self-attention cache; for the encoder the cross-attention K and V it produces; f32
    /// and without meaning for the vocoder, which has none.
    pub kv_cache: Dtype,
    /// What the next stage is handed.
    pub output: Dtype,
}

/// What was asked of a stage, what its checkpoint holds, and what the device really executes.
///
/// Weight values are rounded to `requested.weights` and held and multiplied in `executed.weights`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagePlan {
    pub requested: Dtypes,
    pub stored: Dtype,
    pub executed: Dtypes,
}

/// A precision resolved for one voice on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub precision: Precision,
    /// The name of the device the plan was made for.
    pub device: String,
    pub encoder: StagePlan,
    pub decoder: StagePlan,
    pub vocoder: StagePlan,
    /// Present when the plan was made for training.
    pub training: Option<TrainingPlan>,
    /// Why execution differs from the request, and what to know about the numbers; whole sentences.
    pub reasons: Vec<String>,
}

/// How weights step. Values follow the mode tables of NeMo and Lightning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainingPlan {
    /// Dtype of a weight's gradient.
    pub gradients: Dtype,
    pub master_weights: MasterWeights,
    pub optimizer_states: OptimizerStates,
    pub loss_scaling: LossScaling,
    /// Whether batches are converted to the half dtype, their audio kept.
    pub batch_conversion: bool,
}

/// Where the bits live that a weight's own format cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MasterWeights {
    /// Nowhere: an update smaller than half a unit of the weight is lost.
    None,
    /// The weights are f32 themselves.
    SameAsWeights,
    /// In an i8 beside each 16-bit weight: 24 bits together.
    Residual24,
    /// In an i16 beside each 16-bit weight: 32 bits together.
    Residual32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptimizerStates {
    Plain(Dtype),
    /// Companded to 8 bits, with a scale per group of 32.
    Companded8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossScaling {
    None,
    Dynamic,
}

impl Plan {
    /// The plan with the vocoder checkpoint's own dtype, which is f32 until somebody says otherwise.
    pub fn with_vocoder_stored(mut self, stored: Dtype) -> Self {
        self.vocoder.stored = stored;
        self.reasons.extend(super::resolve::lost_bits("vocoder", stored, self.vocoder.requested.weights));
        self
    }

    /// One line for the log: what the acoustic model executes, and what was asked where that differs.
    pub fn summary(&self) -> String {
        let StagePlan { requested, executed, stored } = self.decoder;
        let setting = |name: &str, asked: Dtype, runs: Dtype| {
            if asked == runs { format!("{name} {runs}") } else { format!("{name} {runs} (asked {asked})") }
        };
        let mut settings = vec![
            format!("stored {stored}"),
            setting("weights", requested.weights, executed.weights),
            setting("activations", requested.activations, executed.activations),
            setting("accumulation", requested.accumulation, executed.accumulation),
        ];
        if self.training.is_none() {
            settings.push(setting("KV cache", requested.kv_cache, executed.kv_cache));
        }
        settings.push(setting("output", requested.output, executed.output));
        settings.push(format!("vocoder {}", self.vocoder.executed.activations));
        format!("precision {} on {}: {}", self.precision, self.device, settings.join(", "))
    }
}

/// The table of `say --explain`: stage by dtype, requested, stored and executed; then the reasons.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "precision {} on {}", self.precision, self.device)?;
        let mut row = |stage: &str, what: &str, cells: [String; 5]| {
            let [weights, activations, accumulation, kv_cache, output] = cells;
            let line = format!(
                "{stage:<8} {what:<10} {weights:<8} {activations:<12} {accumulation:<13} {kv_cache:<9} {output}"
            );
            writeln!(f, "{}", line.trim_end())
        };
        row(
            "stage",
            "",
            ["weights", "activations", "accumulation", "KV cache", "output"].map(str::to_owned),
        )?;
        let caches = self.training.is_none();
        for (stage, plan, caches) in [
            ("encoder", self.encoder, caches),
            ("decoder", self.decoder, caches),
            ("vocoder", self.vocoder, false),
        ] {
            let cells = |d: Dtypes| {
                let kv_cache = if caches { d.kv_cache.to_string() } else { "-".to_owned() };
                let [weights, activations, accumulation, output] =
                    [d.weights, d.activations, d.accumulation, d.output].map(|d| d.to_string());
                [weights, activations, accumulation, kv_cache, output]
            };
            let mut stored = [const { String::new() }; 5];
            stored[0] = plan.stored.to_string();
            row(stage, "requested", cells(plan.requested))?;
            row("", "stored", stored)?;
            row("", "executed", cells(plan.executed))?;
        }
        if let Some(training) = self.training {
            writeln!(f, "{training}")?;
        }
        for reason in &self.reasons {
            writeln!(f, "- {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TrainingPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let master_weights = match self.master_weights {
            MasterWeights::None => "none",
            MasterWeights::SameAsWeights => "the weights themselves",
            MasterWeights::Residual24 => "weight and i8 residual (24 bits)",
            MasterWeights::Residual32 => "weight and i16 residual (32 bits)",
        };
        let optimizer_states = match self.optimizer_states {
            OptimizerStates::Plain(dtype) => dtype.to_string(),
            OptimizerStates::Companded8 => "8 bits companded, a scale per 32".to_owned(),
        };
        let loss_scaling = match self.loss_scaling {
            LossScaling::None => "none",
            LossScaling::Dynamic => "dynamic",
        };
        let batch_conversion = if self.batch_conversion { "all but audio" } else { "none" };
        write!(
            f,
            "training: gradients {}, master weights: {master_weights}, optimizer states: {optimizer_states}, \
             loss scaling: {loss_scaling}, batch conversion: {batch_conversion}",
            self.gradients
        )
    }
}
