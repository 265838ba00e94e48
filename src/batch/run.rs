//! Lines in, their records and files out: as many at once as were asked for, the longest of a window first.
//!
//! Never holds more than a window of lines, and never leaves a line without a record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::input::{Input, Line, is_blank};
use super::ledger::Ledger;
use super::read;
use super::record::{Record, Status};
use super::settings::{Defaults, holds};
use super::source::{Source, Work};
use super::speak::{Place, Trouble, interrupted};
use super::summary::Progress;
use crate::cli::Batch;
use crate::error::{Error, Result};

/// Lines of one window, and bytes of their texts, at most.
const WINDOW_LINES: usize = 512;
const WINDOW_BYTES: usize = 4 << 20;
/// Lines that are read or written while others are spoken.
pub const LINES_BESIDE: usize = 2;

/// A job on its way to be spoken.
struct Task {
    number: u64,
    source: String,
    id: Option<String>,
    length: u64,
    job: Work,
}

/// What the threads of a run share.
pub struct Run<'a> {
    pub place: Place,
    pub source: Source,
    pub defaults: Defaults,
    pub args: &'a Batch,
    pub ledger: Mutex<Ledger>,
    pub progress: Progress,
    pub stopped: Arc<AtomicBool>,
    pub fault: Mutex<Option<Error>>,
}

impl Run<'_> {
    /// Speaks every line of `input` that is this run's.
    pub fn speak_all(&self, input: &Input) -> Result<()> {
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
            window.sort_by_key(|task| std::cmp::Reverse(task.job.text_bytes()));
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
                bytes += task.job.text_bytes();
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
        let job = match self.source.resolve(job, output.clone(), &self.defaults) {
            Ok(job) => job,
            Err(refusal) => {
                let record = Record::failed(line.number, line.source, id, Some(output), refusal);
                self.note(&record, line.length)?;
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
    fn keep(&self, number: u64, source: &str, id: &Option<String>, job: &Work, length: u64) -> Result<bool> {
        let Some((record, place)) = locked(&self.ledger).finished(job.key())? else { return Ok(false) };
        let Some(spoken) = &record.spoken else { return Ok(false) };
        // A length alone would let pass what another run wrote there before it was killed.
        if !holds(&self.place.out.join(job.output()), spoken.bytes, &spoken.sha256) {
            return Ok(false);
        }
        let kept = Record { line: number, source: source.to_owned(), id: id.clone(), ..record.clone() };
        locked(&self.ledger).keep(&kept, place, kept == record)?;
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
        match job.speak(&self.place, &self.stopped) {
            Ok(spoken) => {
                let (output, spoken) = (Some(job.output().to_owned()), Some(spoken));
                let record =
                    Record { line: number, source, id, output, status: Status::Ok, error: None, spoken };
                self.note(&record, length)
            }
            // A file that an earlier run has left there stays: it is finished work, though not of this line.
            Err(Trouble::Line(refusal)) => {
                let output = Some(job.output().to_owned());
                self.note(&Record::failed(number, source, id, output, refusal), length)
            }
            Err(Trouble::Run(error)) => Err(error),
        }
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
