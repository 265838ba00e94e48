//! The gradient of a weight in, the gradients of its two thin factors out, and the factors merged back into the weight.
//!
//! LoRA (Hu et al. 2021, section 4.1): W = W0 + (alpha / rank) B A, of which only A and B learn. The network sees the
//! merged W, so it needs no second path and an exported voice is one already: dB = s dW Aᵀ and dA = s Bᵀ dW are the
//! chain rule. The sums are f32. Never touches W0.

use crate::error::{Error, Result};
use crate::split_mix::{GOLDEN, mix};

/// Which weights get an adapter: the attention projections.
const ADAPTED: [&str; 4] = ["q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.weight"];

pub fn is_adapted(name: &str) -> bool {
    ADAPTED.iter().any(|projection| name.ends_with(projection))
}

/// The adapter of one weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapter {
    outputs: usize,
    inputs: usize,
    rank: usize,
    /// alpha / rank
    scale: f32,
}

/// A pair of tensors of an adapter: its factors, or their gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// [rank, inputs]
    pub a: Vec<f32>,
    /// [outputs, rank]
    pub b: Vec<f32>,
}

impl Adapter {
    /// For a weight [outputs, inputs].
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a rank of 0, or one that saves nothing over the weight itself.
    pub fn new([outputs, inputs]: [usize; 2], rank: usize, alpha: f32) -> Result<Self> {
        if rank == 0 || rank * (outputs + inputs) >= outputs * inputs {
            return Err(Error::InvalidRequest(format!(
                "a LoRA rank of {rank} is not in 1..{} of a weight [{outputs}, {inputs}]",
                (outputs * inputs).div_ceil((outputs + inputs).max(1))
            )));
        }
        if !(alpha.is_finite() && alpha > 0.0) {
            return Err(Error::InvalidRequest(format!("a LoRA alpha of {alpha} is not above 0")));
        }
        Ok(Self { outputs, inputs, rank, scale: alpha / rank as f32 })
    }

    /// Factors whose product is 0: A uniform in ±1/√inputs from a counter of `seed`, B zero.
    pub fn factors(&self, seed: u64) -> Factors {
        let reach = 1.0 / (self.inputs as f32).sqrt();
        let value = |index: u64| {
            let bits = mix(seed.wrapping_add(index.wrapping_mul(GOLDEN))) >> 40;
            (bits as f32 / (1_u64 << 23) as f32 - 1.0) * reach
        };
        let a = (0..self.rank * self.inputs).map(|index| value(index as u64)).collect();
        Factors { a, b: vec![0.0; self.outputs * self.rank] }
    }

    /// W0 + s B A.
    ///
    /// # Errors
    /// [`Error::Internal`] when a tensor has another size.
    pub fn merged(&self, base: &[f32], factors: &Factors) -> Result<Vec<f32>> {
        self.fits("a weight", base, self.outputs * self.inputs)?;
        self.fit(factors)?;
        let mut merged = base.to_vec();
        for (row, b) in merged.chunks_mut(self.inputs).zip(factors.b.chunks(self.rank)) {
            for (a, b) in factors.a.chunks(self.inputs).zip(b) {
                add_scaled(row, a, self.scale * b);
            }
        }
        Ok(merged)
    }

    /// The gradients of the factors, from that of the merged weight.
    ///
    /// # Errors
    /// As [`Self::merged`].
    pub fn gradients(&self, weight: &[f32], factors: &Factors) -> Result<Factors> {
        self.fits("a gradient", weight, self.outputs * self.inputs)?;
        self.fit(factors)?;
        let mut gradients = Factors {
            a: vec![0.0; self.rank * self.inputs],
            b: Vec::with_capacity(self.outputs * self.rank),
        };
        for (row, b) in weight.chunks(self.inputs).zip(factors.b.chunks(self.rank)) {
            for ((a, gradient), b) in
                factors.a.chunks(self.inputs).zip(gradients.a.chunks_mut(self.inputs)).zip(b)
            {
                gradients.b.push(self.scale * row.iter().zip(a).map(|(w, a)| w * a).sum::<f32>());
                add_scaled(gradient, row, self.scale * b);
            }
        }
        Ok(gradients)
    }

    fn fit(&self, factors: &Factors) -> Result<()> {
        self.fits("the factor A", &factors.a, self.rank * self.inputs)?;
        self.fits("the factor B", &factors.b, self.outputs * self.rank)
    }

    fn fits(&self, what: &str, values: &[f32], expected: usize) -> Result<()> {
        if values.len() == expected {
            return Ok(());
        }
        Err(Error::Internal(format!("{what} has {} values, {expected} are needed", values.len())))
    }
}

fn add_scaled(sum: &mut [f32], values: &[f32], factor: f32) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: [usize; 2] = [6, 5];

    fn adapter() -> Adapter {
        Adapter::new(SHAPE, 2, 3.0).unwrap()
    }

    fn waves(len: usize, rate: f32) -> Vec<f32> {
        (0..len).map(|at| (at as f32 * rate + 0.3).sin()).collect()
    }

    #[test]
    fn a_new_adapter_changes_nothing() {
        let base = waves(30, 0.7);
        let factors = adapter().factors(7);
        assert_eq!(adapter().merged(&base, &factors).unwrap(), base);
        assert!(factors.a.iter().all(|a| a.abs() <= 0.4473) && factors.a.iter().any(|a| a.abs() > 0.2));
        assert_ne!(factors, adapter().factors(8));
        assert_eq!(factors, adapter().factors(7));
    }

    #[test]
    fn gradients_are_those_of_the_merged_weight() {
        let (base, weight) = (waves(30, 0.7), waves(30, 1.9));
        let factors = Factors { a: waves(10, 0.4), b: waves(12, 1.1) };
        // A loss that is linear in W has dW as its gradient wherever W is.
        let loss = |factors: &Factors| -> f64 {
            let merged = adapter().merged(&base, factors).unwrap();
            merged.iter().zip(&weight).map(|(w, g)| f64::from(*w) * f64::from(*g)).sum()
        };
        let found = adapter().gradients(&weight, &factors).unwrap();
        let slope = |change: &dyn Fn(&mut Factors, f32)| {
            let moved = |by| {
                let mut factors = factors.clone();
                change(&mut factors, by);
                loss(&factors)
            };
            (moved(0.5) - moved(-0.5)) as f32
        };
        for (at, gradient) in found.a.iter().enumerate() {
            assert!((slope(&|factors, by| factors.a[at] += by) - gradient).abs() < 1e-4, "a[{at}]");
        }
        for (at, gradient) in found.b.iter().enumerate() {
            assert!((slope(&|factors, by| factors.b[at] += by) - gradient).abs() < 1e-4, "b[{at}]");
        }
    }

    #[test]
    fn a_rank_that_saves_nothing_is_refused() {
        let refused = |rank, alpha| Adapter::new(SHAPE, rank, alpha).unwrap_err().to_string();
        assert_eq!(refused(0, 1.0), "a LoRA rank of 0 is not in 1..3 of a weight [6, 5]");
        assert_eq!(refused(3, 1.0), "a LoRA rank of 3 is not in 1..3 of a weight [6, 5]");
        assert_eq!(refused(2, f32::NAN), "a LoRA alpha of NaN is not above 0");
        assert!(adapter().merged(&[0.0; 29], &adapter().factors(0)).is_err());
    }

    #[test]
    fn only_attention_projections_are_adapted() {
        let layer = "speecht5.decoder.wrapped_decoder.layers.0";
        assert!(is_adapted(&format!("{layer}.encoder_attn.k_proj.weight")));
        assert!(!is_adapted(&format!("{layer}.encoder_attn.k_proj.bias")));
        assert!(!is_adapted(&format!("{layer}.feed_forward.intermediate_dense.weight")));
    }
}
