//! Tensors in, products, sums and norms in the dtypes of one precision out.
//!
//! The only place where modes differ while the network runs. Mixed modes do as [`autocast`] says.
//! True and flash modes keep every tensor half; inside a softmax or a norm the sums are f32. Never touches a loss.

use std::f64::consts::FRAC_1_SQRT_2;

use burn::tensor::{Device, FloatDType, Tensor, activation, module, ops::ConvOptions};

use super::Parameters;
use crate::precision::autocast::{self, Op};
use crate::precision::{Dtype, Precision};
use crate::voice::names::{bias, weight};

/// In what a network computes.
#[derive(Debug, Clone, Copy)]
pub struct Arithmetic {
    /// Operands of products, and their results.
    products: FloatDType,
    convolutions: FloatDType,
    softmax: FloatDType,
    norms: FloatDType,
    /// What flows from layer to layer: sums of what a layer was given and what it made of it.
    stream: FloatDType,
}

impl Arithmetic {
    pub fn new(precision: Precision) -> Self {
        let half = precision.half().unwrap_or(Dtype::F32);
        // Where weights are narrow there is nothing to cast: everything answers in their type.
        let decide = |op, inputs: &[Dtype]| match precision.narrows_weights() {
            true => float_dtype(half),
            false => float_dtype(autocast::output(op, inputs, half).unwrap_or(Dtype::F32)),
        };
        Self {
            products: decide(Op::Linear, &[Dtype::F32]),
            convolutions: decide(Op::Conv1d, &[Dtype::F32]),
            softmax: decide(Op::Softmax, &[half]),
            norms: decide(Op::LayerNorm, &[half]),
            stream: decide(Op::Combine, &[half, Dtype::F32]),
        }
    }

    /// x W^T + b over the last axis.
    pub fn linear(&self, weights: &Parameters, module: &str, x: Tensor<3>) -> Tensor<3> {
        let [batch, length, inputs] = x.dims();
        let w: Tensor<2> = self.product(weights.get(&weight(module)));
        let b: Tensor<1> = self.product(weights.get(&bias(module)));
        let outputs = w.dims()[0];
        let rows = self.product(x).reshape([batch * length, inputs]);
        (rows.matmul(w.transpose()) + b.unsqueeze()).reshape([batch, length, outputs])
    }

    pub fn matmul(&self, a: Tensor<4>, b: Tensor<4>) -> Tensor<4> {
        self.product(a).matmul(self.product(b))
    }

    /// A convolution over the last axis that keeps its length, without a bias.
    pub fn conv1d(&self, w: Tensor<3>, x: Tensor<3>) -> Tensor<3> {
        let padding = w.dims()[2] / 2;
        let [x, w] = [x, w].map(|operand| to(operand, self.convolutions));
        module::conv1d(x, w, None, ConvOptions::new([1], [padding], [1], 1))
    }

    pub fn softmax(&self, x: Tensor<4>) -> Tensor<4> {
        to(activation::softmax(to(x, FloatDType::F32), 3), self.softmax)
    }

    /// The sum of two branches, in what flows between layers.
    pub fn add(&self, a: Tensor<3>, b: Tensor<3>) -> Tensor<3> {
        to(a, self.stream) + to(b, self.stream)
    }

    /// `x` in what flows between layers.
    pub fn stream<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        to(x, self.stream)
    }

    pub fn layer_norm(&self, weights: &Parameters, module: &str, x: Tensor<3>, eps: f32) -> Tensor<3> {
        let gain = to(weights.get::<1>(&weight(module)), FloatDType::F32);
        let shift = to(weights.get::<1>(&bias(module)), FloatDType::F32);
        let normed = module::layer_norm(to(x, FloatDType::F32), gain, Some(shift), f64::from(eps));
        to(normed, self.norms)
    }

    fn product<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        to(x, self.products)
    }
}

/// x Φ(x), Hendrycks and Gimpel 2016. Through erf, since burn differentiates its own GELU exactly on the CPU alone:
/// elsewhere the gradient is that of the approximation by tanh.
pub fn gelu(x: Tensor<3>) -> Tensor<3> {
    if x.device().inner() == Device::flex() { activation::gelu(x) } else { gelu_by_erf(x) }
}

fn gelu_by_erf(x: Tensor<3>) -> Tensor<3> {
    x.clone() * ((x * FRAC_1_SQRT_2).erf() + 1.0) * 0.5
}

/// `x` in `dtype`; gradients come back in the dtype of `x`.
pub fn to<const D: usize>(x: Tensor<D>, dtype: FloatDType) -> Tensor<D> {
    if x.dtype() == dtype.into() { x } else { x.cast(dtype) }
}

/// burn's name of a dtype that weights may have.
pub fn float_dtype(dtype: Dtype) -> FloatDType {
    match dtype {
        Dtype::F16 => FloatDType::F16,
        Dtype::BF16 => FloatDType::BF16,
        _ => FloatDType::F32,
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, TensorData};

    use super::*;

    /// Values and gradients of `gelu` at -4 to 4.
    fn curve(gelu: fn(Tensor<3>) -> Tensor<3>) -> [Vec<f32>; 2] {
        let device = Device::flex().autodiff();
        let at: Vec<f32> = (-40..=40).map(|at| at as f32 / 10.0).collect();
        let x: Tensor<3> = Tensor::from_data(TensorData::new(at, [1, 1, 81]), (&device, DType::F32));
        let x = x.require_grad();
        let y = gelu(x.clone());
        let mut gradients = y.clone().sum().backward();
        let slope = x.grad_remove(&mut gradients).unwrap();
        [y.into_data(), slope.into_data()].map(|data| data.try_into_vec::<f32>().unwrap())
    }

    #[test]
    fn gelu_by_erf_and_its_slope_are_exact() {
        let [values, slopes] = curve(gelu_by_erf);
        let [own_values, own_slopes] = curve(gelu);
        for (found, expected) in values.iter().chain(&slopes).zip(own_values.iter().chain(&own_slopes)) {
            assert!((found - expected).abs() < 2e-6, "{found} against {expected}");
        }
        // Of the exact function at 1: Phi(1), and Phi(1) + phi(1).
        assert!((values[50] - 0.841_344_7).abs() < 1e-6 && (slopes[50] - 1.083_315_5).abs() < 1e-6);
    }
}
