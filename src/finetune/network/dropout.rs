//! A tensor in, the same tensor with some of its values dropped out.
//!
//! Masks come from a counter of (seed, step, place in the network), so that a run that was interrupted repeats them.
//! Never draws from a state.

use burn::tensor::{DType, FloatDType, Tensor, TensorData};

use super::arithmetic::to;
use crate::decoder::PrenetDropout;

/// The dropout of one forward pass.
#[derive(Debug, Clone)]
pub struct Dropout {
    /// `None` drops nothing.
    seed: Option<u64>,
    step: u64,
    place: u64,
}

impl Dropout {
    pub fn none() -> Self {
        Self { seed: None, step: 0, place: 0 }
    }

    /// The dropout of training step `step` of a run with `seed`.
    pub fn new(seed: u64, step: u64) -> Self {
        Self { seed: Some(seed), step, place: 0 }
    }

    /// Drops each value with probability `p` and scales what stays by `1 / (1 - p)`.
    pub fn apply<const D: usize>(&mut self, x: Tensor<D>, p: f32) -> Tensor<D> {
        let shape = x.dims();
        self.masked(x, p, shape)
    }

    /// As [`Self::apply`], with one mask for the whole batch.
    pub fn apply_alike(&mut self, x: Tensor<3>, p: f32) -> Tensor<3> {
        let [_, length, width] = x.dims();
        self.masked(x, p, [1, length, width])
    }

    fn masked<const D: usize>(&mut self, x: Tensor<D>, p: f32, shape: [usize; D]) -> Tensor<D> {
        self.place += 1;
        let Some(seed) = self.seed.filter(|_| p > 0.0) else { return x };
        let mut mask = vec![0.0; shape.iter().product()];
        PrenetDropout::new(p, seed, self.step).fill(self.place, 0, &mut mask);
        let mask = Tensor::from_data(TensorData::new(mask, shape), (&x.device(), DType::F32));
        let dtype = FloatDType::from(x.dtype());
        x * to(mask, dtype)
    }
}
