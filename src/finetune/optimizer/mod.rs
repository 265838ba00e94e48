//! Weights and their gradients in, weights one AdamW step further out.
//!
//! One step for every precision: a group of values is widened to f32, stepped, and put back to where it rests, which
//! is in [`Slot`] and in the weights' own format. With narrow weights, residuals and companded moments that is
//! FlashAdamW (FlashOptim 0.1.3); with plain f32 it is AdamW (Loshchilov and Hutter 2019).
//!
//! Never looks for infinities: a gradient that holds one must not come here.

pub mod companding;
pub mod residual;
mod slot;
mod state;

use companding::{Companded, GROUP};
pub use slot::{Moments, Residual, Slot, Values};

use crate::error::{Error, Result};
use crate::precision::{Dtype, MasterWeights, OptimizerStates};

/// How AdamW steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamW {
    pub beta1: f32,
    pub beta2: f32,
    /// Added to the root of the variance. It is never rounded to f16, where 1e-8 is zero.
    pub eps: f32,
    /// Decoupled: a weight shrinks by this times the learning rate.
    pub weight_decay: f32,
}

impl Default for AdamW {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 }
    }
}

/// How the state of a parameter rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    pub master_weights: MasterWeights,
    pub states: OptimizerStates,
}

impl Slot {
    /// The state of `weights`, f32 of the checkpoint, which rest as `rest` says and in `dtype` from now on.
    /// -> the weights as they rest, and what is kept beside them
    pub fn new(weights: &[f32], dtype: Dtype, rest: Rest) -> (Values, Self) {
        let len = weights.len();
        let mut resting = Values::zeros(len, dtype);
        let mut residual = match rest.master_weights {
            _ if dtype == Dtype::F32 => Residual::None,
            MasterWeights::None | MasterWeights::SameAsWeights => Residual::None,
            MasterWeights::Residual24 => Residual::Bits24(vec![0; len]),
            MasterWeights::Residual32 => Residual::Bits32(vec![0; len]),
        };
        residual.split(&mut resting, 0, weights);
        let moments = match rest.states {
            OptimizerStates::Plain(dtype) => {
                Moments::Plain { momentum: Values::zeros(len, dtype), variance: Values::zeros(len, dtype) }
            }
            OptimizerStates::Companded8 => {
                Moments::Companded { momentum: Companded::zeros(len), variance: Companded::zeros(len) }
            }
        };
        (resting, Self { residual, moments })
    }

    /// `weights` with all the bits that are known of them.
    pub fn master(&self, weights: &Values) -> Vec<f32> {
        let mut all = vec![0.0; weights.len()];
        self.residual.join(weights, 0, &mut all);
        all
    }
}

/// What one step uses of all the steps before, in f32 as the reference rounds it.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    adamw: AdamW,
    learning_rate: f32,
    momentum_share: f32,
    variance_share: f32,
}

impl AdamW {
    /// The momentum is at most this many roots of the variance, by the Cauchy-Schwarz inequality over the two means:
    /// exact Adam never comes beyond it, moments that were rounded do.
    fn moment_bound(&self) -> f32 {
        let share = (1.0 - self.beta2) * (1.0 - self.beta1 * self.beta1 / self.beta2);
        // Rounding in f32 must not be taken for rounding at rest.
        if share > 0.0 { 1.001 * (1.0 - self.beta1) / share.sqrt() } else { f32::INFINITY }
    }

    /// Step number `count`, the first being 1.
    pub fn step(self, count: u64, learning_rate: f32) -> Step {
        let power = |beta: f32| beta.powf(count as f32);
        Step {
            adamw: self,
            learning_rate,
            momentum_share: 1.0 - power(self.beta1),
            variance_share: 1.0 - power(self.beta2),
        }
    }
}

impl Step {
    /// Moves `weights` against `gradient`.
    ///
    /// # Errors
    /// [`Error::Internal`] when their sizes differ.
    pub fn take(&self, weights: &mut Values, slot: &mut Slot, gradient: &Values) -> Result<()> {
        let len = weights.len();
        if gradient.len() != len {
            return Err(Error::Internal(format!("{} gradients of {len} weights", gradient.len())));
        }
        let (mut p, mut g, mut m, mut v) = ([0.0; GROUP], [0.0; GROUP], [0.0; GROUP], [0.0; GROUP]);
        for from in (0..len).step_by(GROUP) {
            let size = GROUP.min(len - from);
            let (p, g, m, v) = (&mut p[..size], &mut g[..size], &mut m[..size], &mut v[..size]);
            slot.residual.join(weights, from, p);
            gradient.read(from, g);
            slot.moments.read(from, m, v);
            self.group(p, g, m, v);
            slot.residual.split(weights, from, p);
            slot.moments.write(from, m, v);
        }
        Ok(())
    }

    fn group(&self, p: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32]) {
        let AdamW { beta1, beta2, eps, weight_decay } = self.adamw;
        let kept = 1.0 - weight_decay * self.learning_rate;
        let bound = self.adamw.moment_bound();
        for (((p, g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
            *m = *m * beta1 + g * (1.0 - beta1);
            *v = *v * beta2 + (g * g) * (1.0 - beta2);
            // A variance that was rounded to nothing beside a momentum that was not would divide it by eps alone.
            let limit = bound * v.sqrt();
            if m.abs() > limit {
                *m = limit.copysign(*m);
            }
            let (mean, variance) = (*m / self.momentum_share, *v / self.variance_share);
            *p = *p * kept - (self.learning_rate * mean) / (variance.sqrt() + eps);
        }
    }
}

/// Why `learning_rate` may not move weights of which `largest` is the largest, which rest in `dtype` with `master`:
/// the rule of FlashOptim's `check_numerics`. Upstream refuses; here it is advice, because 24 bits were measured to
/// keep 97 % of the movement even two orders of magnitude below the rule's limit.
pub fn coarse_step(largest: f32, dtype: Dtype, master: MasterWeights, learning_rate: f32) -> Option<String> {
    if dtype == Dtype::F32 || learning_rate == 0.0 || largest == 0.0 || !largest.is_finite() {
        return None;
    }
    let bits = match master {
        MasterWeights::Residual24 => 24,
        MasterWeights::Residual32 => 32,
        MasterWeights::None | MasterWeights::SameAsWeights => 16,
    };
    let exponent_bits = if dtype == Dtype::F16 { 5 } else { 8 };
    let exponent = f64::from(largest).log2().floor() - f64::from(bits - 1 - exponent_bits);
    let coarsest = exponent.exp2() / 0.49;
    (coarsest > 0.1 * f64::from(learning_rate)).then(|| {
        format!(
            "its largest weight, {largest:.3}, moves in steps of {coarsest:.1e} in {bits} bits of {dtype}"
        )
    })
}
