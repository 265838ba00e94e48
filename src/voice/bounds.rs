//! A field and its value in, the sentence about the limit that it breaks out.

use serde::Deserialize;

/// A reason in words; the caller adds the file.
pub type Checked<T = ()> = std::result::Result<T, String>;

/// Bounds that no speech model of this kind comes near; below them no product of sizes overflows.
pub const MAX_WIDTH: usize = 1 << 16;
pub const MAX_LAYERS: usize = 256;
pub const MAX_POSITIONS: usize = 1 << 20;
pub const MAX_VOCABULARY: usize = 1 << 22;
pub const MAX_KERNEL: usize = 1 << 10;
const SAMPLE_RATES_HZ: std::ops::RangeInclusive<usize> = 1_000..=384_000;

pub fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Checked<T> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

pub fn between(field: &str, value: usize, least: usize, most: usize) -> Checked {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{field} {value} is not in {least}..={most}"))
}

pub fn odd(field: &str, value: usize) -> Checked {
    between(field, value, 1, MAX_KERNEL)?;
    if value.is_multiple_of(2) { Err(format!("{field} {value} is even")) } else { Ok(()) }
}

pub fn open_unit(field: &str, value: f32) -> Checked {
    if value > 0.0 && value < 1.0 { Ok(()) } else { Err(format!("{field} {value} is not between 0 and 1")) }
}

pub fn sample_rate(value_hz: u32) -> Checked {
    let value = usize::try_from(value_hz).unwrap_or(usize::MAX);
    between("sampling_rate", value, *SAMPLE_RATES_HZ.start(), *SAMPLE_RATES_HZ.end())
}

pub fn equal_lengths(one: &str, one_length: usize, other: &str, other_length: usize) -> Checked {
    if one_length == other_length {
        return Ok(());
    }
    Err(format!("{one} has {one_length} entries and {other} {other_length}"))
}
