//! A seed, a sentence and a step in, the prenet's dropout mask out.
//!
//! The prenet's dropout stays on at inference, as the voice was trained. The mask comes from a counter, not
//! from a state, so a stream gets the same mask alone and in company. Never shared between streams.

use crate::split_mix::{GOLDEN, mix};

/// Which units of the prenet stay, for every step of one sentence.
#[derive(Debug, Clone, Copy)]
pub struct PrenetDropout {
    seed: u64,
    /// A unit is dropped when its 32 random bits lie below this: `p · 2³²`.
    threshold: u64,
    /// `1 / (1 − p)`
    gain: f32,
}

impl PrenetDropout {
    /// Dropout of probability `p` in [0, 1) for sentence number `sentence` of a request with `seed`.
    pub fn new(p: f32, seed: u64, sentence: u64) -> Self {
        let threshold = (f64::from(p) * 2f64.powi(32)) as u64;
        Self { seed: mix(mix(seed) ^ sentence), threshold, gain: 1.0 / (1.0 - p) }
    }

    /// Writes the mask of `layer` at `step`: 0 drops a unit, `1 / (1 − p)` keeps it.
    pub fn fill(&self, step: u64, layer: u64, mask: &mut [f32]) {
        let stream = mix(self.seed ^ mix(step << 8 | layer));
        for (pair, units) in mask.chunks_mut(2).enumerate() {
            let bits = mix(stream.wrapping_add((pair as u64).wrapping_mul(GOLDEN)));
            for (unit, bits) in units.iter_mut().zip([bits & 0xffff_ffff, bits >> 32]) {
                *unit = if bits < self.threshold { 0.0 } else { self.gain };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(seed: u64, sentence: u64, step: u64, layer: u64) -> Vec<f32> {
        let mut mask = vec![f32::NAN; 257];
        PrenetDropout::new(0.5, seed, sentence).fill(step, layer, &mut mask);
        mask
    }

    #[test]
    fn depends_on_nothing_but_its_counter() {
        assert_eq!(mask(42, 0, 7, 1), mask(42, 0, 7, 1));
        for other in [mask(43, 0, 7, 1), mask(42, 1, 7, 1), mask(42, 0, 8, 1), mask(42, 0, 7, 0)] {
            assert_ne!(mask(42, 0, 7, 1), other);
        }
    }

    #[test]
    fn drops_the_share_it_was_asked_to() {
        for p in [0.0, 0.1, 0.5, 0.9] {
            let dropout = PrenetDropout::new(p, 1, 0);
            let mut mask = vec![0.0; 256];
            let mut dropped = 0usize;
            for step in 0..400 {
                dropout.fill(step, 0, &mut mask);
                dropped += mask.iter().filter(|&&unit| unit == 0.0).count();
            }
            let share = dropped as f32 / (400.0 * 256.0);
            // Five standard deviations of a binomial share over 102,400 draws are below 0.008.
            assert!((share - p).abs() < 0.008, "asked for {p}, dropped {share}");
        }
    }

    #[test]
    fn keeps_the_mean_of_a_unit() {
        assert!(mask(42, 0, 0, 0).iter().all(|&unit| unit == 0.0 || unit == 2.0));
    }
}
