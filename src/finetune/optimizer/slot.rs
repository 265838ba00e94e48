//! What an optimizer keeps beside one parameter: the bits its weights cannot hold, and Adam's two moments.
//!
//! Values come and go a group at a time in f32; how they rest between steps is decided here. Never holds the weights
//! themselves: those are the network's.

use half::{bf16, f16};

use super::companding::{
    Companded, GROUP, compress_momentum, compress_variance, expand_momentum, expand_variance,
};
use super::residual::{Narrow, join_24, join_32, join_exact, split_24, split_32, split_exact};
use crate::precision::Dtype;
use crate::precision::cast::{f32_to_bf16, f32_to_f16};

/// Real numbers in the format they rest in.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    F32(Vec<f32>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
}

impl Values {
    /// `values` rounded to `dtype`; anything but f16 and bf16 is f32.
    pub fn from_f32(values: &[f32], dtype: Dtype) -> Self {
        match dtype {
            Dtype::F16 => Self::F16(values.iter().copied().map(f32_to_f16).collect()),
            Dtype::BF16 => Self::BF16(values.iter().copied().map(f32_to_bf16).collect()),
            _ => Self::F32(values.to_vec()),
        }
    }

    pub fn zeros(len: usize, dtype: Dtype) -> Self {
        match dtype {
            Dtype::F16 => Self::F16(vec![f16::ZERO; len]),
            Dtype::BF16 => Self::BF16(vec![bf16::ZERO; len]),
            _ => Self::F32(vec![0.0; len]),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::BF16(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn dtype(&self) -> Dtype {
        match self {
            Self::F32(_) => Dtype::F32,
            Self::F16(_) => Dtype::F16,
            Self::BF16(_) => Dtype::BF16,
        }
    }

    pub fn size_bytes(&self) -> usize {
        self.len() * self.dtype().size_bytes()
    }

    pub fn to_f32(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.len()];
        self.read(0, &mut values);
        values
    }

    /// The values from `from` on.
    pub fn read(&self, from: usize, into: &mut [f32]) {
        let to = from + into.len();
        match self {
            Self::F32(values) => into.copy_from_slice(&values[from..to]),
            Self::F16(values) => into.iter_mut().zip(&values[from..to]).for_each(|(v, h)| *v = h.to_f32()),
            Self::BF16(values) => into.iter_mut().zip(&values[from..to]).for_each(|(v, h)| *v = h.to_f32()),
        }
    }

    /// Rounds `new` into the values from `from` on.
    pub fn write(&mut self, from: usize, new: &[f32]) {
        let to = from + new.len();
        match self {
            Self::F32(values) => values[from..to].copy_from_slice(new),
            Self::F16(values) => {
                values[from..to].iter_mut().zip(new).for_each(|(h, v)| *h = f32_to_f16(*v));
            }
            Self::BF16(values) => {
                values[from..to].iter_mut().zip(new).for_each(|(h, v)| *h = f32_to_bf16(*v));
            }
        }
    }
}

/// What of the weights does not fit into their own format.
#[derive(Debug, Clone, PartialEq)]
pub enum Residual {
    /// Nothing is kept: f32 weights need nothing, narrow ones lose it.
    None,
    Bits24(Vec<i8>),
    Bits32(Vec<i16>),
}

impl Residual {
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Bits24(residual) => residual.len(),
            Self::Bits32(residual) => residual.len() * 2,
        }
    }

    /// The weights from `from` on with all their bits.
    pub fn join(&self, weights: &Values, from: usize, into: &mut [f32]) {
        match (weights, self) {
            (Values::F16(narrow), Self::Bits24(lost)) => join_each(narrow, lost, from, into, join_24),
            (Values::BF16(narrow), Self::Bits24(lost)) => join_each(narrow, lost, from, into, join_24),
            (Values::F16(narrow), Self::Bits32(lost)) => join_each(narrow, lost, from, into, join_32),
            (Values::BF16(narrow), Self::Bits32(lost)) => join_each(narrow, lost, from, into, join_exact),
            _ => weights.read(from, into),
        }
    }

    /// Rounds `new` into `weights` from `from` on, and keeps what that loses.
    pub fn split(&mut self, weights: &mut Values, from: usize, new: &[f32]) {
        match (weights, self) {
            (Values::F16(narrow), Self::Bits24(lost)) => split_each(narrow, lost, from, new, split_24),
            (Values::BF16(narrow), Self::Bits24(lost)) => split_each(narrow, lost, from, new, split_24),
            (Values::F16(narrow), Self::Bits32(lost)) => split_each(narrow, lost, from, new, split_32),
            (Values::BF16(narrow), Self::Bits32(lost)) => split_each(narrow, lost, from, new, split_exact),
            (weights, _) => weights.write(from, new),
        }
    }
}

fn join_each<W: Narrow, R: Copy>(
    narrow: &[W],
    lost: &[R],
    from: usize,
    into: &mut [f32],
    join: fn(W, R) -> f32,
) {
    let parts = narrow[from..].iter().zip(&lost[from..]);
    into.iter_mut().zip(parts).for_each(|(value, (narrow, lost))| *value = join(*narrow, *lost));
}

fn split_each<W: Narrow, R: Copy>(
    narrow: &mut [W],
    lost: &mut [R],
    from: usize,
    new: &[f32],
    split: fn(f32) -> (W, R),
) {
    let parts = narrow[from..].iter_mut().zip(&mut lost[from..]);
    parts.zip(new).for_each(|((narrow, lost), value)| (*narrow, *lost) = split(*value));
}

/// Adam's running means of the gradient and of its square.
#[derive(Debug, Clone, PartialEq)]
pub enum Moments {
    Plain { momentum: Values, variance: Values },
    Companded { momentum: Companded<i8>, variance: Companded<u8> },
}

impl Moments {
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Plain { momentum, variance } => momentum.size_bytes() + variance.size_bytes(),
            Self::Companded { momentum, variance } => momentum.size_bytes() + variance.size_bytes(),
        }
    }

    /// Both moments of the values from `from` on, which is where a group begins.
    pub fn read(&self, from: usize, momenta: &mut [f32], variances: &mut [f32]) {
        match self {
            Self::Plain { momentum, variance } => {
                momentum.read(from, momenta);
                variance.read(from, variances);
            }
            Self::Companded { momentum, variance } => {
                let (codes, group) = (from..from + momenta.len(), from / GROUP);
                expand_momentum(&momentum.codes[codes.clone()], momentum.scales[group], momenta);
                expand_variance(&variance.codes[codes], variance.scales[group], variances);
            }
        }
    }

    /// Keeps both moments of the values from `from` on, which is where a group begins.
    pub fn write(&mut self, from: usize, momenta: &[f32], variances: &[f32]) {
        match self {
            Self::Plain { momentum, variance } => {
                momentum.write(from, momenta);
                variance.write(from, variances);
            }
            Self::Companded { momentum, variance } => {
                let (codes, group) = (from..from + momenta.len(), from / GROUP);
                momentum.scales[group] = compress_momentum(momenta, &mut momentum.codes[codes.clone()]);
                variance.scales[group] = compress_variance(variances, &mut variance.codes[codes]);
            }
        }
    }
}

/// What rests beside one parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    pub residual: Residual,
    pub moments: Moments,
}
