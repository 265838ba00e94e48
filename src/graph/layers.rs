//! Layers that several stages share: linear maps, norms, convolutions, sinusoidal positions.
//!
//! Never reads a tensor that its caller did not name.

use super::{Attribute, Builder, Value};
use crate::error::Result;
use crate::voice::names;

/// PyTorch's BatchNorm1d epsilon, which SpeechT5 does not configure.
const BATCH_NORM_EPS: f32 = 1e-5;

impl Builder<'_> {
    /// `x · Wᵀ + b` for the `nn.Linear` called `prefix`; `x` and the result are in the activation dtype.
    pub(super) fn linear(&mut self, x: &Value, prefix: &str, shape: [usize; 2]) -> Result<Value> {
        let weight = transposed(&self.values(&names::weight(prefix))?, shape);
        let bias = self.values(&names::bias(prefix))?;
        self.affine(x, &weight, &bias)
    }

    /// `x · weight + bias`, the weight being row-major [inputs, outputs] and `bias` [outputs].
    pub(super) fn affine(&mut self, x: &Value, weight: &[f32], bias: &[f32]) -> Result<Value> {
        let weight = self.weight(weight, &[weight.len() / bias.len(), bias.len()])?;
        let bias = self.weight(bias, &[bias.len()])?;
        Ok(self.product_and_sum(x, &weight, &bias))
    }

    /// As [`Self::affine`], but f32 in every plan: for what must not hang on a rounding.
    pub(super) fn sensitive_affine(&mut self, x: &Value, weight: &[f32], bias: &[f32]) -> Result<Value> {
        let weight = self.constant(weight, &[weight.len() / bias.len(), bias.len()])?;
        let bias = self.constant(bias, &[bias.len()])?;
        Ok(self.product_and_sum(x, &weight, &bias))
    }

    fn product_and_sum(&mut self, x: &Value, weight: &Value, bias: &Value) -> Value {
        let product = self.op("MatMul", &[x, weight], &[]);
        self.op("Add", &[&product, bias], &[])
    }

    /// `x · Wᵀ` for the `nn.Linear` called `prefix`, whose weight is `shape` = [outputs, inputs].
    pub(super) fn linear_without_bias(
        &mut self,
        x: &Value,
        prefix: &str,
        shape: [usize; 2],
    ) -> Result<Value> {
        let weight = transposed(&self.values(&names::weight(prefix))?, shape);
        let weight = self.weight(&weight, &[shape[1], shape[0]])?;
        Ok(self.op("MatMul", &[x, &weight], &[]))
    }

    /// `LayerNorm(x + residual + bias)` of f32 tensors, the bias being that of the linear map which made `x`.
    pub(super) fn residual_norm(
        &mut self,
        x: &Value,
        residual: &Value,
        bias: &str,
        norm: &str,
        width: usize,
        eps: f32,
    ) -> Result<Value> {
        let x = self.widened(x)?;
        let gamma = self.vector(&names::weight(norm), width)?;
        let beta = self.vector(&names::bias(norm), width)?;
        let bias = self.vector(&names::bias(bias), width)?;
        let inputs = [&x, residual, &gamma, &beta, &bias];
        Ok(self.fused("SkipLayerNormalization", &inputs, &[("epsilon", Attribute::Float(eps))], 1).remove(0))
    }

    /// `LayerNorm(x)` over the last axis of an f32 tensor.
    pub(super) fn layer_norm(&mut self, x: &Value, prefix: &str, width: usize, eps: f32) -> Result<Value> {
        let gamma = self.vector(&names::weight(prefix), width)?;
        let beta = self.vector(&names::bias(prefix), width)?;
        let attributes = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(eps))];
        Ok(self.op("LayerNormalization", &[x, &gamma, &beta], &attributes))
    }

    /// The tensor called `name` as a constant [width].
    fn vector(&mut self, name: &str, width: usize) -> Result<Value> {
        let values = self.values(name)?;
        self.constant(&values, &[width])
    }

    /// The feed-forward block of the layer called `prefix`, with the residual and the norm that end it: linear,
    /// GELU (erf), linear. f32 in, f32 out.
    pub(super) fn feed_forward(
        &mut self,
        x: &Value,
        prefix: &str,
        hidden: usize,
        inner: usize,
        eps: f32,
    ) -> Result<Value> {
        let narrow = self.narrowed(x)?;
        let y = self.linear_gelu(&narrow, &format!("{prefix}.{}", names::FFN_IN), [inner, hidden])?;
        let output = format!("{prefix}.{}", names::FFN_OUT);
        let y = self.linear_without_bias(&y, &output, [hidden, inner])?;
        self.residual_norm(&y, x, &output, &format!("{prefix}.{}", names::FINAL_NORM), hidden, eps)
    }

    /// `GELU(x · Wᵀ + b)` with the exact GELU.
    pub(super) fn linear_gelu(&mut self, x: &Value, prefix: &str, shape: [usize; 2]) -> Result<Value> {
        let product = self.linear_without_bias(x, prefix, shape)?;
        let bias = self.values(&names::bias(prefix))?;
        let bias = self.weight(&bias, &[shape[0]])?;
        Ok(self.fused("BiasGelu", &[&product, &bias], &[], 1).remove(0))
    }

    /// A "same" convolution over [batch, channels, frames].
    pub(super) fn conv1d(&mut self, x: &Value, kernel: &Kernel) -> Result<Value> {
        let [outputs, inputs, width] = kernel.shape;
        let weight = self.weight(&kernel.weight, &[outputs, inputs, width])?;
        let bias = self.weight(&kernel.bias, &[outputs])?;
        let pad = (kernel.dilation * (width - 1) / 2) as i64;
        let attributes = [
            ("kernel_shape", Attribute::Ints(&[width as i64])),
            ("dilations", Attribute::Ints(&[kernel.dilation as i64])),
            ("pads", Attribute::Ints(&[pad, pad])),
            ("group", Attribute::Int(kernel.groups as i64)),
        ];
        Ok(self.op("Conv", &[x, &weight, &bias], &attributes))
    }

    /// A "same" convolution over [batch, frames, channels], as one matrix product over unfolded frames.
    ///
    /// The runtime's own convolution groups its sums by the number of frames, so a frame's last bits would
    /// depend on the window around it; a row of a matrix product depends on that row alone.
    pub(super) fn conv1d_of_rows(&mut self, x: &Value, kernel: &Kernel) -> Result<Value> {
        let [outputs, inputs, width] = kernel.shape;
        let side = (width - 1) / 2;
        let pads = self.integers(&[0, side as i64, 0, 0, side as i64, 0], &[6])?;
        let padded = self.op("Pad", &[x, &pads], &[]);
        let axis = self.integers(&[1], &[1])?;
        let mut shifted = Vec::with_capacity(width);
        for tap in 0..width {
            let start = self.integers(&[tap as i64], &[1])?;
            // Ending at 0 would be empty: the last tap runs to the end.
            let stop = if tap + 1 == width { i64::MAX } else { tap as i64 + 1 - width as i64 };
            let end = self.integers(&[stop], &[1])?;
            shifted.push(self.op("Slice", &[&padded, &start, &end, &axis], &[]));
        }
        let shifted: Vec<&Value> = shifted.iter().collect();
        let rows = self.op("Concat", &shifted, &[("axis", Attribute::Int(2))]); // [batch, frames, width · inputs]
        let mut weight = vec![0.0; kernel.weight.len()]; // [width, inputs, outputs]
        for (output, filter) in kernel.weight.chunks_exact(inputs * width).enumerate() {
            for (input, taps) in filter.chunks_exact(width).enumerate() {
                for (tap, &value) in taps.iter().enumerate() {
                    weight[(tap * inputs + input) * outputs + output] = value;
                }
            }
        }
        self.affine(&rows, &weight, &kernel.bias)
    }

    pub(super) fn transpose(&mut self, x: &Value, axes: &[i64]) -> Value {
        self.op("Transpose", &[x], &[("perm", Attribute::Ints(axes))])
    }
}

/// The weights of a convolution with an odd kernel.
pub(super) struct Kernel {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
    /// [output channels, input channels / groups, kernel width]
    pub shape: [usize; 3],
    pub dilation: usize,
    pub groups: usize,
}

impl Kernel {
    /// The `nn.Conv1d` called `prefix`.
    pub fn read(builder: &Builder, prefix: &str, shape: [usize; 3]) -> Result<Self> {
        let weight = builder.values(&names::weight(prefix))?;
        let bias = builder.values(&names::bias(prefix))?;
        Ok(Self { weight, bias, shape, dilation: 1, groups: 1 })
    }

    /// A bias-free convolution with the batch norm that follows it folded in:
    /// `w' = w · γ / √(σ² + ε)`, `b' = β − μ · γ / √(σ² + ε)`.
    pub fn with_batch_norm(builder: &Builder, prefix: &str, shape: [usize; 3]) -> Result<Self> {
        let mut weight = builder.values(&format!("{prefix}.{}", names::POSTNET_CONV))?;
        let norm = names::POSTNET_NORM.map(|part| builder.values(&format!("{prefix}.{part}")));
        let [gamma, beta, mean, variance] = norm;
        let (gamma, beta, mean, variance) = (gamma?, beta?, mean?, variance?);
        let per_output = shape[1] * shape[2];
        let mut bias = Vec::with_capacity(shape[0]);
        for (channel, filter) in weight.chunks_exact_mut(per_output).enumerate() {
            let gain = gamma[channel] / (variance[channel] + BATCH_NORM_EPS).sqrt();
            filter.iter_mut().for_each(|w| *w *= gain);
            bias.push(beta[channel] - mean[channel] * gain);
        }
        Ok(Self { weight, bias, shape, dilation: 1, groups: 1 })
    }
}

/// A row-major [rows, columns] matrix as [columns, rows].
pub(super) fn transposed(values: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    let mut out = Vec::with_capacity(values.len());
    for column in 0..columns {
        out.extend((0..rows).map(|row| values[row * columns + column]));
    }
    out
}

/// `gain ·` the sinusoidal position table [positions, width] of "Attention is all you need", in the f32
/// arithmetic of the implementation that trained the voice.
pub(super) fn sinusoids(positions: usize, width: usize, gain: f32) -> Vec<f32> {
    let rate = -(10_000f64.ln() / width as f64) as f32;
    let mut table = vec![0.0; positions * width];
    for (position, row) in table.chunks_exact_mut(width).enumerate() {
        for (pair, values) in row.chunks_exact_mut(2).enumerate() {
            let angle = position as f32 * ((2 * pair) as f32 * rate).exp();
            values[0] = gain * angle.sin();
            values[1] = gain * angle.cos();
        }
    }
    table
}
