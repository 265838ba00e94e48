//! Samples in, the mel that a voice learns out.
//!
//! What a voice says of its features ([`Mel`]) is carried out here, in f32 from the sample to the logarithm: the
//! extractor of SpeechT5 (`feature_extraction_speecht5.py`, transformers 5.24) and the convention of HiFi-GAN. Filters
//! are Slaney's triangles. Never narrows a sample.

use std::f32::consts::PI;
use std::sync::Arc;

use realfft::num_complex::Complex32;
use realfft::{RealFftPlanner, RealToComplex};

use crate::error::{Error, Result};
use crate::voice::manifest::{LogBase, Mel, MelPadding};

/// What HiFi-GAN adds under the root of every magnitude.
const HIFIGAN_EPSILON: f32 = 1e-9;

/// Computes the mels of one voice.
pub struct MelExtractor {
    mel: Mel,
    n_mels: usize,
    window: Vec<f32>,
    /// For every filter its first bin and its weights.
    filters: Vec<(usize, Vec<f32>)>,
    fft: Arc<dyn RealToComplex<f32>>,
}

impl MelExtractor {
    /// # Errors
    /// [`Error::InvalidRequest`] when `mel` describes no spectrum: no hop, or a window longer than the transform.
    pub fn new(mel: &Mel, n_mels: usize) -> Result<Self> {
        let Mel { n_fft, hop_length, win_length, .. } = *mel;
        if hop_length == 0 || win_length == 0 || win_length > n_fft || hop_length > n_fft {
            return Err(Error::InvalidRequest(format!(
                "a mel of n_fft {n_fft}, hop_length {hop_length} and win_length {win_length} cannot be computed: both \
                 lengths must be 1 to n_fft"
            )));
        }
        let mut window = vec![0.0; n_fft];
        let offset = (n_fft - win_length) / 2;
        for (index, value) in window[offset..offset + win_length].iter_mut().enumerate() {
            *value = 0.5 - 0.5 * (2.0 * PI * index as f32 / win_length as f32).cos();
        }
        let fft = RealFftPlanner::new().plan_fft_forward(n_fft);
        Ok(Self { mel: mel.clone(), n_mels, window, filters: filters(mel, n_mels), fft })
    }

    /// The mel of `samples`, which are at the voice's rate. -> [frames * n_mels], empty for fewer samples than the
    /// padding reflects
    ///
    /// # Errors
    /// [`Error::Internal`] when the transform fails.
    pub fn mel(&self, samples: &[f32]) -> Result<Vec<f32>> {
        let Mel { n_fft, hop_length, .. } = self.mel;
        let padding = match self.mel.padding {
            MelPadding::Same => (n_fft - hop_length) / 2,
            MelPadding::Center => n_fft / 2,
        };
        if samples.len() <= padding {
            return Ok(vec![]);
        }
        let before = samples[1..=padding].iter().rev();
        let after = samples[samples.len() - 1 - padding..samples.len() - 1].iter().rev();
        let padded: Vec<f32> = before.chain(samples).chain(after).copied().collect();
        let epsilon = if self.mel.padding == MelPadding::Same { HIFIGAN_EPSILON } else { 0.0 };
        let mut frame = self.fft.make_input_vec();
        let mut spectrum = self.fft.make_output_vec();
        let mut magnitudes = vec![0.0; spectrum.len()];
        let mut mel = Vec::new();
        for from in (0..=padded.len().saturating_sub(n_fft)).step_by(hop_length) {
            let windowed = padded[from..].iter().zip(&self.window).map(|(sample, gain)| sample * gain);
            frame.iter_mut().zip(windowed).for_each(|(value, sample)| *value = sample);
            let failed = |e| Error::Internal(format!("a spectrum could not be computed: {e}"));
            self.fft.process(&mut frame, &mut spectrum).map_err(failed)?;
            for (magnitude, Complex32 { re, im }) in magnitudes.iter_mut().zip(&spectrum) {
                *magnitude = (re * re + im * im + epsilon).sqrt();
            }
            mel.extend(self.filters.iter().map(|filter| self.value(filter, &magnitudes)));
        }
        Ok(mel)
    }

    fn value(&self, (first, weights): &(usize, Vec<f32>), magnitudes: &[f32]) -> f32 {
        let energy: f32 = magnitudes[*first..].iter().zip(weights).map(|(bin, weight)| bin * weight).sum();
        let level = energy.max(self.mel.floor);
        let log = match self.mel.log {
            LogBase::Ln => level.ln(),
            LogBase::Log10 => level.log10(),
        };
        (log - self.mel.shift) / self.mel.scale
    }

    pub fn n_mels(&self) -> usize {
        self.n_mels
    }
}

/// Slaney's scale: linear to 1 kHz, logarithmic above (Auditory Toolbox, 1998).
fn hz_to_mel(hz: f64) -> f64 {
    if hz < 1000.0 { 3.0 * hz / 200.0 } else { 15.0 + (hz / 1000.0).ln() * 27.0 / 6.4f64.ln() }
}

fn mel_to_hz(mel: f64) -> f64 {
    if mel < 15.0 { 200.0 * mel / 3.0 } else { 1000.0 * ((mel - 15.0) * 6.4f64.ln() / 27.0).exp() }
}

/// Triangles of equal area, equally far apart in mel.
fn filters(mel: &Mel, n_mels: usize) -> Vec<(usize, Vec<f32>)> {
    let (low, high) = (hz_to_mel(mel.fmin_hz.into()), hz_to_mel(mel.fmax_hz.into()));
    let corner = |index: usize| mel_to_hz(low + (high - low) * index as f64 / (n_mels + 1) as f64);
    let bin_hz = f64::from(mel.sample_rate_hz) / mel.n_fft as f64;
    let triangle = |index: usize| {
        let [left, peak, right] = [corner(index), corner(index + 1), corner(index + 2)];
        let weight = |bin: usize| {
            let hz = bin as f64 * bin_hz;
            let slope = ((hz - left) / (peak - left)).min((right - hz) / (right - peak)).max(0.0);
            crate::precision::cast::f64_to_f32(slope * 2.0 / (right - left))
        };
        let first = (left / bin_hz).ceil() as usize;
        let last = ((right / bin_hz).floor() as usize).min(mel.n_fft / 2);
        (first, (first..=last).map(weight).collect())
    };
    (0..n_mels).map(triangle).collect()
}
