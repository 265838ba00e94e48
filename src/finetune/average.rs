//! Weights after each step in, their moving average out.
//!
//! Kept in f32 whatever the weights are: a half average moves by less than it can say. The decay of the first steps is
//! lower, (1 + n) / (10 + n), so that an average that began at the checkpoint is not held there (TensorFlow's
//! `ExponentialMovingAverage`). Never moves a weight.

use crate::error::{Error, Result};

/// The moving average of one tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Average(Vec<f32>);

/// The share of the average that stays at step `taken`, the first being 1.
pub fn decay(limit: f32, taken: u64) -> f32 {
    let taken = taken as f32;
    limit.min((1.0 + taken) / (10.0 + taken))
}

impl Average {
    pub fn new(weights: &[f32]) -> Self {
        Self(weights.to_vec())
    }

    pub fn values(&self) -> &[f32] {
        &self.0
    }

    /// # Errors
    /// [`Error::Internal`] when `weights` are of another size.
    pub fn follow(&mut self, weights: &[f32], decay: f32) -> Result<()> {
        if weights.len() != self.0.len() {
            let (found, expected) = (weights.len(), self.0.len());
            return Err(Error::Internal(format!("an average of {expected} values follows {found}")));
        }
        for (average, weight) in self.0.iter_mut().zip(weights) {
            *average += (weight - *average) * (1.0 - decay);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_what_stays_and_forgets_where_it_began() {
        let mut average = Average::new(&[1.0, -1.0]);
        average.follow(&[2.0, -1.0], 0.75).unwrap();
        assert_eq!(average.values(), [1.25, -1.0]);
        for taken in 1..=2_000 {
            average.follow(&[3.0, 5.0], decay(0.99, taken)).unwrap();
        }
        assert!((average.values()[0] - 3.0).abs() < 1e-5 && (average.values()[1] - 5.0).abs() < 1e-5);
        assert!(average.follow(&[1.0], 0.5).is_err());
    }

    #[test]
    fn the_first_steps_weigh_more() {
        assert_eq!([decay(0.999, 0), decay(0.999, 8)], [0.1, 0.5]);
        assert_eq!(decay(0.999, 1_000_000), 0.999);
    }
}
