//! A field and its value in, the sentence about the limit that it breaks out.

use serde::Deserialize;

use super::MIN_SEGMENT_SYMBOLS;

/// A reason in words; the caller adds the file.
pub type Checked<T = ()> = std::result::Result<T, String>;

/// Bounds that no speech model of this kind comes near; below them no product of sizes overflows.
pub const MAX_WIDTH: usize = 1 << 16;
pub const MAX_LAYERS: usize = 256;
pub const MAX_POSITIONS: usize = 1 << 20;
pub const MAX_VOCABULARY: usize = 1 << 22;
pub const MAX_KERNEL: usize = 1 << 10;
/// Sequences: the least that a word fits into, and the most.
pub const SEGMENT_SYMBOLS: std::ops::RangeInclusive<usize> = MIN_SEGMENT_SYMBOLS..=MAX_POSITIONS;
/// What a position table may take; SpeechT5's take 12 MB.
const MAX_POSITION_TABLE_BYTES: usize = 256 << 20;
/// What the caches of one stream may take in f32; SpeechT5's take 166 MB.
const MAX_CACHE_BYTES: usize = 1 << 30;
/// What one layer of the encoder's attention may take for the longest segment; SpeechT5's takes 46 MB.
const MAX_ATTENTION_BYTES: usize = 1 << 30;
const SAMPLE_RATES_HZ: std::ops::RangeInclusive<usize> = 1_000..=384_000;

/// A whole JSON document; the reason says field, line and column.
pub fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Checked<T> {
    let mut document = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut document)
        .map_err(|error| at_field(error.path(), &error.inner().to_string()))?;
    document.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// A whole TOML document; the reason says field, line and column.
pub fn toml<'a, T: Deserialize<'a>>(text: &'a str) -> Checked<T> {
    // The crate's own message quotes the whole line, however long it is.
    let place = |error: &toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let (line, column) =
            (before.matches('\n').count() + 1, before.chars().rev().take_while(|c| *c != '\n').count() + 1);
        format!("{} at line {line} column {column}", error.message())
    };
    let document = toml::Deserializer::parse(text).map_err(|error| place(&error))?;
    serde_path_to_error::deserialize(document).map_err(|error| at_field(error.path(), &place(error.inner())))
}

fn at_field(path: &serde_path_to_error::Path, reason: &str) -> String {
    // A document that fails as a whole has no field.
    if path.iter().next().is_none() { reason.to_string() } else { format!("{path}: {reason}") }
}

/// `reason` without its middle where something long is quoted in it.
pub fn shortened(reason: String) -> String {
    const BYTES: usize = 320;
    crate::error::shortened(reason, BYTES)
}

pub fn between(field: &str, value: usize, least: usize, most: usize) -> Checked {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{field} {value} is not in {least}..={most}"))
}

/// Holds a table of `positions` rows of `width` f32 values.
pub fn position_table(field: &str, positions: usize, width: usize) -> Checked {
    let bytes = positions.saturating_mul(width).saturating_mul(size_of::<f32>());
    if bytes <= MAX_POSITION_TABLE_BYTES {
        return Ok(());
    }
    let limit = format!("{bytes} bytes, the limit is {MAX_POSITION_TABLE_BYTES}");
    Err(format!("{field} {positions} makes a position table of {limit}"))
}

/// Holds the keys and values that one stream keeps for its own steps and for its sentence's symbols.
pub fn stream_cache(speech_positions: usize, text_positions: usize, layers: usize, width: usize) -> Checked {
    let position = layers.saturating_mul(width).saturating_mul(2 * size_of::<f32>());
    let bytes = speech_positions.saturating_add(text_positions).saturating_mul(position);
    if bytes <= MAX_CACHE_BYTES {
        return Ok(());
    }
    Err(format!(
        "max_speech_positions {speech_positions} and max_text_positions {text_positions} make a KV cache of \
         {bytes} bytes a stream, the limit is {MAX_CACHE_BYTES}"
    ))
}

/// Holds what the encoder's attention takes for `symbols` symbols: for each head and pair of symbols a score,
/// a bias and the row of that bias (f32, f32, i64), and for each symbol its scores against all
/// `2 * relative` relative positions.
pub fn attention(field: &str, symbols: usize, heads: usize, relative: usize) -> Checked {
    let pairs = symbols.saturating_mul(2 * size_of::<f32>() + size_of::<i64>());
    let positions = relative.saturating_mul(2 * size_of::<f32>());
    let bytes = heads.saturating_mul(symbols).saturating_mul(pairs.saturating_add(positions));
    if bytes <= MAX_ATTENTION_BYTES {
        return Ok(());
    }
    Err(format!(
        "{field} {symbols}, with {heads} encoder_attention_heads and encoder_max_relative_position {relative}, \
         takes {bytes} bytes of attention, the limit is {MAX_ATTENTION_BYTES}"
    ))
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
