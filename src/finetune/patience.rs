//! Validation losses in, whether a run should go on out.
//!
//! A loss that is not finite is no improvement. Never stops a run that was given no patience.

/// How long a run goes on without an improvement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patience {
    /// Validations without an improvement before the run ends; `None` never ends it.
    pub validations: Option<u32>,
    pub best: f32,
    pub without_improvement: u32,
}

/// What a validation said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The lowest loss so far: these weights are the ones to keep.
    Improved,
    GoOn,
    Stop,
}

impl Patience {
    pub fn new(validations: Option<u32>) -> Self {
        Self { validations, best: f32::INFINITY, without_improvement: 0 }
    }

    pub fn hear(&mut self, loss: f32) -> Verdict {
        if loss < self.best {
            (self.best, self.without_improvement) = (loss, 0);
            return Verdict::Improved;
        }
        self.without_improvement = self.without_improvement.saturating_add(1);
        let spent = self.validations.is_some_and(|limit| self.without_improvement >= limit);
        if spent { Verdict::Stop } else { Verdict::GoOn }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{GoOn, Improved, Stop};
    use super::*;

    fn check(validations: Option<u32>, heard: &[(f32, Verdict)]) {
        let mut patience = Patience::new(validations);
        for (loss, verdict) in heard {
            assert_eq!(patience.hear(*loss), *verdict, "{validations:?}, {loss}");
        }
    }

    #[test]
    fn it_ends_when_nothing_has_improved_for_as_long_as_it_was_given() {
        check(Some(2), &[(1.0, Improved), (1.0, GoOn), (0.9, Improved), (0.95, GoOn), (f32::NAN, Stop)]);
        check(Some(1), &[(f32::NAN, Stop)]);
        check(None, &[(1.0, Improved), (2.0, GoOn), (2.0, GoOn), (f32::INFINITY, GoOn)]);
    }
}
