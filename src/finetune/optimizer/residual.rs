//! An f32 weight in, a 16-bit weight and what its rounding lost out, and back.
//!
//! The residual counts parts of half a unit of the narrow weight: 127 of them in an i8 (24 bits together), 32767 in
//! an i16 (32 bits). For bf16 the 32-bit form is exact instead: the low half of the f32 itself. Formulas: FlashOptim
//! 0.1.3 and, for the exact form, the parameter remainders of Transformer Engine.
//!
//! Never keeps a residual beside a weight that is not finite.

use half::{bf16, f16};

use crate::precision::cast::{f32_to_bf16, f32_to_f16};

/// A 16-bit float that weights rest in.
pub trait Narrow: Copy {
    /// Rounded to nearest, ties to even.
    fn round(value: f32) -> Self;
    fn widen(self) -> f32;
    /// log2 of half a unit in the last place; zero and subnormals have that of the smallest exponent.
    fn log2_half_unit(self) -> i32;
}

impl Narrow for bf16 {
    fn round(value: f32) -> Self {
        f32_to_bf16(value)
    }

    fn widen(self) -> f32 {
        self.to_f32()
    }

    fn log2_half_unit(self) -> i32 {
        let exponent = i32::from(self.to_bits() >> 7 & 0xff);
        exponent.max(1) - 127 - 7 - 1
    }
}

impl Narrow for f16 {
    fn round(value: f32) -> Self {
        f32_to_f16(value)
    }

    fn widen(self) -> f32 {
        self.to_f32()
    }

    fn log2_half_unit(self) -> i32 {
        let exponent = i32::from(self.to_bits() >> 10 & 0x1f);
        exponent.max(1) - 15 - 10 - 1
    }
}

/// 2 to the power of `exponent`, -149 to 127.
fn power_of_two(exponent: i32) -> f32 {
    if exponent >= -126 {
        f32::from_bits(((exponent + 127) as u32) << 23)
    } else {
        f32::from_bits(1 << (exponent + 149))
    }
}

/// `value` rounded to `W`, and the parts of half a unit that were lost, -`parts` to `parts`.
fn split<W: Narrow>(value: f32, parts: f32) -> (W, f32) {
    let narrow = W::round(value);
    if !narrow.widen().is_finite() {
        return (narrow, 0.0);
    }
    let half_unit = narrow.log2_half_unit();
    // Two factors: the reciprocal of the smallest half unit is beyond f32.
    let (first, second) = (-half_unit / 2, -half_unit - -half_unit / 2);
    let lost = (value - narrow.widen()) * power_of_two(first) * power_of_two(second);
    let scaled = lost.clamp(-1.0, 1.0) * parts;
    (narrow, (scaled.abs() + 0.5).floor().copysign(scaled))
}

fn join<W: Narrow>(narrow: W, parts_lost: f32, parts: f32) -> f32 {
    narrow.widen() + parts_lost / parts * power_of_two(narrow.log2_half_unit())
}

const PARTS_8: f32 = i8::MAX as f32;
const PARTS_16: f32 = i16::MAX as f32;

/// The 24-bit form of `value`.
pub fn split_24<W: Narrow>(value: f32) -> (W, i8) {
    let (narrow, lost) = split(value, PARTS_8);
    (narrow, lost as i8)
}

/// The weight of its 24-bit form, within 1/254 of half a unit of `narrow`.
pub fn join_24<W: Narrow>(narrow: W, residual: i8) -> f32 {
    join(narrow, f32::from(residual), PARTS_8)
}

/// The 32-bit form of `value`.
pub fn split_32<W: Narrow>(value: f32) -> (W, i16) {
    let (narrow, lost) = split(value, PARTS_16);
    (narrow, lost as i16)
}

/// The weight of its 32-bit form.
pub fn join_32<W: Narrow>(narrow: W, residual: i16) -> f32 {
    join(narrow, f32::from(residual), PARTS_16)
}

/// The exact 32-bit form of `value`: ties go away from zero, so that the low half is the residual.
pub fn split_exact(value: f32) -> (bf16, i16) {
    if value.is_nan() {
        return (bf16::NAN, 0);
    }
    let bits = value.to_bits();
    let low = bits as u16 as i16;
    (bf16::from_bits((bits >> 16) as u16 + u16::from(low < 0)), low)
}

/// The value of its exact form.
pub fn join_exact(narrow: bf16, residual: i16) -> f32 {
    let high = narrow.to_bits().wrapping_sub(u16::from(residual < 0));
    f32::from_bits(u32::from(high) << 16 | u32::from(residual as u16))
}
