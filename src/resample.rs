//! Samples at one rate in, the same sound at another rate out, as it comes.
//!
//! A windowed sinc, rubato's. What comes out depends on all that was pushed and not on how it was cut, is not
//! delayed, and is as long as the input to within half a sample. Never touches a sample where the rates are equal.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{
    Async, FixedAsync, Indexing, Resampler as _, SincInterpolationParameters, SincInterpolationType,
    WindowFunction, calculate_cutoff,
};

use crate::error::{Error, Result};

/// Length of the filter in samples of the lower of the two rates.
const FILTER_LEN: u32 = 128;
/// Falls below −92 dB outside the pass band, which is less than a 16-bit step.
const WINDOW: WindowFunction = WindowFunction::BlackmanHarris;
/// Rates whose outputs lie at no more than this many places between two inputs get a filter for each place.
const MAX_PHASES: u32 = 512;
/// How many filters are mixed for all other rates.
const PHASES_TO_MIX: usize = 128;
/// Input samples that are filtered together: fixed, so that the cuts of the pushes do not show.
const BLOCK: usize = 64;

/// One channel of sound on its way from one sample rate to another.
///
/// The pass band is flat to 86 % of half the lower rate; what the output cannot hold is 110 dB down. About [`FILTER_LEN`]` / 2` samples of the lower rate
/// wait inside, until [`Self::finish`].
pub struct Resampler {
    input_rate_hz: u32,
    output_rate_hz: u32,
    /// `None` where the rates are equal.
    filter: Option<Filter>,
    pushed: u64,
    given: u64,
}

struct Filter {
    inner: Async<f32>,
    /// Input that does not fill a block yet.
    waiting: Vec<f32>,
    /// Leading output samples that are still to be dropped: the filter's delay.
    late: usize,
    block: Vec<f32>,
}

impl Resampler {
    /// # Errors
    /// [`Error::InvalidRequest`] for a rate of 0 Hz, or rates too far apart to filter.
    pub fn new(input_rate_hz: u32, output_rate_hz: u32) -> Result<Self> {
        let filter = match input_rate_hz == output_rate_hz {
            true => None,
            false => Some(Filter::new(input_rate_hz, output_rate_hz)?),
        };
        Ok(Self { input_rate_hz, output_rate_hz, filter, pushed: 0, given: 0 })
    }

    /// Takes samples of the input rate, any number. -> the output samples that are final
    pub fn push(&mut self, samples: &[f32]) -> Result<Vec<f32>> {
        self.pushed += samples.len() as u64;
        let output = match &mut self.filter {
            None => samples.to_vec(),
            Some(filter) => {
                let mut output = Vec::new();
                filter.waiting.extend_from_slice(samples);
                let mut rest = std::mem::take(&mut filter.waiting);
                let whole = rest.len() - rest.len() % BLOCK;
                for block in rest[..whole].chunks_exact(BLOCK) {
                    filter.filter(block, &mut output)?;
                }
                rest.drain(..whole);
                filter.waiting = rest;
                output
            }
        };
        self.given += output.len() as u64;
        Ok(output)
    }

    /// Ends the sound. -> the rest of the output, which makes it [`output_len`] samples in all
    pub fn finish(&mut self) -> Result<Vec<f32>> {
        let mut output = Vec::new();
        let owed = output_len(self.pushed, self.input_rate_hz, self.output_rate_hz) - self.given;
        if let Some(filter) = &mut self.filter {
            let mut rest = std::mem::take(&mut filter.waiting);
            while (output.len() as u64) < owed {
                filter.filter(&rest, &mut output)?;
                rest.clear();
            }
        }
        output.truncate(owed as usize);
        self.given += owed;
        Ok(output)
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// How many samples `n` samples become: `n · output / input`, rounded, halves up.
pub fn output_len(n: u64, input_rate_hz: u32, output_rate_hz: u32) -> u64 {
    let (n, input, output) = (u128::from(n), u128::from(input_rate_hz), u128::from(output_rate_hz));
    u64::try_from((2 * n * output + input) / (2 * input.max(1))).unwrap_or(u64::MAX)
}

impl Filter {
    fn new(input_rate_hz: u32, output_rate_hz: u32) -> Result<Self> {
        let ratio = f64::from(output_rate_hz) / f64::from(input_rate_hz);
        let length = (f64::from(FILTER_LEN) * (1.0 / ratio).max(1.0)) as usize;
        let length = length.next_multiple_of(8);
        let phases = output_rate_hz / greatest_common_divisor(input_rate_hz, output_rate_hz).max(1);
        let (phases, interpolation) = match phases <= MAX_PHASES {
            true => (phases as usize, SincInterpolationType::Nearest),
            false => (PHASES_TO_MIX, SincInterpolationType::Cubic),
        };
        let parameters = SincInterpolationParameters::new(length, WINDOW)
            .f_cutoff(calculate_cutoff(FILTER_LEN as usize, WINDOW))
            .oversampling_factor(phases)
            .interpolation(interpolation);
        let refused =
            |e| Error::InvalidRequest(format!("audio of {input_rate_hz} Hz as {output_rate_hz} Hz: {e}"));
        let inner = Async::new_sinc(ratio, 1.0, &parameters, BLOCK, 1, FixedAsync::Input).map_err(refused)?;
        let block = vec![0.0; inner.output_frames_max()];
        // Output k is the sound at input position (k + 1) / ratio + 1 / phases − length / 2.
        let delay = (length as f64 / 2.0 - 1.0 / phases as f64) * ratio;
        let late = (delay.round() as usize).saturating_sub(1);
        Ok(Self { inner, waiting: Vec::with_capacity(BLOCK), late, block })
    }

    /// Filters `samples`, at most a block of them; what is missing is silence.
    fn filter(&mut self, samples: &[f32], output: &mut Vec<f32>) -> Result<()> {
        let fault = |e: &dyn std::fmt::Display| Error::Internal(format!("the resampler: {e}"));
        let input = SequentialSlice::new(samples, 1, samples.len()).map_err(|e| fault(&e))?;
        let room = self.block.len();
        let mut buffer = SequentialSlice::new_mut(&mut self.block, 1, room).map_err(|e| fault(&e))?;
        let partial = Indexing::new().partial_len(samples.len());
        let (_, made) =
            self.inner.process_into_buffer(&input, &mut buffer, Some(&partial)).map_err(|e| fault(&e))?;
        let dropped = self.late.min(made);
        self.late -= dropped;
        output.extend_from_slice(&self.block[dropped..made]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::f64::consts::TAU;

    const VOICE_HZ: u32 = 22_050;
    const OUTPUTS_HZ: [u32; 7] = [8_000, 16_000, 22_050, 22_051, 24_000, 44_100, 48_000];

    fn sine(frequency_hz: f64, rate_hz: u32, n: usize) -> Vec<f32> {
        (0..n).map(|i| (0.5 * (TAU * frequency_hz * i as f64 / f64::from(rate_hz)).sin()) as f32).collect()
    }

    /// What `samples` become at `output_hz` when they are pushed `portion` at a time.
    fn resampled(samples: &[f32], output_hz: u32, portion: usize) -> Vec<f32> {
        let mut resampler = Resampler::new(VOICE_HZ, output_hz).unwrap();
        let mut output: Vec<f32> =
            samples.chunks(portion).flat_map(|samples| resampler.push(samples).unwrap()).collect();
        output.extend(resampler.finish().unwrap());
        output
    }

    fn decibels(value: f64, of: f64) -> f64 {
        20.0 * (value / of).log10()
    }

    fn rms(samples: impl Iterator<Item = f64> + Clone) -> f64 {
        let n = samples.clone().count() as f64;
        (samples.map(|sample| sample * sample).sum::<f64>() / n).sqrt()
    }

    /// The middle of `samples`, where the ends do not reach.
    fn middle(samples: &[f32]) -> impl Iterator<Item = (usize, f64)> + Clone {
        let margin = samples.len() / 10;
        samples
            .iter()
            .enumerate()
            .skip(margin)
            .take(samples.len() - 2 * margin)
            .map(|(i, &s)| (i, f64::from(s)))
    }

    /// A sine must come out with its level and its frequency, not late, and with nothing beside it.
    fn check_sine(frequency_hz: f64, output_hz: u32) {
        let output = resampled(&sine(frequency_hz, VOICE_HZ, VOICE_HZ as usize), output_hz, 1000);
        let turn = TAU * frequency_hz / f64::from(output_hz);
        // Least squares over a span that need not hold whole periods.
        let (mut ss, mut sc, mut cc, mut ys, mut yc) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (i, sample) in middle(&output) {
            let (sin, cos) = (turn * i as f64).sin_cos();
            ss += sin * sin;
            sc += sin * cos;
            cc += cos * cos;
            ys += sample * sin;
            yc += sample * cos;
        }
        let determinant = ss * cc - sc * sc;
        let (a, b) = ((ys * cc - yc * sc) / determinant, (yc * ss - ys * sc) / determinant);
        let level = decibels(a.hypot(b), 0.5);
        let rest = middle(&output).map(|(i, sample)| {
            let (sin, cos) = (turn * i as f64).sin_cos();
            sample - a * sin - b * cos
        });
        let beside = decibels(rms(rest) * 2.0_f64.sqrt(), 0.5);
        let late = -b.atan2(a) / turn;
        println!(
            "{frequency_hz} Hz at {output_hz} Hz: {level:+.4} dB, beside it {beside:.1} dB, late by {late:.3}"
        );
        assert!(level.abs() <= 0.01, "{frequency_hz} Hz at {output_hz} Hz is off by {level} dB");
        assert!(beside <= -90.0, "beside {frequency_hz} Hz at {output_hz} Hz: {beside} dB");
        assert!(late.abs() <= 0.51, "{frequency_hz} Hz at {output_hz} Hz is late by {late} samples");
    }

    #[test]
    fn a_sine_keeps_frequency_level_and_place() {
        for output_hz in OUTPUTS_HZ {
            let lower = f64::from(output_hz.min(VOICE_HZ));
            for frequency_hz in [100.0, 1000.0, 0.43 * lower] {
                check_sine(frequency_hz, output_hz);
            }
        }
    }

    #[test]
    fn what_a_lower_rate_cannot_hold_is_silenced() {
        for (output_hz, frequencies_hz) in
            [(8_000, [4_000.0, 4_500.0, 7_900.0, 11_000.0]), (16_000, [8_000.0, 8_500.0, 9_500.0, 11_000.0])]
        {
            for frequency_hz in frequencies_hz {
                let output = resampled(&sine(frequency_hz, VOICE_HZ, VOICE_HZ as usize), output_hz, 1000);
                let alias = decibels(rms(middle(&output).map(|(_, sample)| sample)) * 2.0_f64.sqrt(), 0.5);
                println!("{frequency_hz} Hz at {output_hz} Hz: {alias:.1} dB");
                assert!(alias <= -80.0, "{frequency_hz} Hz at {output_hz} Hz is at {alias} dB");
            }
        }
    }

    #[test]
    fn the_length_is_exact() {
        for output_hz in OUTPUTS_HZ {
            for n in [0, 1, 2, 63, 64, 65, 1000, 5555] {
                let expected = (n as f64 * f64::from(output_hz) / f64::from(VOICE_HZ)).round() as usize;
                assert_eq!(resampled(&vec![0.1; n], output_hz, 100).len(), expected, "{n} at {output_hz} Hz");
            }
        }
    }

    #[test]
    fn portions_of_any_size_give_identical_samples() {
        let samples = sine(440.0, VOICE_HZ, 5_000);
        for output_hz in OUTPUTS_HZ {
            let whole = resampled(&samples, output_hz, samples.len());
            for portion in [1, 7, 256] {
                assert!(resampled(&samples, output_hz, portion) == whole, "{portion} at {output_hz} Hz");
            }
        }
    }

    #[test]
    fn samples_pass_untouched_where_the_rates_are_equal() {
        let samples = [0.1, -2.0, f32::MIN_POSITIVE];
        let mut resampler = Resampler::new(16_000, 16_000).unwrap();
        assert_eq!(resampler.push(&samples).unwrap(), samples);
        assert!(resampler.finish().unwrap().is_empty());
    }
}
