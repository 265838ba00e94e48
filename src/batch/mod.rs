//! JSONL files in, a file for every line and `manifest.jsonl` in their order out.
//!
//! A first pass reads every line and holds their output paths against each other; a second one speaks them, as many at
//! once as `--jobs` says, the longest of a window first. What a line yields depends on the line, the settings and the
//! voice alone, so an earlier run's work is kept where these are the same. Never holds more than a window of lines,
//! and never leaves a line without a record.

mod input;
mod ledger;
mod line;
mod merge;
mod output;
mod record;
mod remote;
mod run;
mod settings;
mod source;
mod speak;
mod summary;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use input::{Input, Line};
use ledger::Ledger;
use line::{Job, MAX_LINE_BYTES, Refusal, parse};
use output::{Claims, WORK_PREFIX, output_path};
use run::Run;
use source::source;
use speak::Place;
use summary::{Progress, Totals};

use crate::cli::{Batch, Shard};
use crate::error::{Error, Result};
use crate::signals::interruption;

/// Speaks or joins as `args` say.
///
/// # Errors
/// [`Error::InvalidRequest`] when a line failed; everything else has been written then.
pub fn batch(args: &Batch) -> Result<()> {
    if args.merge {
        return merge::merge(&args.inputs, &args.out)?.conclude(args.quiet);
    }
    for path in args.inputs.iter().filter(|path| *path != Path::new("-")) {
        path.metadata().map_err(|error| Error::io(path, error))?;
    }
    std::fs::create_dir_all(&args.out).map_err(|error| Error::io(&args.out, error))?;
    let out = args.out.canonicalize().map_err(|error| Error::io(&args.out, error))?;
    let work = out.join(format!("{WORK_PREFIX}{}", suffix(args.shard)));
    let lock = take(&work)?;
    let journal = work.join("journal.jsonl");
    let (run, input) = begin(args, out, &work).inspect_err(|_| {
        // Nothing has begun; what cannot be taken away is in nobody's way.
        if journal.metadata().map_or(true, |journal| journal.len() == 0) {
            let _ = std::fs::remove_dir_all(&work);
        }
    })?;
    run.speak_all(&input)?;
    let Run { ledger, progress, .. } = run;
    ledger.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
    drop(lock);
    std::fs::remove_dir_all(&work).map_err(|error| Error::io(&work, error))?;
    progress.finish().conclude(args.quiet)
}

/// Reads what is asked for, and loads what is needed for it.
fn begin<'a>(args: &'a Batch, out: PathBuf, work: &Path) -> Result<(Run<'a>, Input)> {
    let stopped = interruption()?;
    let input = Input::open(&args.inputs, &work.join("stdin.jsonl"))?;
    let survey = survey(&input, args, work)?;
    let manifest = out.join(format!("manifest{}.jsonl", suffix(args.shard)));
    let step = args.shard.map_or(1, |shard| shard.count);
    let ledger = Ledger::open(&manifest, &work.join("journal.jsonl"), step)?;
    let (source, defaults) = source(args, &stopped)?;
    let run = Run {
        place: Place { out, work: work.to_path_buf() },
        source,
        defaults,
        args,
        ledger: Mutex::new(ledger),
        progress: Progress::new(survey),
        stopped,
        fault: Mutex::new(None),
    };
    Ok((run, input))
}

/// What the names of a shard's own files end in.
fn suffix(shard: Option<Shard>) -> String {
    shard.map_or_else(String::new, |Shard { index, count }| format!("-{index}-of-{count}"))
}

/// Makes `work` ours, and takes away what a killed run has left unfinished there.
fn take(work: &Path) -> Result<File> {
    let fault = |error| Error::io(work, error);
    std::fs::create_dir_all(work).map_err(fault)?;
    let lock = File::create(work.join("lock")).map_err(fault)?;
    if lock.try_lock().is_err() {
        let reason = format!("another run writes to {}", work.parent().unwrap_or(work).display());
        return Err(Error::Unavailable(reason));
    }
    for entry in std::fs::read_dir(work).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if !path.ends_with("lock") && !path.ends_with("journal.jsonl") {
            std::fs::remove_file(&path).map_err(|error| Error::io(&path, error))?;
        }
    }
    Ok(lock)
}

/// Reads every line once. -> the bytes of those that are this run's
///
/// # Errors
/// [`Error::InvalidRequest`] when two lines claim one path.
fn survey(input: &Input, args: &Batch, work: &Path) -> Result<u64> {
    std::fs::write(work.join("case"), b"").map_err(|error| Error::io(work, error))?;
    let mut claims = Claims::new(work.join("CASE").exists());
    let mut bytes = 0;
    for line in input.lines() {
        let line = line?;
        if args.shard.is_none_or(|shard| shard.takes(line.number)) {
            bytes += line.length;
        }
        let Ok((_, path)) = read(&line, args) else { continue };
        claims.claim(&path, line.number).map_err(|other| {
            let number = line.number;
            Error::InvalidRequest(format!(
                "lines {other} and {number} ({}) both claim the output `{}`: nothing was spoken",
                line.source,
                crate::error::Excerpt(&path)
            ))
        })?;
    }
    Ok(bytes)
}

/// What `line` asks for, and where it goes; or why not, and what it is called.
fn read(line: &Line, args: &Batch) -> Result<(Job, String), (Refusal, Option<String>)> {
    let Some(bytes) = &line.bytes else {
        let reason = format!("the line has {} bytes, the limit is {MAX_LINE_BYTES}", line.length);
        return Err((Refusal::new("line_too_long", reason), None));
    };
    let job = parse(bytes, args.allow_unknown)?;
    match output_path(&job, job.encoding.unwrap_or(args.encoding), line.number) {
        Ok(path) => Ok((job, path)),
        Err(refusal) => Err((refusal, job.id)),
    }
}

impl Totals {
    /// Tells a person what has become of the run.
    fn conclude(self, quiet: bool) -> Result<()> {
        use std::io::Write;
        if !quiet || self.failed() > 0 {
            // Nobody to tell must not change the status.
            let _ = write!(std::io::stderr(), "{self}");
        }
        match self.failed() {
            0 => Ok(()),
            failed => Err(Error::InvalidRequest(format!(
                "{failed} of {} lines failed: the manifest says why",
                self.lines()
            ))),
        }
    }
}
