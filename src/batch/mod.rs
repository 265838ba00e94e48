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
mod settings;
mod speak;
mod summary;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use input::{Input, Line, is_blank};
use ledger::Ledger;
use line::{Job, MAX_LINE_BYTES, Refusal, parse};
use output::{Claims, OWN_PREFIX, output_path};
use record::{Record, Status};
use settings::{Defaults, Resolved, file_hash, resolve, voice_hash};
use speak::{Place, Trouble, interrupted, speak};
use summary::{Progress, Totals};

use crate::cli::{Batch, Shard, threads};
use crate::engine::EngineOptions;
use crate::error::{Error, Result};
use crate::repertoire::{Repertoire, VoiceOptions, VoiceSource};
use crate::runtime::{Runtime, library};
use crate::signals::interruption;
use crate::telemetry::Metrics;

/// Lines of one window, and bytes of their texts, at most.
const WINDOW_LINES: usize = 512;
const WINDOW_BYTES: usize = 4 << 20;
/// Lines that are read or written while others are spoken.
const LINES_BESIDE: usize = 2;

/// A job on its way to be spoken.
struct Task {
    number: u64,
    source: String,
    id: Option<String>,
    length: u64,
    job: Resolved,
}

/// What the threads of a run share.
struct Run<'a> {
    place: Place,
    voices: Repertoire,
    defaults: Defaults,
    args: &'a Batch,
    ledger: Mutex<Ledger>,
    progress: Progress,
    stopped: Arc<AtomicBool>,
    fault: Mutex<Option<Error>>,
}

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
    let suffix = args.shard.map_or_else(String::new, |Shard { index, count }| format!("-{index}-of-{count}"));
    let work = out.join(format!("{OWN_PREFIX}-batch{suffix}"));
    let lock = take(&work)?;
    let stopped = interruption()?;
    let input = Input::open(&args.inputs, &work.join("stdin.jsonl"))?;
    let journal = work.join("journal.jsonl");
    let survey = survey(&input, args, &work).inspect_err(|_| {
        // Nothing has begun; what cannot be taken away is in nobody's way.
        if !journal.exists() {
            let _ = std::fs::remove_dir_all(&work);
        }
    })?;

    let manifest = out.join(format!("manifest{suffix}.jsonl"));
    let ledger = Ledger::open(&manifest, &journal)?;
    let (voices, defaults) = voices(args)?;
    let progress = Progress::new(survey);
    let run = Run {
        place: Place { out, work: work.clone() },
        voices,
        defaults,
        args,
        ledger: Mutex::new(ledger),
        progress,
        stopped,
        fault: Mutex::new(None),
    };
    run.speak_all(&input)?;
    let Run { ledger, progress, .. } = run;
    ledger.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
    drop(lock);
    std::fs::remove_dir_all(&work).map_err(|error| Error::io(&work, error))?;
    progress.finish().conclude(args.quiet)
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

fn voices(args: &Batch) -> Result<(Repertoire, Defaults)> {
    let sources = match args.voices.as_slice() {
        [] => vec![VoiceSource { name: Some("default".to_owned()), directory: None }],
        sources => sources.to_vec(),
    };
    let jobs = usize::from(args.jobs);
    let engine = EngineOptions {
        threads: threads(args.threads)?,
        max_streams: jobs,
        queue: jobs + LINES_BESIDE,
        kv_cache_bytes: (args.kv_cache_mib as usize).saturating_mul(1 << 20),
        slow_client_timeout: std::time::Duration::MAX,
    };
    let lexicon_hash = args.lexicon.lexicon.as_deref().map(file_hash).transpose()?;
    let (precision, accelerator) = (args.precision, args.runtime.device);
    let options = VoiceOptions { precision, accelerator, engine, lexicon: args.lexicon.load()? };
    let library = library::locate(&args.runtime.lookup()?)?;
    let runtime = Arc::new(Runtime::load(&library, accelerator)?);
    let repertoire = Repertoire::new(runtime, options, Metrics::new());
    repertoire.load(&sources)?;
    let loaded = repertoire.voices();
    let hashes = loaded
        .iter()
        .zip(&sources)
        .map(|(voice, source)| Ok((voice.name.clone(), voice_hash(source.directory.as_deref())?)));
    let defaults = Defaults {
        seed: args.seed,
        speaking_rate: args.rate,
        encoding: args.encoding,
        sample_rate_hz: args.sample_rate_hz,
        markup: args.markup,
        date_order: args.date_order,
        run_hash: format!("{} {precision:?} {accelerator:?} {lexicon_hash:?}", env!("CARGO_PKG_VERSION")),
        voice_hashes: hashes.collect::<Result<_>>()?,
    };
    Ok((repertoire, defaults))
}

impl Run<'_> {
    fn speak_all(&self, input: &Input) -> Result<()> {
        let (sender, receiver) = sync_channel(WINDOW_LINES);
        let receiver = Mutex::new(receiver);
        let fed = std::thread::scope(|scope| {
            for _ in 0..usize::from(self.args.jobs) + LINES_BESIDE {
                scope.spawn(|| self.work(&receiver));
            }
            // Dropped behind this: the workers end when they have spoken what waits.
            let sender = sender;
            let fed = self.feed(input, &sender);
            if fed.is_err() {
                self.stopped.store(true, Ordering::Relaxed);
            }
            fed
        });
        if let Some(fault) = locked(&self.fault).take() {
            return Err(fault);
        }
        fed?;
        if self.stopped.load(Ordering::Relaxed) { Err(interrupted()) } else { Ok(()) }
    }

    /// Sends every line that is to be spoken to the workers, window by window, the longest first.
    fn feed(&self, input: &Input, workers: &SyncSender<Task>) -> Result<()> {
        let (mut window, mut bytes): (Vec<Task>, usize) = (Vec::new(), 0);
        let send = |window: &mut Vec<Task>| {
            window.sort_by_key(|task| std::cmp::Reverse(task.job.script.text().len()));
            for task in window.drain(..) {
                let gone = |_| Error::Internal("the threads that speak have ended".to_owned());
                workers.send(task).map_err(gone)?;
            }
            Ok(())
        };
        for line in input.lines() {
            let line = line?;
            if self.stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            if self.args.shard.is_some_and(|shard| !shard.takes(line.number)) {
                continue;
            }
            if let Some(task) = self.prepare(line)? {
                bytes += task.job.script.text().len();
                window.push(task);
            }
            if window.len() >= WINDOW_LINES || bytes >= WINDOW_BYTES {
                bytes = 0;
                send(&mut window)?;
            }
        }
        send(&mut window)
    }

    /// What is to be spoken of `line`; nothing where its record is already there.
    fn prepare(&self, line: Line) -> Result<Option<Task>> {
        if line.bytes.as_deref().is_some_and(is_blank) {
            self.note(&Record::skipped(line.number, line.source), line.length)?;
            return Ok(None);
        }
        let (job, output) = match read(&line, self.args) {
            Ok(read) => read,
            Err((refusal, id)) => {
                let record = Record::failed(line.number, line.source, id, None, refusal);
                self.note(&record, line.length)?;
                return Ok(None);
            }
        };
        let id = job.id.clone();
        let job = match resolve(job, output.clone(), &self.voices, &self.defaults) {
            Ok(job) => job,
            Err(refusal) => {
                self.fail(line.number, line.source, id, output, refusal, line.length)?;
                return Ok(None);
            }
        };
        let Line { number, source, length, .. } = line;
        if self.keep(number, &source, &id, &job, length)? {
            return Ok(None);
        }
        Ok(Some(Task { number, source, id, length, job }))
    }

    /// Keeps what an earlier run has made of the same job. -> whether it has
    fn keep(
        &self,
        number: u64,
        source: &str,
        id: &Option<String>,
        job: &Resolved,
        length: u64,
    ) -> Result<bool> {
        let mut ledger = locked(&self.ledger);
        let Some((record, place)) = ledger.finished(&job.key)? else { return Ok(false) };
        let Some(spoken) = &record.spoken else { return Ok(false) };
        let path = self.place.out.join(&job.output);
        let is_there = path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() == spoken.bytes);
        if !is_there || (self.args.verify && file_hash(&path)? != spoken.sha256) {
            return Ok(false);
        }
        let kept = Record { line: number, source: source.to_owned(), id: id.clone(), ..record.clone() };
        ledger.keep(&kept, place, kept == record)?;
        self.progress.kept(&kept, length);
        Ok(true)
    }

    fn work(&self, tasks: &Mutex<Receiver<Task>>) {
        loop {
            let Ok(task) = locked(tasks).recv() else { return };
            if self.stopped.load(Ordering::Relaxed) {
                continue;
            }
            if let Err(error) = self.carry_out(task) {
                locked(&self.fault).get_or_insert(error);
                self.stopped.store(true, Ordering::Relaxed);
            }
        }
    }

    fn carry_out(&self, task: Task) -> Result<()> {
        let Task { number, source, id, length, job } = task;
        match speak(&job, &self.place, &self.stopped) {
            Ok(spoken) => {
                let (output, spoken) = (Some(job.output), Some(spoken));
                let record =
                    Record { line: number, source, id, output, status: Status::Ok, error: None, spoken };
                self.note(&record, length)
            }
            Err(Trouble::Line(refusal)) => self.fail(number, source, id, job.output, refusal, length),
            Err(Trouble::Run(error)) => Err(error),
        }
    }

    /// Notes that a line failed; what an earlier run has written in its place says something else by now.
    fn fail(
        &self,
        number: u64,
        source: String,
        id: Option<String>,
        output: String,
        refusal: Refusal,
        length: u64,
    ) -> Result<()> {
        let path: PathBuf = self.place.out.join(&output);
        if locked(&self.ledger).has_written(&output) && path.is_file() {
            std::fs::remove_file(&path).map_err(|error| Error::io(&path, error))?;
        }
        self.note(&Record::failed(number, source, id, Some(output), refusal), length)
    }

    fn note(&self, record: &Record, length: u64) -> Result<()> {
        locked(&self.ledger).add(record)?;
        self.progress.noted(record, length);
        Ok(())
    }
}

/// What `mutex` holds; a thread that died while it held it has left it whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
