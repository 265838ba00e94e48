//! One resolved job in, its file under its final name and what is known of it out.
//!
//! Never leaves half a file under a final name, and never writes outside the output directory.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::NamedTempFile;

use super::line::Refusal;
use super::record::{MarkRecord, SpanRecord, Spoken};
use super::settings::{Resolved, file_hash};
use crate::assembly::{Account, Assembly, Span};
use crate::codec::{AudioFormat, Encoding, wav_header};
use crate::error::{Error, Result};

/// Why a line has no audio.
pub enum Trouble {
    /// This line cannot be spoken; others can.
    Line(Refusal),
    /// Nothing can go on.
    Run(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidRequest(message) => Self::Line(Refusal::new("invalid_request", message)),
            Error::Internal(_) => Self::Line(Refusal::new("internal", error.to_string())),
            other => Self::Run(other),
        }
    }
}

/// Where the files of a run go.
#[derive(Debug, Clone)]
pub struct Place {
    /// Canonical.
    pub out: PathBuf,
    /// Unfinished files, on the same disk.
    pub work: PathBuf,
}

/// Speaks `job` into its file, unless `stopped` is set meanwhile.
pub fn speak(job: &Resolved, place: &Place, stopped: &AtomicBool) -> Result<Spoken, Trouble> {
    let path = ready_for(&job.output, place)?;
    let synthesizer = &job.voice.synthesizer;
    let passage = synthesizer.passage(&job.script, &job.reading)?;
    let mut notices = passage.notices.clone();
    notices.extend(job.reading.lexicon.as_deref().map(|lexicon| lexicon.notices()).unwrap_or_default());
    let mut assembly = Assembly::new(synthesizer.sample_rate_hz(), job.format, job.silences)?;
    let segments = assembly.lay_out(passage);
    let stream = synthesizer.speak(segments, job.stream.clone())?;

    let mut output = Output::create(path, place)?;
    for chunk in stream {
        if stopped.load(Ordering::Relaxed) {
            return Err(Trouble::Run(interrupted()));
        }
        output.write(&assembly.take(chunk?)?)?;
    }
    let (bytes, account) = assembly.finish()?;
    output.write(&bytes)?;
    let written = output.finish(job.format, account.samples)?;
    let how = Manner { voice: job.voice.name.clone(), seed: job.stream.seed, key: job.key.clone() };
    Ok(spoken(how, job.format.sample_rate_hz, account, notices, written))
}

/// A file in the making.
pub(super) struct Output {
    path: PathBuf,
    unfinished: NamedTempFile,
    writer: BufWriter<File>,
}

/// What is known of a finished file.
pub(super) struct Written {
    bytes: u64,
    sha256: String,
}

impl Output {
    pub(super) fn create(path: PathBuf, place: &Place) -> Result<Self> {
        let disk = |error| Error::io(&path, error);
        let unfinished = NamedTempFile::new_in(&place.work).map_err(disk)?;
        let writer = BufWriter::new(unfinished.reopen().map_err(disk)?);
        Ok(Self { path, unfinished, writer })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).map_err(|error| Error::io(&self.path, error))
    }

    /// Gives the file its name, once it holds `samples` in `format`.
    pub(super) fn finish(self, format: AudioFormat, samples: u64) -> Result<Written> {
        let Self { path, unfinished, writer } = self;
        let disk = |error| Error::io(&path, error);
        let mut file = writer.into_inner().map_err(|error| disk(error.into_error()))?;
        if format.encoding == Encoding::WavS16 {
            // Only now is the length known that the header tells.
            let header = wav_header(format.sample_rate_hz, Some(samples))?;
            file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&header)).map_err(disk)?;
        }
        let bytes = file.metadata().map_err(disk)?.len();
        let sha256 = file_hash(unfinished.path())?;
        readable_by_others(&file).map_err(disk)?;
        unfinished.persist(&path).map_err(|error| disk(error.error))?;
        Ok(Written { bytes, sha256 })
    }
}

/// Who has spoken, from which seed, and the hash of all that was decided.
pub(super) struct Manner {
    pub voice: String,
    pub seed: u64,
    pub key: String,
}

pub fn interrupted() -> Error {
    Error::io("the batch", std::io::ErrorKind::Interrupted.into())
}

/// The path of `output`, whose directory is there and lies within the output directory.
pub(super) fn ready_for(output: &str, place: &Place) -> Result<PathBuf, Trouble> {
    use std::io::ErrorKind;
    let refuse =
        |why: String| Trouble::Line(Refusal::new("bad_output", format!("the output `{output}` {why}")));
    let path = place.out.join(output);
    let directory = path.parent().unwrap_or(&place.out);
    let mut existing = directory;
    while !existing.exists() {
        let Some(parent) = existing.parent() else { break };
        existing = parent;
    }
    let inside = |path: &Path| path.canonicalize().is_ok_and(|path| path.starts_with(&place.out));
    if !inside(existing) {
        return Err(refuse("leaves --out through a link".to_owned()));
    }
    std::fs::create_dir_all(directory).map_err(|error| match error.kind() {
        ErrorKind::NotADirectory
        | ErrorKind::AlreadyExists
        | ErrorKind::InvalidFilename
        | ErrorKind::InvalidInput => refuse(format!("cannot be in that directory: {error}")),
        _ => Trouble::Run(Error::io(directory, error)),
    })?;
    if path.is_dir() {
        return Err(refuse("is a directory".to_owned()));
    }
    Ok(path)
}

#[cfg(unix)]
fn readable_by_others(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_others(_: &File) -> std::io::Result<()> {
    Ok(())
}

pub(super) fn spoken(
    Manner { voice, seed, key }: Manner,
    sample_rate_hz: u32,
    account: Account,
    notices: Vec<String>,
    Written { bytes, sha256 }: Written,
) -> Spoken {
    let Account { samples, steps, capped, unmapped, clipped_samples, sentences, marks, .. } = account;
    let texts: Vec<&str> = sentences.iter().map(|span| span.text.as_str()).collect();
    let processed_text = texts.join("\n");
    let span =
        |Span { text, first_sample, samples, capped }| SpanRecord { text, first_sample, samples, capped };
    Spoken {
        voice,
        seed,
        sample_rate_hz,
        samples,
        // Whole microseconds: of a longer fraction the last digit changes when it is read and written again.
        seconds: (samples as f64 * 1e6 / f64::from(sample_rate_hz)).round() / 1e6,
        steps,
        processed_text,
        spans: sentences.into_iter().map(span).collect(),
        marks: marks.into_iter().map(|(name, sample)| MarkRecord { name, sample }).collect(),
        capped,
        unmapped,
        clipped_samples,
        notices,
        bytes,
        sha256,
        key,
    }
}
