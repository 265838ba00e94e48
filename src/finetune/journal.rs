//! One row a step in, a CSV of the run out.
//!
//! A run that goes on after a kill has steps behind it that its checkpoint does not know: their rows are cut, and the
//! file reads as if it had never stopped. Never keeps two rows of one step.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::atomic_file;
use crate::error::{Error, Result};

const HEADER: &str = "tried,taken,total,before_postnet,after_postnet,stop,guided_attention,validation,learning_rate,\
                      gradient_norm,loss_scale,seconds,skipped";

/// What is written of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// Steps that were tried, this one among them.
    pub tried: u64,
    /// Steps that moved the weights, by now.
    pub taken: u64,
    pub total: f32,
    pub before_postnet: f32,
    pub after_postnet: f32,
    pub stop: f32,
    pub guided_attention: f32,
    /// The loss of the validation clips, where they were heard at this step.
    pub validation: Option<f32>,
    pub learning_rate: f32,
    pub gradient_norm: f32,
    pub loss_scale: f32,
    pub seconds: f64,
    /// The first tensor that was not finite.
    pub skipped: Option<String>,
}

/// The CSV of a run.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal at `path` for a run that goes on after `tried` steps, 0 for one that begins.
    ///
    /// # Errors
    /// [`Error::Io`] when the disk refuses, [`Error::InvalidRequest`] when the file is no journal of ours.
    pub fn open(path: &Path, tried: u64) -> Result<Self> {
        let refused = |e| Error::io(path, e);
        let before = match std::fs::read_to_string(path) {
            Ok(text) if tried > 0 => kept(&text, tried).ok_or_else(|| {
                Error::InvalidRequest(format!(
                    "{} is no journal of a fine-tune: move it away",
                    path.display()
                ))
            })?,
            Err(e) if tried > 0 && e.kind() != std::io::ErrorKind::NotFound => return Err(refused(e)),
            _ => format!("{HEADER}\n"),
        };
        atomic_file::write(path, before.as_bytes())?;
        let file = OpenOptions::new().append(true).open(path).map_err(refused)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// # Errors
    /// [`Error::Io`] when the disk refuses.
    pub fn write(&mut self, row: &Row) -> Result<()> {
        let validation = row.validation.map(|loss| loss.to_string()).unwrap_or_default();
        // Names of tensors hold neither commas nor quotes.
        let skipped = row.skipped.as_deref().unwrap_or_default();
        let losses = [row.total, row.before_postnet, row.after_postnet, row.stop, row.guided_attention];
        let losses = losses.map(|loss| loss.to_string()).join(",");
        let Row { tried, taken, learning_rate, gradient_norm, loss_scale, seconds, .. } = row;
        let line = format!(
            "{tried},{taken},{losses},{validation},{learning_rate},{gradient_norm},{loss_scale},{seconds:.4},{skipped}\n"
        );
        self.file.write_all(line.as_bytes()).map_err(|e| Error::io(&self.path, e))
    }
}

/// The header and the whole rows of steps up to `tried`.
fn kept(text: &str, tried: u64) -> Option<String> {
    let mut lines = text.split_inclusive('\n');
    let header = lines.next().filter(|line| line.trim_end() == HEADER)?;
    let rows = lines.take_while(|line| {
        let step = line.split(',').next().and_then(|step| step.parse::<u64>().ok());
        line.ends_with('\n') && step.is_some_and(|step| step <= tried)
    });
    Some(std::iter::once(header).chain(rows).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tried: u64) -> Row {
        Row { tried, taken: tried, total: 1.5, learning_rate: 1e-4, ..Row::default() }
    }

    fn steps(path: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with(HEADER));
        text.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_run_that_goes_on_cuts_the_steps_that_its_checkpoint_does_not_know() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("losses.csv");
        let mut journal = Journal::open(&path, 0).unwrap();
        (1..=5).for_each(|step| journal.write(&row(step)).unwrap());
        // A kill in the middle of a line.
        journal.file.write_all(b"6,6,0.").unwrap();
        let mut journal = Journal::open(&path, 3).unwrap();
        journal.write(&row(4)).unwrap();
        assert_eq!(steps(&path), ["1", "2", "3", "4"]);
        Journal::open(&path, 0).unwrap();
        assert!(steps(&path).is_empty(), "a new run has a new journal");
    }

    #[test]
    fn every_row_has_as_many_fields_as_the_header() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("losses.csv");
        let mut journal = Journal::open(&path, 9).unwrap();
        journal
            .write(&Row { validation: Some(0.25), skipped: Some("a.weight".to_owned()), ..row(10) })
            .unwrap();
        journal.write(&Row { total: f32::NAN, ..row(11) }).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let fields: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(fields, [13, 13, 13]);
        assert!(text.contains(",0.25,") && text.contains(",a.weight\n") && text.contains("NaN"));
    }

    #[test]
    fn another_file_is_not_overwritten_by_a_run_that_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("losses.csv");
        std::fs::write(&path, "id|text\n").unwrap();
        assert!(Journal::open(&path, 3).unwrap_err().to_string().contains("no journal of a fine-tune"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "id|text\n");
    }
}
