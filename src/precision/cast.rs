//! Numbers of one dtype in, the same numbers in another out: the only casts in the house.
//!
//! Every narrowing rounds to nearest, ties to even; NaN stays NaN with its sign; its payload may change.
//! Bytes are little-endian. f64 is narrowed by way of f32, as torch does, so a value may round twice.
//! This file never quantises: a scale is the caller's, and integers are not a number format here.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::Dtype;
use crate::error::{Error, Result};

/// What an 8-bit float holds when the rounded value is beyond its largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The largest finite value, for infinities too. What a scaled cast needs.
    Saturate,
    /// Infinity where the format has one (e5m2), NaN where it has not (e4m3).
    Ieee,
}

pub fn f32_to_f16(value: f32) -> f16 {
    f16::from_f32(value)
}

pub fn f64_to_f32(value: f64) -> f32 {
    // The one place where a wider float is rounded to f32.
    value as f32
}

pub fn f32_to_bf16(value: f32) -> bf16 {
    bf16::from_f32(value)
}

/// The E4M3FN code of `value`.
pub fn f32_to_e4m3(value: f32, overflow: Overflow) -> u8 {
    E4M3.encode(value, overflow)
}

/// The E5M2 code of `value`.
pub fn f32_to_e5m2(value: f32, overflow: Overflow) -> u8 {
    E5M2.encode(value, overflow)
}

/// The value of an E4M3FN code, exactly.
pub fn e4m3_to_f32(code: u8) -> f32 {
    E4M3.decode(code)
}

/// The value of an E5M2 code, exactly.
pub fn e5m2_to_f32(code: u8) -> f32 {
    E5M2.decode(code)
}

/// `values` as little-endian bytes of `dtype`; 8-bit floats saturate.
///
/// # Errors
/// [`Error::InvalidRequest`] when `dtype` is not a real floating format.
pub fn from_f32(values: &[f32], dtype: Dtype) -> Result<Vec<u8>> {
    match dtype {
        Dtype::F64 => Ok(encode(values, |v| f64::from(v).to_le_bytes())),
        Dtype::F32 => Ok(encode(values, f32::to_le_bytes)),
        Dtype::F16 => {
            let mut bytes = vec![0; values.len() * 2];
            let (encoded, _) = bytes.as_chunks_mut::<2>();
            for (codes, values) in encoded.chunks_mut(BLOCK).zip(values.chunks(BLOCK)) {
                let mut block = [f16::ZERO; BLOCK];
                let block = &mut block[..values.len()];
                block.convert_from_f32_slice(values);
                codes.iter_mut().zip(block).for_each(|(code, v)| *code = v.to_le_bytes());
            }
            Ok(bytes)
        }
        Dtype::BF16 => Ok(encode(values, |v| f32_to_bf16(v).to_le_bytes())),
        Dtype::E4M3 => Ok(encode(values, |v| [f32_to_e4m3(v, Overflow::Saturate)])),
        Dtype::E5M2 => Ok(encode(values, |v| [f32_to_e5m2(v, Overflow::Saturate)])),
        _ => Err(not_floating("write", dtype)),
    }
}

/// The values of little-endian `bytes` of `dtype`. Exact, except that f64 is rounded.
///
/// # Errors
/// [`Error::InvalidRequest`] when `dtype` is not a real floating format or `bytes` ends within an element.
pub fn to_f32(bytes: &[u8], dtype: Dtype) -> Result<Vec<f32>> {
    match dtype {
        Dtype::F64 => decode(bytes, dtype, |b| f64_to_f32(f64::from_le_bytes(b))),
        Dtype::F32 => decode(bytes, dtype, f32::from_le_bytes),
        Dtype::F16 => {
            let codes = whole_elements::<2>(bytes, dtype)?;
            let mut values = vec![0.0; codes.len()];
            for (values, codes) in values.chunks_mut(BLOCK).zip(codes.chunks(BLOCK)) {
                let mut block = [f16::ZERO; BLOCK];
                let block = &mut block[..codes.len()];
                block.iter_mut().zip(codes).for_each(|(v, code)| *v = f16::from_le_bytes(*code));
                block.convert_to_f32_slice(values);
            }
            Ok(values)
        }
        Dtype::BF16 => decode(bytes, dtype, |b| bf16::from_le_bytes(b).to_f32()),
        Dtype::E4M3 => decode(bytes, dtype, |[code]| e4m3_to_f32(code)),
        Dtype::E5M2 => decode(bytes, dtype, |[code]| e5m2_to_f32(code)),
        _ => Err(not_floating("read", dtype)),
    }
}

/// The values of little-endian `bytes` of `dtype`, exactly.
///
/// # Errors
/// Those of [`to_f32`].
pub fn to_f64(bytes: &[u8], dtype: Dtype) -> Result<Vec<f64>> {
    match dtype {
        Dtype::F64 => decode(bytes, dtype, f64::from_le_bytes),
        _ => Ok(to_f32(bytes, dtype)?.into_iter().map(f64::from).collect()),
    }
}

/// Little-endian `bytes` of `from` as bytes of `to`, by way of f32; a copy when they are the same.
///
/// # Errors
/// Those of [`to_f32`] and [`from_f32`].
pub fn cast(bytes: &[u8], from: Dtype, to: Dtype) -> Result<Vec<u8>> {
    if from == to {
        return Ok(bytes.to_vec());
    }
    from_f32(&to_f32(bytes, from)?, to)
}

/// Rounds `values` in place to what `dtype` can hold; 8-bit floats saturate, f32 and f64 change nothing.
///
/// # Errors
/// [`Error::InvalidRequest`] when `dtype` is not a real floating format.
pub fn round_trip(values: &mut [f32], dtype: Dtype) -> Result<()> {
    match dtype {
        Dtype::F64 | Dtype::F32 => {}
        Dtype::F16 => {
            let mut block = [f16::ZERO; BLOCK];
            for values in values.chunks_mut(BLOCK) {
                let block = &mut block[..values.len()];
                block.convert_from_f32_slice(values);
                block.convert_to_f32_slice(values);
            }
        }
        Dtype::BF16 => values.iter_mut().for_each(|v| *v = f32_to_bf16(*v).to_f32()),
        Dtype::E4M3 => values.iter_mut().for_each(|v| *v = e4m3_to_f32(f32_to_e4m3(*v, Overflow::Saturate))),
        Dtype::E5M2 => values.iter_mut().for_each(|v| *v = e5m2_to_f32(f32_to_e5m2(*v, Overflow::Saturate))),
        _ => return Err(not_floating("round to", dtype)),
    }
    Ok(())
}

/// Elements converted at a time through the stack, where the slice conversions use vector instructions.
const BLOCK: usize = 512;

fn encode<const N: usize>(values: &[f32], code: impl Fn(f32) -> [u8; N]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * N];
    let (codes, _) = bytes.as_chunks_mut::<N>();
    codes.iter_mut().zip(values).for_each(|(dst, &value)| *dst = code(value));
    bytes
}

fn decode<const N: usize, T>(bytes: &[u8], dtype: Dtype, value: impl Fn([u8; N]) -> T) -> Result<Vec<T>> {
    Ok(whole_elements::<N>(bytes, dtype)?.iter().map(|code| value(*code)).collect())
}

fn whole_elements<const N: usize>(bytes: &[u8], dtype: Dtype) -> Result<&[[u8; N]]> {
    match bytes.as_chunks::<N>() {
        (codes, []) => Ok(codes),
        _ => Err(Error::InvalidRequest(format!(
            "{} bytes are not a whole number of {dtype} values of {N} bytes",
            bytes.len()
        ))),
    }
}

fn not_floating(verb: &str, dtype: Dtype) -> Error {
    Error::InvalidRequest(format!(
        "cannot {verb} {dtype}: only f64, f32, f16, bf16, e4m3 and e5m2 hold real numbers"
    ))
}

/// An 8-bit float: sign, exponent, `mantissa_bits`; codes of one sign grow with the value.
/// Formats of OCP "8-bit Floating Point Specification" 1.0.
struct Float8 {
    mantissa_bits: u32,
    bias: u32,
    max_finite: u8,
    infinity: Option<u8>,
}

const NAN: u8 = 0x7f;
const E4M3: Float8 = Float8 { mantissa_bits: 3, bias: 7, max_finite: 0x7e, infinity: None };
const E5M2: Float8 = Float8 { mantissa_bits: 2, bias: 15, max_finite: 0x7b, infinity: Some(0x7c) };

const F32_MANTISSA_BITS: u32 = 23;
const F32_BIAS: u32 = 127;
const F32_INFINITY: u32 = 0x7f80_0000;

impl Float8 {
    fn encode(&self, value: f32, overflow: Overflow) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let magnitude = value.abs().to_bits();
        if magnitude > F32_INFINITY {
            return sign | NAN;
        }
        let code = if magnitude >= self.min_normal().to_bits() {
            // The exponent rebased, the code is the top of the bits; a carry out of the mantissa lands in
            // the exponent, which is the next binade.
            let rebased = magnitude - ((F32_BIAS - self.bias) << F32_MANTISSA_BITS);
            let dropped = F32_MANTISSA_BITS - self.mantissa_bits;
            let odd = (rebased >> dropped) & 1;
            (rebased + (1 << (dropped - 1)) - 1 + odd) >> dropped
        } else {
            // An f32 sum rounds to even at its own unit; `unit` is the sum whose unit is the smallest code.
            let unit = self.smallest() * (1 << F32_MANTISSA_BITS) as f32;
            (value.abs() + unit).to_bits() - unit.to_bits()
        };
        if code <= u32::from(self.max_finite) {
            return sign | code as u8;
        }
        sign | match overflow {
            Overflow::Saturate => self.max_finite,
            Overflow::Ieee => self.infinity.unwrap_or(NAN),
        }
    }

    fn decode(&self, code: u8) -> f32 {
        let magnitude = code & 0x7f;
        let value = if Some(magnitude) == self.infinity {
            f32::INFINITY
        } else if magnitude > self.max_finite {
            f32::NAN
        } else if magnitude < 1 << self.mantissa_bits {
            f32::from(magnitude) * self.smallest()
        } else {
            let rebased = u32::from(magnitude) << (F32_MANTISSA_BITS - self.mantissa_bits);
            f32::from_bits(rebased + ((F32_BIAS - self.bias) << F32_MANTISSA_BITS))
        };
        if code & 0x80 == 0 { value } else { -value }
    }

    fn min_normal(&self) -> f32 {
        f32::from_bits((F32_BIAS - self.bias + 1) << F32_MANTISSA_BITS)
    }

    /// The smallest subnormal, one unit of the subnormal range.
    fn smallest(&self) -> f32 {
        f32::from_bits((F32_BIAS - self.bias + 1 - self.mantissa_bits) << F32_MANTISSA_BITS)
    }
}

#[cfg(test)]
mod tests;
