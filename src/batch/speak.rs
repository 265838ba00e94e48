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
use crate::codec::{Encoding, wav_header};
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

    let disk = |error| Error::io(&path, error);
    let unfinished = NamedTempFile::new_in(&place.work).map_err(disk)?;
    let mut writer = BufWriter::new(unfinished.reopen().map_err(disk)?);
    for chunk in stream {
        if stopped.load(Ordering::Relaxed) {
            return Err(Trouble::Run(interrupted()));
        }
        let bytes = assembly.take(chunk?)?;
        writer.write_all(&bytes).map_err(disk)?;
    }
    let (bytes, account) = assembly.finish()?;
    writer.write_all(&bytes).map_err(disk)?;
    let mut file = writer.into_inner().map_err(|error| disk(error.into_error()))?;
    if job.format.encoding == Encoding::WavS16 {
        // Only now is the length known that the header tells.
        let header = wav_header(job.format.sample_rate_hz, Some(account.samples))?;
        file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&header)).map_err(disk)?;
    }
    let size = file.metadata().map_err(disk)?.len();
    let sha256 = file_hash(unfinished.path())?;
    readable_by_others(&file).map_err(disk)?;
    unfinished.persist(&path).map_err(|error| disk(error.error))?;
    Ok(spoken(job, account, notices, size, sha256))
}

pub fn interrupted() -> Error {
    Error::io("the batch", std::io::ErrorKind::Interrupted.into())
}

/// The path of `output`, whose directory is there and lies within the output directory.
fn ready_for(output: &str, place: &Place) -> Result<PathBuf, Trouble> {
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

fn spoken(job: &Resolved, account: Account, notices: Vec<String>, bytes: u64, sha256: String) -> Spoken {
    let Account { samples, steps, capped, unmapped, clipped_samples, sentences, marks, .. } = account;
    let texts: Vec<&str> = sentences.iter().map(|span| span.text.as_str()).collect();
    let processed_text = texts.join("\n");
    let span =
        |Span { text, first_sample, samples, capped }| SpanRecord { text, first_sample, samples, capped };
    Spoken {
        voice: job.voice.name.clone(),
        seed: job.stream.seed,
        sample_rate_hz: job.format.sample_rate_hz,
        samples,
        seconds: samples as f64 / f64::from(job.format.sample_rate_hz),
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
        key: job.key.clone(),
    }
}
