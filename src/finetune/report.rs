//! What a run has noted in, an account of it for a person and for a program out.
//!
//! Never says more than was measured.

use std::fmt;

use serde::Serialize;

use super::memory::BytesPerParameter;

/// The account of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub precision: String,
    pub device: String,
    pub ended: Ended,
    pub clips: usize,
    pub validation_clips: usize,
    pub left_out: usize,
    /// Steps that moved the weights, and those that were skipped because something was not finite.
    pub steps: u64,
    pub skipped: u64,
    /// Of the first and the last step, something dropped out.
    pub first_loss: Option<f32>,
    pub last_loss: Option<f32>,
    /// Of the validation clips before the first step and after the last one, nothing dropped out.
    pub first_validation: Option<f32>,
    pub last_validation: Option<f32>,
    pub best_validation: Option<f32>,
    /// The step whose weights the voice has.
    pub exported_step: u64,
    /// The mean of the steps of this process, 0 where it took none.
    pub seconds_per_step: f64,
    pub wall_seconds: f64,
    /// 0 where the system does not say.
    pub peak_rss_bytes: u64,
    pub trained_parameters: usize,
    pub bytes_per_parameter: BytesPerParameter,
    pub checkpoint_bytes: u64,
}

/// Why a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    MaxSteps,
    Patience,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |loss: Option<f32>| loss.map_or_else(|| "-".to_owned(), |loss| format!("{loss:.4}"));
        let Self { precision, device, clips, validation_clips, left_out, steps, skipped, .. } = self;
        let why = match self.ended {
            Ended::MaxSteps => "all its steps are taken",
            Ended::Patience => "validation had not improved for as long as --patience says",
        };
        writeln!(f, "{precision} on {device}: {steps} steps, {skipped} skipped; ended because {why}")?;
        writeln!(f, "clips      {clips} to learn, {validation_clips} to validate, {left_out} left out")?;
        writeln!(f, "loss       {} -> {}", value(self.first_loss), value(self.last_loss))?;
        let [first, last, best] =
            [self.first_validation, self.last_validation, self.best_validation].map(value);
        writeln!(f, "validation {first} -> {last}, best {best}; the voice has step {}", self.exported_step)?;
        if self.exported_step == 0 {
            writeln!(
                f,
                "           nothing was better than the voice it began with: its weights are as they were"
            )?;
        }
        writeln!(f, "time       {:.3} s a step, {:.1} s in all", self.seconds_per_step, self.wall_seconds)?;
        let BytesPerParameter { weights, gradients, residual, states, average } = self.bytes_per_parameter;
        let all = weights + gradients + residual + states + average;
        writeln!(
            f,
            "memory     peak {:.0} MB; {} trained parameters of {all:.3} bytes: weights {weights:.3}, gradients \
             {gradients:.3}, residual {residual:.3}, states {states:.3}, average {average:.3}",
            self.peak_rss_bytes as f64 / 1e6,
            self.trained_parameters
        )?;
        writeln!(f, "checkpoint {:.1} MB", self.checkpoint_bytes as f64 / 1e6)
    }
}

/// The most memory that this process had, bytes; 0 where the system does not say.
#[cfg(unix)]
pub fn peak_rss_bytes() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure it is given; zeros are valid in every field.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    // macOS counts bytes, others kilobytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    u64::try_from(usage.ru_maxrss).unwrap_or(0) * unit
}

#[cfg(not(unix))]
pub fn peak_rss_bytes() -> u64 {
    0
}
