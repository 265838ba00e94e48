//! JSONL files in, a file for every line and `manifest.jsonl` in their order out.
//!
//! A first pass reads every line and holds their output paths against each other; a second one speaks them, as many at
//! once as `--jobs` says, the longest of a window first. What a line yields depends on the line, the settings and the
//! voice alone, so an earlier run's work is kept where these are the same. Never holds more than a window of lines,
//! and never leaves a line without a record.

mod guard;
mod identity;
mod input;
mod ledger;
mod line;
mod lock;
mod merge;
mod output;
mod record;
mod remote;
mod run;
mod settings;
mod source;
mod speak;
mod summary;

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use guard::Guard;
use identity::{Identity, LinesHash};
use input::{Input, Line};
use ledger::Ledger;
use line::{Job, MAX_LINE_BYTES, Refusal, parse};
use lock::{Lock, refuse_link};
use output::{Claims, Clash, WORK_PREFIX, output_path};
use run::Run;
use source::source;
use speak::Place;
use summary::{Progress, Totals};

use crate::cli::{Batch, Shard};
use crate::error::{Error, Result};
use crate::signals::{interruption, leave_at_once};

/// How often one who waits looks whether the run was stopped.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a run that is told to end may take to do so by itself.
const GRACE: Duration = Duration::from_secs(3);

/// Speaks or joins as `args` say.
///
/// # Errors
/// [`Error::InvalidRequest`] when a line failed; everything else has been written then.
pub fn batch(args: &Batch) -> Result<()> {
    if args.merge {
        return merge::merge(&args.inputs, &args.out, args.quiet);
    }
    for path in args.inputs.iter().filter(|path| *path != Path::new("-")) {
        path.metadata().map_err(|error| Error::io(path, error))?;
    }
    let stopped = stopped_by_signals()?;
    if let Ok(out) = args.out.canonicalize() {
        let (manifest, guard) = (manifest_path(args, &out), Guard::new(args, &out)?);
        if let Some(file) = guard.at(&manifest) {
            let manifest = manifest.display();
            let reason = format!("{file} would be overwritten by the manifest of this run ({manifest})");
            return Err(Error::InvalidRequest(reason));
        }
    }
    std::fs::create_dir_all(&args.out).map_err(|error| Error::io(&args.out, error))?;
    let out = args.out.canonicalize().map_err(|error| Error::io(&args.out, error))?;
    // A shard knows only when it has read its input whom it may stand beside.
    let alone = args.shard.is_none().then(|| Lock::alone(&out)).transpose()?;
    let work = out.join(format!("{WORK_PREFIX}{}", suffix(args.shard)));
    let work_lock = take(&work)?;
    let journal = work.join("journal.jsonl");
    let begun = begin(args, out.clone(), &work, stopped);
    let (run, input, identity, beside) = begun.inspect_err(|error| {
        let has_begun_before = journal.metadata().is_ok_and(|journal| journal.len() > 0);
        if !has_begun_before {
            // What cannot be taken away is in nobody's way.
            let _ = std::fs::remove_dir_all(&work);
        }
        if matches!(error, Error::Io { .. } | Error::Unavailable(_) | Error::Overloaded { .. }) {
            let before = if has_begun_before { ", what an earlier run has done stays" } else { "" };
            let _ = writeln!(std::io::stderr(), "mezzavoce: no line was spoken{before}: run it again");
        }
    })?;
    if let Err(error) = run.speak_all(&input) {
        run.progress.finish().interrupted();
        return Err(error);
    }
    let Run { ledger, progress, .. } = run;
    if let Some(shard) = args.shard {
        identity.write(&Identity::path(&out, shard), &work)?;
    }
    ledger.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
    drop(work_lock);
    std::fs::remove_dir_all(&work).map_err(|error| Error::io(&work, error))?;
    drop((alone, beside));
    progress.finish().conclude(&manifest_path(args, &args.out), args.quiet)
}

/// A flag that a signal sets. Whatever does not look at it, such as a read from a server that says nothing, is left
/// after [`GRACE`]: what is finished lies under its name, and the next run takes up a journal as it is.
fn stopped_by_signals() -> Result<Arc<AtomicBool>> {
    let (signalled, stopped) = (interruption()?, Arc::new(AtomicBool::new(false)));
    let told = Arc::clone(&stopped);
    std::thread::spawn(move || {
        while !signalled.load(Ordering::Relaxed) {
            std::thread::sleep(GLANCE);
        }
        told.store(true, Ordering::Relaxed);
        std::thread::sleep(GRACE);
        let _ =
            writeln!(std::io::stderr(), "mezzavoce: interrupted: run it again, and it goes on from there");
        leave_at_once();
    });
    Ok(stopped)
}

/// A run that is ready to speak, what it speaks, what its shards have in common, and a shard's right to write there.
type Begun<'a> = (Run<'a>, Input, Identity, Option<Lock>);

/// Reads what is asked for, and loads what is needed for it.
fn begin<'a>(args: &'a Batch, out: PathBuf, work: &Path, stopped: Arc<AtomicBool>) -> Result<Begun<'a>> {
    let input = Input::open(&args.inputs, &work.join("stdin.jsonl"), &stopped)?;
    let Survey { bytes, own_lines, identity } = survey(&input, args, &out, work, &stopped)?;
    let beside = args.shard.map(|_| Lock::shared(&out, &identity.hash())).transpose()?;
    let step = args.shard.map_or(1, |shard| shard.count);
    let ledger = Ledger::open(&manifest_path(args, &out), &work.join("journal.jsonl"), step)?;
    let (source, defaults) = source(args, &stopped)?;
    let identity = identity.spoken_by(&defaults.versions, &defaults.voice_hashes);
    let run = Run {
        place: Place { out, work: work.to_path_buf() },
        source,
        defaults,
        args,
        ledger: Mutex::new(ledger),
        progress: Progress::new(bytes, own_lines),
        stopped,
        fault: Mutex::new(None),
    };
    Ok((run, input, identity, beside))
}

fn manifest_path(args: &Batch, out: &Path) -> PathBuf {
    out.join(format!("manifest{}.jsonl", suffix(args.shard)))
}

/// What the names of a shard's own files end in.
fn suffix(shard: Option<Shard>) -> String {
    shard.map_or_else(String::new, |Shard { index, count }| format!("-{index}-of-{count}"))
}

/// Makes `work` ours, and takes away what a killed run has left unfinished there.
fn take(work: &Path) -> Result<File> {
    let fault = |error| Error::io(work, error);
    refuse_link(work)?;
    std::fs::create_dir_all(work).map_err(fault)?;
    let (path, kept) = (work.join("lock"), ["lock", "journal.jsonl"]);
    kept.iter().try_for_each(|name| refuse_link(&work.join(name)))?;
    let lock = File::create(&path).map_err(fault)?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            let out = work.parent().unwrap_or(work).display();
            Error::Unavailable(format!("another run, or a shard of one, writes to {out}"))
        }
        TryLockError::Error(error) => Error::io(&path, error),
    })?;
    for entry in std::fs::read_dir(work).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if !kept.iter().any(|name| path.ends_with(name)) {
            std::fs::remove_file(&path).map_err(|error| Error::io(&path, error))?;
        }
    }
    Ok(lock)
}

/// What is known of the lines before one is spoken.
struct Survey {
    /// Bytes and number of the lines of this shard, or of all.
    bytes: u64,
    own_lines: u64,
    identity: Identity,
}

/// Reads every line once.
///
/// # Errors
/// [`Error::InvalidRequest`] when two lines claim one path, or one the path of a file that is read.
fn survey(input: &Input, args: &Batch, out: &Path, work: &Path, stopped: &AtomicBool) -> Result<Survey> {
    std::fs::write(work.join("case"), b"").map_err(|error| Error::io(work, error))?;
    let (mut claims, guard) = (Claims::new(work.join("CASE").exists()), Guard::new(args, out)?);
    let (mut bytes, mut own_lines, mut lines, mut hash) = (0, 0, 0, LinesHash::default());
    for line in input.lines() {
        let line = line?;
        if stopped.load(Ordering::Relaxed) {
            return Err(speak::interrupted());
        }
        lines += 1;
        hash.add(line.bytes.as_deref(), line.length);
        if args.shard.is_none_or(|shard| shard.takes(line.number)) {
            bytes += line.length;
            own_lines += 1;
        }
        let Ok((_, path)) = read(&line, args) else { continue };
        let refuse = |why: String| Err(Error::InvalidRequest(format!("{why}: nothing was spoken")));
        let (number, source, quoted) = (line.number, &line.source, crate::error::Excerpt(&path));
        if let Some(file) = guard.at(&out.join(&path)) {
            let why = format!("line {number} ({source}) claims the output `{quoted}`, which is {file}");
            return refuse(why);
        }
        match claims.claim(&path, number) {
            Ok(()) => {}
            Err(Clash::Same(other)) => {
                let why = format!("lines {other} and {number} ({source}) both claim the output `{quoted}`");
                return refuse(why);
            }
            Err(Clash::Within(other)) => {
                let why = format!(
                    "line {number} ({source}) claims the output `{quoted}`, which lies in what line {other} claims as a file"
                );
                return refuse(why);
            }
            Err(Clash::Around(other)) => {
                let why = format!(
                    "line {number} ({source}) claims the output `{quoted}`, which is a directory for line {other}"
                );
                return refuse(why);
            }
        }
    }
    Ok(Survey { bytes, own_lines, identity: Identity::new(lines, hash.finish(), args)? })
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
    /// Tells a person what has become of the run, whose records are in `manifest`.
    fn conclude(self, manifest: &Path, quiet: bool) -> Result<()> {
        if !quiet || self.failed() > 0 {
            // Nobody to tell must not change the status.
            let _ = write!(std::io::stderr(), "{self}");
        }
        match (self.failed(), self.first_failure()) {
            (0, _) => Ok(()),
            (failed, first) => Err(Error::InvalidRequest(format!(
                "{failed} of {} lines failed, first {}; {} says why of each",
                self.lines(),
                first.unwrap_or("one of them"),
                manifest.display()
            ))),
        }
    }

    /// Tells a person how far a run has come that ends early.
    fn interrupted(self) {
        let (done, all) = (self.lines(), self.expected);
        let told = format!(
            "{done} of {all} lines are done, as far as this run has come: run it again, and it goes on from there"
        );
        let _ = writeln!(std::io::stderr(), "mezzavoce: {told}");
    }
}
