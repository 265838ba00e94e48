//! Whether a step's gradients were finite in, the scale of the next loss out.
//!
//! torch's GradScaler, with two differences: the scale never falls below 1, where torch's reaches 0 and stays there,
//! and a run of skipped steps ends the training instead of going on for ever. Megatron's is a rule of the same scaler.
//! Never sees a tensor.

use crate::error::{Error, Result};

/// How the scale moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalerRule {
    pub initial: f32,
    pub growth: f32,
    pub backoff: f32,
    /// Good steps between two growths.
    pub interval: u32,
    pub floor: f32,
    /// Skipped steps that it takes before the scale falls, counted since it last grew.
    pub hysteresis: u32,
    /// Skipped steps in a row that end the run.
    pub patience: u32,
}

impl Default for ScalerRule {
    fn default() -> Self {
        Self {
            initial: 65536.0,
            growth: 2.0,
            backoff: 0.5,
            interval: 2000,
            floor: 1.0,
            hysteresis: 1,
            patience: 20,
        }
    }
}

impl ScalerRule {
    /// Megatron's `DynamicGradScaler` as NeMo sets it up. It begins so high that about 17 steps are skipped first.
    pub fn megatron() -> Self {
        let initial = 4_294_967_296.0;
        Self { initial, interval: 1000, hysteresis: 2, patience: 40, ..Self::default() }
    }
}

/// The scale of the loss, and what decides its next value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossScaler {
    rule: ScalerRule,
    scale: f32,
    good_steps: u32,
    skipped: u32,
    /// Skipped steps that are borne before the scale falls.
    borne: u32,
}

impl LossScaler {
    pub fn new(rule: ScalerRule) -> Self {
        Self {
            rule,
            scale: rule.initial,
            good_steps: 0,
            skipped: 0,
            borne: rule.hysteresis.saturating_sub(1),
        }
    }

    /// This scaler, going on from `state` with its whole hysteresis. A scale that no gradient survives (0, negative or
    /// not finite) starts anew.
    pub fn resumed(self, state: [f32; 3]) -> Self {
        let [scale, good_steps, skipped] = state;
        if !(scale.is_finite() && scale > 0.0) {
            tracing::warn!(
                "the loss scale of the checkpoint is {scale}: it starts at {} again",
                self.rule.initial
            );
            return Self::new(self.rule);
        }
        let scale = scale.max(self.rule.floor);
        Self { scale, good_steps: good_steps as u32, skipped: skipped as u32, ..self }
    }

    /// Scale, good steps since it moved, skipped steps in a row: all small enough to be f32 exactly.
    pub fn state(&self) -> [f32; 3] {
        [self.scale, self.good_steps as f32, self.skipped as f32]
    }

    /// What the loss is multiplied by.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// What gradients are multiplied by, rounded once from f64 as torch does.
    pub fn inverse(&self) -> f32 {
        super::cast::f64_to_f32(1.0 / f64::from(self.scale))
    }

    /// Good steps since the scale last moved.
    pub fn good_steps(&self) -> u32 {
        self.good_steps
    }

    /// All gradients of a step were finite.
    pub fn stepped(&mut self) {
        self.skipped = 0;
        self.good_steps += 1;
        if self.good_steps >= self.rule.interval {
            let grown = self.scale * self.rule.growth;
            if grown.is_finite() {
                self.scale = grown;
            }
            self.good_steps = 0;
            self.borne = self.rule.hysteresis.saturating_sub(1);
        }
    }

    /// A step was skipped; `tensor` is the first whose gradient was not finite.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when the rule's patience is at an end: another precision or a lower learning rate is
    /// needed.
    pub fn skipped(&mut self, tensor: &str) -> Result<()> {
        match self.borne.checked_sub(1) {
            Some(borne) => self.borne = borne,
            None => self.scale = (self.scale * self.rule.backoff).max(self.rule.floor),
        }
        self.good_steps = 0;
        self.skipped += 1;
        if self.skipped < self.rule.patience {
            return Ok(());
        }
        Err(Error::InvalidRequest(format!(
            "{} steps in a row had gradients that are not finite, first in {tensor}; the loss scale is {}: use a \
             lower learning rate, or a bf16 mode or 32",
            self.skipped, self.scale
        )))
    }
}
