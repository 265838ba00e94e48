//! Samples at one rate in, the same sound at another rate out, as it comes.
//!
//! A windowed sinc, rubato's. What comes out depends on all that was pushed and not on how it was cut, is not
//! delayed, and is as long as the input to within half a sample. Never touches a sample where the rates are equal.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{
    Async, FixedAsync, Indexing, Resampler as _, SincInterpolationParameters, WindowFunction,
    calculate_cutoff,
};

use crate::error::{Error, Result};

/// Length of the filter in samples of the lower of the two rates.
const FILTER_LEN: u32 = 128;
/// Falls below −92 dB outside the pass band, which is less than a 16-bit step.
const WINDOW: WindowFunction = WindowFunction::BlackmanHarris;
/// Input samples that are filtered together: fixed, so that the cuts of the pushes do not show.
const BLOCK: usize = 64;

/// One channel of sound on its way from one sample rate to another.
///
/// The pass band is flat to 87 % of half the lower rate. About [`FILTER_LEN`]` / 2` samples of the lower rate
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

/// How many samples `n` samples become: `n · output / input`, rounded, halves up.
pub fn output_len(n: u64, input_rate_hz: u32, output_rate_hz: u32) -> u64 {
    let (n, input, output) = (u128::from(n), u128::from(input_rate_hz), u128::from(output_rate_hz));
    u64::try_from((2 * n * output + input) / (2 * input.max(1))).unwrap_or(u64::MAX)
}

impl Filter {
    fn new(input_rate_hz: u32, output_rate_hz: u32) -> Result<Self> {
        let ratio = f64::from(output_rate_hz) / f64::from(input_rate_hz);
        let length = (f64::from(FILTER_LEN) * (1.0 / ratio).max(1.0)) as usize;
        let parameters = SincInterpolationParameters::new(length, WINDOW)
            .f_cutoff(calculate_cutoff(FILTER_LEN as usize, WINDOW));
        let refused =
            |e| Error::InvalidRequest(format!("audio of {input_rate_hz} Hz as {output_rate_hz} Hz: {e}"));
        let inner = Async::new_sinc(ratio, 1.0, &parameters, BLOCK, 1, FixedAsync::Input).map_err(refused)?;
        let block = vec![0.0; inner.output_frames_max()];
        let late = inner.output_delay();
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
