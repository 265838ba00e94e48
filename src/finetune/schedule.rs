//! The number of a step in, its learning rate out.
//!
//! Never moves when a step is skipped: it is asked by steps that were taken.

use std::f32::consts::PI;

/// A linear rise, then half a cosine down to nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    pub peak: f32,
    pub warmup_steps: u64,
    pub max_steps: u64,
}

impl Schedule {
    /// The learning rate of step `taken`, the first being 0.
    pub fn learning_rate(&self, taken: u64) -> f32 {
        if taken < self.warmup_steps {
            return self.peak * (taken + 1) as f32 / self.warmup_steps as f32;
        }
        let rest = self.max_steps.saturating_sub(self.warmup_steps).max(1);
        let done = (taken - self.warmup_steps).min(rest) as f32 / rest as f32;
        self.peak * 0.5 * (1.0 + (PI * done).cos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_then_falls_to_nothing() {
        let schedule = Schedule { peak: 1.0, warmup_steps: 4, max_steps: 14 };
        let rate = |step| schedule.learning_rate(step);
        assert_eq!([rate(0), rate(3), rate(4)], [0.25, 1.0, 1.0]);
        assert!((rate(9) - 0.5).abs() < 1e-6 && rate(14) < 1e-6 && rate(99) < 1e-6);
        assert!((4..14).all(|step| rate(step + 1) < rate(step)));
    }
}
