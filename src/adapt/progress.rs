//! Steps in, one line that follows them out.
//!
//! On a terminal the line is redrawn; elsewhere a line is written for every twentieth of the run. Never buffers a step.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::finetune::run::Told;

/// Lines of a run that nobody watches.
const LINES: u64 = 20;
/// How much of the mean time of a step the last one is.
const SHARE: f64 = 0.1;

/// The progress of a run.
pub struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    validation: Option<f32>,
    /// The moving mean of a step's time.
    seconds: Option<f64>,
}

impl Progress {
    pub fn new(max_steps: u64, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}");
            ProgressBar::new(max_steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar, quiet, validation: None, seconds: None }
    }

    pub fn tell(&mut self, told: &Told) {
        self.validation = told.validation.or(self.validation);
        let seconds = self.seconds.map_or(told.seconds, |mean| mean + SHARE * (told.seconds - mean));
        self.seconds = Some(seconds);
        let line = line(told, self.validation, seconds);
        if let Some(bar) = &self.bar {
            bar.set_position(told.taken);
            bar.set_message(line);
        } else if !self.quiet && told.taken.is_multiple_of(told.max_steps.div_ceil(LINES).max(1)) {
            // Nobody to tell must not end a run.
            let _ = writeln!(std::io::stderr(), "{}/{} {line}", told.taken, told.max_steps);
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(told: &Told, validation: Option<f32>, seconds: f64) -> String {
    let left = Duration::from_secs_f64((seconds * (told.max_steps - told.taken) as f64).clamp(0.0, 1e9));
    let validation = validation.map(|loss| format!(", validation {loss:.4}")).unwrap_or_default();
    format!(
        "loss {:.4}{validation}, lr {:.2e}, {seconds:.2} s/step, {} left",
        told.loss,
        told.learning_rate,
        indicatif::HumanDuration(left)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_a_person_looks_for() {
        let told = Told {
            taken: 10,
            max_steps: 70,
            loss: 0.51239,
            learning_rate: 1e-4,
            seconds: 2.0,
            validation: None,
        };
        assert_eq!(
            line(&told, Some(0.75), 2.0),
            "loss 0.5124, validation 0.7500, lr 1.00e-4, 2.00 s/step, 2 minutes left"
        );
    }
}
