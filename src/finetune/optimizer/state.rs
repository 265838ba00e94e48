//! A [`Slot`] in, its tensors as a checkpoint keeps them out, and back.
//!
//! Nothing is widened on the way: an i8 residual is an i8 on disk. Never trusts a length.

use half::f16;

use super::companding::Companded;
use super::{Moments, Residual, Slot, Values};
use crate::error::{Error, Result};
use crate::precision::Dtype;
use crate::precision::cast;

/// One tensor of a slot: what it is, its dtype, its little-endian bytes.
pub type Part = (&'static str, Dtype, Vec<u8>);

const RESIDUAL: &str = "residual";
const MOMENTUM: &str = "momentum";
const VARIANCE: &str = "variance";
const MOMENTUM_SCALES: &str = "momentum_scales";
const VARIANCE_SCALES: &str = "variance_scales";

impl Values {
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::F32(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::F16(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::BF16(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        }
    }

    /// # Errors
    /// [`Error::InvalidRequest`] when `bytes` do not hold whole numbers of `dtype`.
    pub fn from_bytes(bytes: &[u8], dtype: Dtype) -> Result<Self> {
        // Every half is an f32 too, so the way there and back changes nothing but the payload of a NaN.
        Ok(Self::from_f32(&cast::to_f32(bytes, dtype)?, dtype))
    }
}

impl Slot {
    /// The tensors of this slot.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = match &self.residual {
            Residual::None => vec![],
            Residual::Bits24(residual) => vec![(RESIDUAL, Dtype::I8, signed(residual))],
            Residual::Bits32(residual) => {
                vec![(RESIDUAL, Dtype::I16, residual.iter().flat_map(|r| r.to_le_bytes()).collect())]
            }
        };
        match &self.moments {
            Moments::Plain { momentum, variance } => parts.extend([
                (MOMENTUM, momentum.dtype(), momentum.to_bytes()),
                (VARIANCE, variance.dtype(), variance.to_bytes()),
            ]),
            Moments::Companded { momentum, variance } => parts.extend([
                (MOMENTUM, Dtype::I8, signed(&momentum.codes)),
                (MOMENTUM_SCALES, Dtype::F16, halves(&momentum.scales)),
                (VARIANCE, Dtype::U8, variance.codes.clone()),
                (VARIANCE_SCALES, Dtype::F16, halves(&variance.scales)),
            ]),
        }
        parts
    }

    /// This slot, of the same kind and size, with the numbers of a checkpoint: `part` gives the bytes of a tensor of
    /// this name and dtype.
    ///
    /// # Errors
    /// Those of `part`, and [`Error::InvalidRequest`] for a tensor of another size.
    pub fn restored(&self, part: impl Fn(&'static str, Dtype) -> Result<Vec<u8>>) -> Result<Self> {
        let mut restored = self.clone();
        match &mut restored.residual {
            Residual::None => {}
            Residual::Bits24(residual) => {
                fill(residual, &part(RESIDUAL, Dtype::I8)?, RESIDUAL, i8::from_le_bytes)?
            }
            Residual::Bits32(residual) => {
                fill(residual, &part(RESIDUAL, Dtype::I16)?, RESIDUAL, i16::from_le_bytes)?;
            }
        }
        match &mut restored.moments {
            Moments::Plain { momentum, variance } => {
                for (values, name) in [(momentum, MOMENTUM), (variance, VARIANCE)] {
                    let read = Values::from_bytes(&part(name, values.dtype())?, values.dtype())?;
                    same_len(values.len(), read.len(), name)?;
                    *values = read;
                }
            }
            Moments::Companded { momentum, variance } => {
                let Companded { codes, scales } = momentum;
                fill(codes, &part(MOMENTUM, Dtype::I8)?, MOMENTUM, i8::from_le_bytes)?;
                fill(scales, &part(MOMENTUM_SCALES, Dtype::F16)?, MOMENTUM_SCALES, f16::from_le_bytes)?;
                let Companded { codes, scales } = variance;
                fill(codes, &part(VARIANCE, Dtype::U8)?, VARIANCE, u8::from_le_bytes)?;
                fill(scales, &part(VARIANCE_SCALES, Dtype::F16)?, VARIANCE_SCALES, f16::from_le_bytes)?;
            }
        }
        Ok(restored)
    }
}

fn signed(codes: &[i8]) -> Vec<u8> {
    codes.iter().map(|code| code.cast_unsigned()).collect()
}

fn halves(scales: &[f16]) -> Vec<u8> {
    scales.iter().flat_map(|scale| scale.to_le_bytes()).collect()
}

fn fill<T, const N: usize>(values: &mut [T], bytes: &[u8], name: &str, read: fn([u8; N]) -> T) -> Result<()> {
    let (codes, rest) = bytes.as_chunks::<N>();
    same_len(values.len(), if rest.is_empty() { codes.len() } else { usize::MAX }, name)?;
    values.iter_mut().zip(codes).for_each(|(value, code)| *value = read(*code));
    Ok(())
}

fn same_len(expected: usize, found: usize, name: &str) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::InvalidRequest(format!(
        "the {name} of a checkpoint has {found} values, {expected} are needed"
    )))
}
