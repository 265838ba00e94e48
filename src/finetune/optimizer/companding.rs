//! Adam's two moments in f32 in, eight bits a value and an f16 scale a group out, and back.
//!
//! The momentum goes through a softsign into an i8, the root of the variance straight into a u8; a group is 32
//! values of the flattened tensor. Formulas: FlashOptim 0.1.3. A scale is held to what f16 can say without zero or
//! infinity, and the values of a group so held are counted in the scale that is stored: upstream loses the history
//! of a group below 2^-25 and poisons one above 65519.
//!
//! Never rounds to even: `floor(x + 0.5)`, as the original does.

use half::f16;

use crate::precision::cast::f32_to_f16;

/// Values that share a scale.
pub const GROUP: usize = 32;

const SMALLEST_SCALE: f32 = f32::from_bits((127 - 24) << 23);
const LARGEST_SCALE: f32 = 65504.0;

/// Eight-bit codes and their scales.
#[derive(Debug, Clone, PartialEq)]
pub struct Companded<Code> {
    pub codes: Vec<Code>,
    /// One for every [`GROUP`] codes, the last group may be short.
    pub scales: Vec<f16>,
}

impl<Code: Copy + Default> Companded<Code> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        Self { codes: vec![Code::default(); len], scales: vec![f16::ZERO; len.div_ceil(GROUP)] }
    }

    pub fn size_bytes(&self) -> usize {
        self.codes.len() + self.scales.len() * size_of::<f16>()
    }
}

/// The largest of a group, as its values are counted in, and as it is stored.
fn scale(largest: f32) -> (f32, f16) {
    if largest == 0.0 {
        // No value to count: upstream's scale.
        return (SMALLEST_SCALE, f16::ZERO);
    }
    let held = largest.clamp(SMALLEST_SCALE, LARGEST_SCALE);
    (held, f32_to_f16(held))
}

/// Writes a group of momenta. -> its scale
pub fn compress_momentum(values: &[f32], codes: &mut [i8]) -> f16 {
    let (largest, stored) = scale(values.iter().fold(0.0, |largest: f32, m| largest.max(m.abs())));
    for (code, m) in codes.iter_mut().zip(values) {
        let n = (m / largest).clamp(-1.0, 1.0);
        *code = (127.0 * (2.0 * n / (1.0 + n.abs())) + 0.5).floor() as i8;
    }
    stored
}

/// Reads a group of momenta.
pub fn expand_momentum(codes: &[i8], scale: f16, values: &mut [f32]) {
    let scale = scale.to_f32();
    for (value, code) in values.iter_mut().zip(codes) {
        let t = f32::from(*code) / 127.0;
        *value = t / (2.0 - t.abs()) * scale;
    }
}

/// Writes a group of variances, none negative. -> its scale
pub fn compress_variance(values: &[f32], codes: &mut [u8]) -> f16 {
    let (largest, stored) = scale(values.iter().fold(0.0, |largest: f32, v| largest.max(v.sqrt())));
    for (code, v) in codes.iter_mut().zip(values) {
        *code = (255.0 * (v.sqrt() / largest).min(1.0) + 0.5).floor() as u8;
    }
    stored
}

/// Reads a group of variances.
pub fn expand_variance(codes: &[u8], scale: f16, values: &mut [f32]) {
    let scale = scale.to_f32();
    for (value, code) in values.iter_mut().zip(codes) {
        let root = f32::from(*code) / 255.0 * scale;
        *value = root * root;
    }
}
