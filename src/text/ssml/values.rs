//! Attribute values of SSML in, milliseconds, rates and decibels out.
//!
//! An error is the rule that a value breaks; whoever asked adds the place. Never clamps.

use super::xml::quoted;
use crate::text::Prosody;

/// The longest silence between two words that markup may ask for.
pub const MAX_BREAK_MS: u32 = 10_000;

/// Rates that some request could be spoken at: with the request's own speaking rate, 0.5 to 2, the product must lie
/// in 0.5 to 2 again.
const RATES: std::ops::RangeInclusive<f32> = 0.25..=4.0;
/// Gains that other services take too.
const GAINS_DB: std::ops::RangeInclusive<f32> = -96.0..=16.0;

/// `strength` of a break (SSML 1.1, 3.2.3), as long as the pauses of plain text are.
const STRENGTHS_MS: [(&str, u32); 6] =
    [("none", 0), ("x-weak", 60), ("weak", 120), ("medium", 250), ("strong", 600), ("x-strong", 1000)];

const RATE_NAMES: [(&str, f32); 6] =
    [("x-slow", 0.5), ("slow", 0.75), ("medium", 1.0), ("default", 1.0), ("fast", 1.5), ("x-fast", 2.0)];

/// Steps of 6 dB, which is twice or half the amplitude.
const VOLUME_NAMES: [(&str, f32); 7] = [
    ("silent", f32::NEG_INFINITY),
    ("x-soft", -12.0),
    ("soft", -6.0),
    ("medium", 0.0),
    ("default", 0.0),
    ("loud", 6.0),
    ("x-loud", 12.0),
];

/// What a break asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// No pause, where there might have been one.
    Prevented,
    Lasting(u32),
}

/// The break of `time`, else of `strength`, else a medium one.
pub fn pause(time: Option<&str>, strength: Option<&str>) -> Result<Break, String> {
    let strength = match strength {
        Some(name) => named(&STRENGTHS_MS, name).ok_or_else(|| {
            format!(
                "the strength {} is none of {}",
                quoted(name),
                names(STRENGTHS_MS.iter().map(|(n, _)| *n))
            )
        })?,
        None => 250,
    };
    match time {
        Some(time) => milliseconds(time).map(Break::Lasting),
        None if strength == 0 => Ok(Break::Prevented),
        None => Ok(Break::Lasting(strength)),
    }
}

/// A time designation of CSS 2: `1.5s` or `250ms`.
fn milliseconds(time: &str) -> Result<u32, String> {
    let refuse = |rule: &str| format!("the time {} {rule}", quoted(time));
    let (number, scale) = match (time.strip_suffix("ms"), time.strip_suffix('s')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 1000.0),
        (None, None) => return Err(refuse("has no unit: it must end in s or ms")),
    };
    let number = number.trim().strip_prefix('+').unwrap_or(number.trim());
    let ms = decimal(number).ok_or_else(|| refuse("is no number of s or ms, such as 1.5s or 250ms"))? * scale;
    if ms > MAX_BREAK_MS as f32 {
        return Err(refuse(&format!("is above the limit of {MAX_BREAK_MS} ms")));
    }
    Ok(ms.round() as u32)
}

/// `outer` with the rate of a prosody element: a name, or a multiple of the default rate (`120%`, `1.2`), or a change
/// of the rate around it (`+20%`).
pub fn with_rate(outer: Prosody, text: &str) -> Result<Prosody, String> {
    let text = text.trim();
    let refuse = |rule: &str| format!("the rate {} {rule}", quoted(text));
    let change = text.starts_with(['+', '-']);
    let number = text.trim_start_matches(['+', '-']);
    let share = match number.strip_suffix('%') {
        Some(percent) => decimal(percent).map(|percent| percent / 100.0),
        None if change => None,
        None => decimal(number),
    };
    let rate = match (named(&RATE_NAMES, text), share) {
        (Some(rate), _) => rate,
        (None, Some(share)) if text.starts_with('+') => outer.rate * (1.0 + share),
        (None, Some(share)) if text.starts_with('-') => outer.rate * (1.0 - share),
        (None, Some(share)) => share,
        (None, None) => {
            let names = names(RATE_NAMES.iter().map(|(name, _)| *name));
            return Err(refuse(&format!("is none of {names}, nor a percentage such as 120% or +20%")));
        }
    };
    if !RATES.contains(&rate) {
        return Err(refuse(&format!(
            "makes {rate}: it must be 0.25 to 4, and 0.5 to 2 with the request's own rate"
        )));
    }
    Ok(Prosody { rate, ..outer })
}

/// `outer` with the volume of a prosody element: a name, or a change of the volume around it (`-6dB`).
pub fn with_volume(outer: Prosody, text: &str) -> Result<Prosody, String> {
    let text = text.trim();
    let refuse = |rule: &str| format!("the volume {} {rule}", quoted(text));
    let number = text.strip_suffix("dB").filter(|number| number.starts_with(['+', '-']));
    let change = number.and_then(|number| {
        let change = decimal(number.get(1..)?.trim())?;
        Some(if number.starts_with('-') { -change } else { change })
    });
    let gain_db = match (named(&VOLUME_NAMES, text), change) {
        (Some(gain), _) => gain,
        (None, Some(change)) => outer.gain_db + change,
        (None, None) => {
            let names = names(VOLUME_NAMES.iter().map(|(name, _)| *name));
            return Err(refuse(&format!("is none of {names}, nor a change such as +6dB or -6dB")));
        }
    };
    if gain_db != f32::NEG_INFINITY && !GAINS_DB.contains(&gain_db) {
        let (low, high) = GAINS_DB.into_inner();
        return Err(refuse(&format!("makes {gain_db} dB: it must be {low} to {high}, or silent")));
    }
    Ok(Prosody { gain_db, ..outer })
}

/// The number of digits with at most one point.
fn decimal(text: &str) -> Option<f32> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let points = text.bytes().filter(|byte| *byte == b'.').count();
    (digits > 0 && points <= 1 && digits + points == text.len()).then(|| text.parse().ok()).flatten()
}

fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(own, _)| *own == name.trim()).map(|(_, value)| *value)
}

fn names<'a>(table: impl Iterator<Item = &'a str>) -> String {
    table.collect::<Vec<_>>().join(", ")
}
