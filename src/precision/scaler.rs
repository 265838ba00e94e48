//! Whether a step's gradients were finite in, the scale of the next loss out.
//!
//! torch's GradScaler, with two differences: the scale never falls below 1, where torch's reaches 0 and stays there,
//! and a run of skipped steps ends the training instead of going on for ever. Never sees a tensor.

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
    /// Skipped steps in a row that end the run.
    pub patience: u32,
}

impl Default for ScalerRule {
    fn default() -> Self {
        Self { initial: 65536.0, growth: 2.0, backoff: 0.5, interval: 2000, floor: 1.0, patience: 20 }
    }
}

/// The scale of the loss, and what decides its next value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossScaler {
    rule: ScalerRule,
    scale: f32,
    good_steps: u32,
    skipped: u32,
}

impl LossScaler {
    pub fn new(rule: ScalerRule) -> Self {
        Self { rule, scale: rule.initial, good_steps: 0, skipped: 0 }
    }

    /// This scaler, going on from `state`.
    ///
    /// # Errors
    /// What is wrong with a state that no run of this rule can have left: a scale that is not finite or below the floor,
    /// or a count that is none.
    pub fn resumed(self, state: [f32; 3]) -> std::result::Result<Self, String> {
        let [scale, good_steps, skipped] = state;
        let ScalerRule { floor, interval, patience, .. } = self.rule;
        if !(scale.is_finite() && scale >= floor) {
            return Err(format!("its loss scale is {scale}, a number from {floor} on is needed"));
        }
        let count = |what: &str, value: f32, limit: u32| {
            let is_count = value.fract() == 0.0 && (0.0..limit as f32).contains(&value);
            let refusal = || format!("its loss scale has {value} {what}, 0 to {limit} are possible");
            if is_count { Ok(value as u32) } else { Err(refusal()) }
        };
        let good_steps = count("good steps behind it", good_steps, interval)?;
        let skipped = count("skipped steps behind it", skipped, patience)?;
        Ok(Self { scale, good_steps, skipped, ..self })
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
        if self.good_steps == self.rule.interval {
            let grown = self.scale * self.rule.growth;
            if grown.is_finite() {
                self.scale = grown;
            }
            self.good_steps = 0;
        }
    }

    /// A step was skipped; `tensor` is the first whose gradient was not finite.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when the rule's patience is at an end: another precision or a lower learning rate is
    /// needed.
    pub fn skipped(&mut self, tensor: &str) -> Result<()> {
        self.scale = (self.scale * self.rule.backoff).max(self.rule.floor);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(state: [f32; 3], refusal: Option<&str>) {
        let resumed = LossScaler::new(ScalerRule::default()).resumed(state);
        match refusal {
            None => assert_eq!(resumed.unwrap().state(), state),
            Some(reason) => assert!(resumed.unwrap_err().contains(reason), "{state:?}"),
        }
    }

    #[test]
    fn a_state_that_no_run_has_left_is_refused() {
        check([65536.0, 0.0, 0.0], None);
        check([1.0, 1999.0, 19.0], None);
        for scale in [0.0, 0.5, -2.0, f32::NAN, f32::INFINITY] {
            check([scale, 0.0, 0.0], Some("loss scale is"));
        }
        for count in [-1.0, 0.5, f32::NAN, 2000.0] {
            check([2.0, count, 0.0], Some("good steps"));
            check([2.0, 0.0, count], Some("skipped steps"));
        }
        check([2.0, 0.0, 20.0], Some("skipped steps"));
    }
}
