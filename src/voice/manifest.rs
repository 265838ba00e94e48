//! `voice.toml` in, what the Hugging Face layout does not say out.
//!
//! A stock directory has none; then everything here has its default. `models/README.md` describes each field.
//! Never decides a size: those are in `config.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::bounds::{Checked, json, toml};
use super::config::VocoderConfig;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Manifest {
    pub voice: Identity,
    pub text: Text,
    pub mel: Option<Mel>,
    pub decoder: Decoder,
    pub speaker: DefaultSpeaker,
    pub speakers: BTreeMap<String, SpeakerEntry>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identity {
    pub name: Option<String>,
    pub language: Option<String>,
    pub licence: Option<String>,
    pub description: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Text {
    pub frontend: Option<FrontendKind>,
    pub symbols: Option<String>,
    pub segment_symbols: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrontendKind {
    Ipa,
    Characters,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Decoder {
    pub stop_threshold: f32,
    pub max_frames_per_symbol: f32,
}

impl Default for Decoder {
    /// What `SpeechT5ForTextToSpeech.generate_speech` does: `threshold=0.5`, `maxlenratio=20`.
    fn default() -> Self {
        Self { stop_threshold: 0.5, max_frames_per_symbol: 20.0 }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefaultSpeaker {
    pub default: Option<String>,
}

/// An embedding, or the file in the voice that holds it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "need an array of numbers or the name of a file")]
pub enum SpeakerEntry {
    Values(Vec<f64>),
    File(String),
}

/// How sound becomes the model's mel: magnitudes of an STFT through slaney filters with slaney norm, their
/// logarithm, then `(log mel - shift) / scale`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mel {
    pub sample_rate_hz: u32,
    pub n_fft: usize,
    pub hop_length: usize,
    pub win_length: usize,
    #[serde(default)]
    pub window: Window,
    pub fmin_hz: f32,
    pub fmax_hz: f32,
    pub log: LogBase,
    /// The least magnitude before the logarithm.
    pub floor: f32,
    pub padding: MelPadding,
    #[serde(default)]
    pub shift: f32,
    #[serde(default = "one")]
    pub scale: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Window {
    #[default]
    Hann,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogBase {
    Ln,
    Log10,
}

/// Reflected samples on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MelPadding {
    /// `(n_fft - hop_length) / 2`: a frame for every whole hop.
    Same,
    /// `n_fft / 2`: frame `i` is centred on sample `i * hop_length`.
    Center,
}

fn one() -> f32 {
    1.0
}

impl Manifest {
    pub fn parse(text: &str) -> Checked<Self> {
        toml(text)
    }
}

/// `preprocessor_config.json`; lengths are in milliseconds.
#[derive(Deserialize)]
#[serde(default)]
struct Extractor {
    sampling_rate: u32,
    hop_length: u32,
    win_length: u32,
    win_function: String,
    fmin: f32,
    fmax: f32,
    mel_floor: f32,
}

impl Default for Extractor {
    fn default() -> Self {
        Self {
            sampling_rate: 16_000,
            hop_length: 16,
            win_length: 64,
            win_function: "hann_window".into(),
            fmin: 80.0,
            fmax: 7600.0,
            mel_floor: 1e-10,
        }
    }
}

impl Decoder {
    pub(super) fn check(&self, reduction_factor: usize) -> Checked {
        let (threshold, frames) = (self.stop_threshold, self.max_frames_per_symbol);
        // The sum of r sigmoids stays below r: such a threshold is never reached.
        let reached = u16::try_from(reduction_factor).is_ok_and(|most| threshold < f32::from(most));
        if !(threshold > 0.0 && reached) {
            return Err(format!("stop_threshold {threshold} is not between 0 and {reduction_factor}"));
        }
        if !(frames > 0.0 && frames <= 1000.0) {
            return Err(format!("max_frames_per_symbol {frames} is not above 0 and at most 1000"));
        }
        Ok(())
    }
}

impl Mel {
    /// The features of a `SpeechT5FeatureExtractor` (`feature_extraction_speecht5.py`, 5.24), given its
    /// `preprocessor_config.json`; a field that is absent has the default.
    pub(super) fn speecht5(preprocessor: &[u8]) -> Checked<Self> {
        let Extractor { sampling_rate, hop_length, win_length, win_function, fmin, fmax, mel_floor } =
            json(preprocessor)?;
        if win_function != "hann_window" {
            return Err(format!("win_function is `{win_function}`: only `hann_window` is supported"));
        }
        let samples = |field: &str, milliseconds: u32| {
            usize::try_from(u64::from(milliseconds) * u64::from(sampling_rate) / 1000)
                .map_err(|_| format!("{field} {milliseconds} is too long"))
        };
        let win_length = samples("win_length", win_length)?;
        let n_fft = win_length.checked_next_power_of_two().ok_or("win_length is too long")?;
        Ok(Self {
            sample_rate_hz: sampling_rate,
            n_fft,
            hop_length: samples("hop_length", hop_length)?,
            win_length,
            window: Window::Hann,
            fmin_hz: fmin,
            fmax_hz: fmax,
            log: LogBase::Log10,
            floor: mel_floor,
            padding: MelPadding::Center,
            shift: 0.0,
            scale: 1.0,
        })
    }

    pub(super) fn check(&self, vocoder: &VocoderConfig) -> Checked {
        let (rate, hop) = (vocoder.sample_rate_hz(), vocoder.hop_length());
        if self.sample_rate_hz != rate {
            return Err(format!("sample_rate_hz {} is not the vocoder's {rate}", self.sample_rate_hz));
        }
        if self.hop_length != hop {
            return Err(format!("hop_length {} is not the vocoder's {hop}", self.hop_length));
        }
        let (n_fft, win) = (self.n_fft, self.win_length);
        if !(n_fft.is_multiple_of(2) && n_fft <= 1 << 16 && (1..=n_fft).contains(&win) && hop <= n_fft) {
            return Err(format!(
                "win_length {win} and hop_length {hop} must be at most n_fft {n_fft}, an even number up to 65536"
            ));
        }
        // Twice the highest frequency may not exceed the rate; compared in f64, which holds both exactly.
        let (fmin, fmax) = (f64::from(self.fmin_hz), f64::from(self.fmax_hz));
        if !(0.0 <= fmin && fmin < fmax && 2.0 * fmax <= f64::from(rate)) {
            return Err(format!("fmin_hz {fmin} and fmax_hz {fmax} do not rise from 0 to half of {rate}"));
        }
        for (field, value) in [("floor", self.floor), ("scale", self.scale)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{field} {value} is not a positive number"));
            }
        }
        if !self.shift.is_finite() {
            return Err(format!("shift {} is not a number", self.shift));
        }
        Ok(())
    }
}
