//! Records in, what a person wants to know of a run out: a bar while it lasts, totals at its end.
//!
//! Never draws where nobody looks.

use std::collections::BTreeMap;
use std::fmt;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::record::{Record, Status};

/// What has become of the lines of a run.
#[derive(Debug, Default, Clone)]
pub struct Totals {
    spoken: u64,
    kept: u64,
    skipped: u64,
    failures: BTreeMap<String, u64>,
    /// The line of the first failure, and the sentence that tells of it.
    first_failure: Option<(u64, String)>,
    /// Lines that the run should come to.
    pub expected: u64,
    /// Seconds of audio, and of those how many are from now.
    audio_s: f64,
    new_audio_s: f64,
    pub wall: Duration,
}

impl Totals {
    pub fn note(&mut self, record: &Record, is_kept: bool) {
        let seconds = record.spoken.as_ref().map_or(0.0, |spoken| spoken.seconds);
        self.audio_s += seconds;
        if record.status == Status::Failed
            && self.first_failure.as_ref().is_none_or(|(line, _)| record.line < *line)
        {
            let why = record.error.as_ref();
            let why = why.map_or_else(String::new, |why| format!(": {}: {}", why.code, why.message));
            let told = format!("line {} ({}){why}", record.line, record.source);
            self.first_failure = Some((record.line, told));
        }
        match (record.status, &record.error) {
            (Status::Skipped, _) => self.skipped += 1,
            (Status::Failed, Some(error)) => *self.failures.entry(error.code.clone()).or_default() += 1,
            (Status::Failed, None) => *self.failures.entry("unknown".to_owned()).or_default() += 1,
            (Status::Ok, _) if is_kept => self.kept += 1,
            (Status::Ok, _) => {
                self.spoken += 1;
                self.new_audio_s += seconds;
            }
        }
    }

    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    pub fn first_failure(&self) -> Option<&str> {
        self.first_failure.as_ref().map(|(_, told)| told.as_str())
    }

    pub fn lines(&self) -> u64 {
        self.spoken + self.kept + self.skipped + self.failed()
    }

    fn speed(&self) -> f64 {
        self.new_audio_s / self.wall.as_secs_f64().max(1e-9)
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spoken, kept, skipped, failures, audio_s, .. } = self;
        writeln!(
            f,
            "{} lines: {spoken} spoken, {kept} kept from before, {} failed, {skipped} blank; {:.3} hours of audio",
            self.lines(),
            self.failed(),
            audio_s / 3600.0
        )?;
        if self.new_audio_s > 0.0 && !self.wall.is_zero() {
            let factor = 1.0 / self.speed();
            writeln!(f, "real-time factor {factor:.4}: {:.1} hours of audio an hour", self.speed())?;
        }
        failures.iter().try_for_each(|(code, count)| writeln!(f, "failed, {code}: {count}"))
    }
}

/// A run that can be watched.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    totals: Mutex<Totals>,
}

impl Progress {
    /// A run over `lines` of `bytes` together.
    pub fn new(bytes: u64, lines: u64) -> Self {
        let bar = if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:32} {percent}%, {msg}, {eta} left");
            ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        } else {
            ProgressBar::hidden()
        };
        let totals = Totals { expected: lines, ..Totals::default() };
        Self { bar, began: Instant::now(), totals: Mutex::new(totals) }
    }

    pub fn noted(&self, record: &Record, length: u64) {
        self.note(record, length, false);
    }

    pub fn kept(&self, record: &Record, length: u64) {
        self.note(record, length, true);
    }

    fn note(&self, record: &Record, length: u64, is_kept: bool) {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.note(record, is_kept);
        totals.wall = self.began.elapsed();
        if !self.bar.is_hidden() {
            self.bar.set_message(format!("{:.1} audio-hours/hour", totals.speed()));
        }
        self.bar.inc(length);
    }

    pub fn finish(self) -> Totals {
        self.bar.finish_and_clear();
        let mut totals = self.totals.into_inner().unwrap_or_else(PoisonError::into_inner);
        totals.wall = self.began.elapsed();
        totals
    }
}
