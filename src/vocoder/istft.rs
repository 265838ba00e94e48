//! Magnitude and phase of STFT frames in, samples out, by windowed overlap-add.
//!
//! Follows Vocos' "same" padding: `(win − hop) / 2` samples are trimmed from either end and every sample is
//! divided by the sum of the squared windows that cover it. Never computes in anything but f32.

use std::f32::consts::TAU;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner};

use crate::error::{Error, Result};

/// The transform of one vocoder: tables only, no signal.
pub struct InverseStft {
    transform: Arc<dyn ComplexToReal<f32>>,
    /// Periodic Hann, [n_fft]
    window: Vec<f32>,
    hop_length: usize,
}

/// The overlap of one sentence.
pub struct Overlap {
    /// Windowed frames summed, [n_fft], not yet final from the first sample on.
    sum: Vec<f32>,
    /// Squared windows summed, [n_fft]
    envelope: Vec<f32>,
    /// Samples still to be trimmed from the start.
    trim: usize,
}

/// Samples that are trimmed from either end.
fn padding(n_fft: usize, hop_length: usize) -> usize {
    (n_fft - hop_length) / 2
}

/// How many frames must follow a frame before its samples are final.
pub fn overlap_frames(n_fft: usize, hop_length: usize) -> usize {
    padding(n_fft, hop_length).div_ceil(hop_length)
}

impl InverseStft {
    pub fn new(n_fft: usize, hop_length: usize) -> Self {
        let window = (0..n_fft).map(|n| 0.5 - 0.5 * (TAU * n as f32 / n_fft as f32).cos()).collect();
        Self { transform: RealFftPlanner::new().plan_fft_inverse(n_fft), window, hop_length }
    }

    /// The state of a new sentence.
    pub fn begin(&self) -> Overlap {
        let n_fft = self.window.len();
        Overlap { sum: vec![0.0; n_fft], envelope: vec![0.0; n_fft], trim: self.padding() }
    }

    /// Values of a frame: n_fft / 2 + 1.
    pub fn bins(&self) -> usize {
        self.window.len() / 2 + 1
    }

    fn padding(&self) -> usize {
        padding(self.window.len(), self.hop_length)
    }

    /// Adds frames, row-major [frames, n_fft / 2 + 1], and appends the samples that are final to `samples`.
    pub fn push(
        &self,
        overlap: &mut Overlap,
        magnitude: &[f32],
        phase: &[f32],
        samples: &mut Vec<f32>,
    ) -> Result<()> {
        let bins = self.bins();
        let mut spectrum = self.transform.make_input_vec();
        let mut frame = self.transform.make_output_vec();
        let mut scratch = self.transform.make_scratch_vec();
        for (magnitude, phase) in magnitude.chunks_exact(bins).zip(phase.chunks_exact(bins)) {
            for ((bin, &magnitude), &phase) in spectrum.iter_mut().zip(magnitude).zip(phase) {
                let (sin, cos) = phase.sin_cos();
                *bin = Complex::new(magnitude * cos, magnitude * sin);
            }
            // A real signal has a real spectrum at both ends; the reference drops what is not.
            spectrum[0].im = 0.0;
            spectrum[bins - 1].im = 0.0;
            self.transform
                .process_with_scratch(&mut spectrum, &mut frame, &mut scratch)
                .map_err(|e| Error::Internal(format!("inverse STFT: {e}")))?;
            self.add(overlap, &frame);
            overlap.emit(self.hop_length, samples);
        }
        Ok(())
    }

    /// Appends the rest of the sentence: what no further frame will touch, without the trimmed end.
    pub fn finish(&self, mut overlap: Overlap, samples: &mut Vec<f32>) {
        overlap.emit(self.window.len() - self.hop_length - self.padding(), samples);
    }

    fn add(&self, overlap: &mut Overlap, frame: &[f32]) {
        let scale = 1.0 / self.window.len() as f32;
        let sums = overlap.sum.iter_mut().zip(&mut overlap.envelope);
        for ((sum, envelope), (value, window)) in sums.zip(frame.iter().zip(&self.window)) {
            *sum += value * scale * window;
            *envelope += window * window;
        }
    }
}

impl Overlap {
    /// Shifts `count` samples out.
    fn emit(&mut self, count: usize, samples: &mut Vec<f32>) {
        let skip = self.trim.min(count);
        self.trim -= skip;
        let finals = self.sum[skip..count].iter().zip(&self.envelope[skip..count]);
        samples.extend(finals.map(|(sum, envelope)| sum / envelope));
        for buffer in [&mut self.sum, &mut self.envelope] {
            buffer.copy_within(count.., 0);
            let kept = buffer.len() - count;
            buffer[kept..].fill(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, sample by sample: no overlap state, a direct inverse DFT in f64.
    fn direct(n_fft: usize, hop: usize, magnitude: &[f32], phase: &[f32]) -> Vec<f32> {
        let bins = n_fft / 2 + 1;
        let frames = magnitude.len() / bins;
        let hann = |n: usize| 0.5 - 0.5 * (std::f64::consts::TAU * n as f64 / n_fft as f64).cos();
        let mut sum = vec![0.0f64; (frames - 1) * hop + n_fft];
        let mut envelope = sum.clone();
        for frame in 0..frames {
            for n in 0..n_fft {
                let mut value = 0.0;
                for k in 0..bins {
                    let (m, p) = (f64::from(magnitude[frame * bins + k]), f64::from(phase[frame * bins + k]));
                    let turn = std::f64::consts::TAU * (k * n) as f64 / n_fft as f64;
                    let real_end = k == 0 || k == bins - 1;
                    value += if real_end { m * p.cos() * turn.cos() } else { 2.0 * m * (p + turn).cos() };
                }
                sum[frame * hop + n] += value / n_fft as f64 * hann(n);
                envelope[frame * hop + n] += hann(n) * hann(n);
            }
        }
        let pad = (n_fft - hop) / 2;
        (pad..sum.len() - pad).map(|n| (sum[n] / envelope[n]) as f32).collect()
    }

    #[test]
    fn equals_the_definition_in_any_portions() {
        let (n_fft, hop, frames) = (16, 4, 9);
        let bins = n_fft / 2 + 1;
        let noise = |i: usize, k: f32| ((i as f32 * k).sin() * 43_758.547).fract();
        let magnitude: Vec<f32> = (0..frames * bins).map(|i| noise(i, 12.9).abs()).collect();
        let phase: Vec<f32> = (0..frames * bins).map(|i| 3.0 * noise(i, 78.2)).collect();
        let expected = direct(n_fft, hop, &magnitude, &phase);
        assert_eq!(expected.len(), frames * hop);
        for portion in [1, 2, 5, frames] {
            let inverse = InverseStft::new(n_fft, hop);
            let (mut overlap, mut samples) = (inverse.begin(), Vec::new());
            for (m, p) in magnitude.chunks(portion * bins).zip(phase.chunks(portion * bins)) {
                inverse.push(&mut overlap, m, p, &mut samples).unwrap();
            }
            inverse.finish(overlap, &mut samples);
            assert_eq!(samples.len(), expected.len());
            for (got, want) in samples.iter().zip(&expected) {
                // The first sample divides by a squared window of 0.01: f32 leaves 1e-5 there.
                assert!((got - want).abs() < 1e-5, "{got} against {want} in portions of {portion}");
            }
        }
    }
}
