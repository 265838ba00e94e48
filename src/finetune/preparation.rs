//! Samples in, the samples that are learned out: without the silence around the speech, at one loudness.
//!
//! Never touches what lies between the first and the last word.

use std::ops::Range;

use ebur128::{EbuR128, Mode};

use crate::precision::cast::f64_to_f32;

/// So far below the loudest window speech has begun or ended.
const SILENCE_DB: f32 = 40.0;
const WINDOW_SECONDS: f64 = 0.02;
/// What is kept of the silence on each side: the soft beginnings and ends of words.
const MARGIN_SECONDS: f64 = 0.05;
/// A recording that nowhere exceeds this (−60 dB of full scale) is silent.
const SILENT_PEAK: f32 = 1e-3;

pub fn is_silent(samples: &[f32]) -> bool {
    samples.iter().all(|sample| sample.abs() <= SILENT_PEAK)
}

/// The part of `samples` from a margin before the first window that is not silent to a margin after the last.
pub fn spoken(samples: &[f32], sample_rate_hz: u32) -> Range<usize> {
    let length = |seconds: f64| ((seconds * f64::from(sample_rate_hz)) as usize).max(1);
    let (window, margin) = (length(WINDOW_SECONDS), length(MARGIN_SECONDS));
    let power =
        |window: &[f32]| window.iter().map(|sample| sample * sample).sum::<f32>() / window.len() as f32;
    let powers: Vec<f32> = samples.chunks(window).map(power).collect();
    let loudest = powers.iter().copied().fold(0.0, f32::max);
    let is_speech = |power: &f32| *power > loudest * 10.0_f32.powf(-SILENCE_DB / 10.0);
    match (powers.iter().position(is_speech), powers.iter().rposition(is_speech)) {
        (Some(first), Some(last)) => {
            (first * window).saturating_sub(margin)..((last + 1) * window + margin).min(samples.len())
        }
        _ => 0..samples.len(),
    }
}

/// Brings `samples` to a loudness of `lufs` (EBU R 128), by one gain for all of them.
///
/// # Errors
/// The reason, where they are too short or too quiet for their loudness to be measured.
pub fn level(samples: &mut [f32], sample_rate_hz: u32, lufs: f32) -> Result<(), String> {
    let measured = EbuR128::new(1, sample_rate_hz, Mode::I).and_then(|mut meter| {
        meter.add_frames_f32(samples)?;
        meter.loudness_global()
    });
    let loudness = measured.map_err(|e| format!("its loudness cannot be measured: {e}"))?;
    if !loudness.is_finite() {
        return Err("it is too short or too quiet for its loudness to be measured".to_owned());
    }
    let gain = f64_to_f32(10.0_f64.powf((f64::from(lufs) - loudness) / 20.0));
    samples.iter_mut().for_each(|sample| *sample *= gain);
    Ok(())
}
