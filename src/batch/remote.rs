//! One job in, its file out, spoken by a server.
//!
//! A server that has too much to do, or is not there for a while, is asked again until the patience with a line is
//! over. Then either the line or the server is given up: the line, if the server has spoken another one meanwhile or
//! still lists its voices; the server, if it has done neither, or if [`GIVEN_UP_IN_A_ROW`] lines were given up and none
//! spoken between them. Never asks for ever, and never keeps half an answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::GLANCE;
use super::line::Refusal;
use super::record::Spoken;
use super::settings::{LEXICON, RemoteJob};
use super::speak::{Manner, Output, Place, Trouble, interrupted, ready_for, spoken};
use crate::codec::AudioFormat;
use crate::error::{Error, Result};
use crate::transport::client::{RemoteSpeech, RemoteVoice, ServerAddress, voices};

/// The first wait before a server is asked again; each next one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// More lines than that cannot all be at fault: a server that lists its voices but begins nothing is gone as well.
const GIVEN_UP_IN_A_ROW: u64 = 64;

/// How long one waits for a server.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until it accepts a request.
    pub accept: Duration,
    /// While one line is refused or cut off, before it is given up.
    pub line: Duration,
}

/// A server, and how it has done so far.
#[derive(Debug)]
pub struct Server {
    address: ServerAddress,
    patience: Patience,
    /// Lines that were spoken to their end.
    spoken: AtomicU64,
    /// Lines that were given up since one was spoken.
    given_up: AtomicU64,
}

impl Server {
    pub fn new(address: ServerAddress, patience: Patience) -> Self {
        Self { address, patience, spoken: AtomicU64::new(0), given_up: AtomicU64::new(0) }
    }

    /// What the server tells of its voices, of its first one under the empty name too.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when nobody answers, or with no voice, for as long as the patience with a line lasts.
    pub fn voices(&self, stopped: &AtomicBool) -> Result<Vec<RemoteVoice>> {
        self.patiently(stopped, |error| Err(error.into()), || Ok(self.ask_for_voices()?)).map_err(|trouble| {
            match trouble {
                Trouble::Line(refusal) => Error::Unavailable(refusal.message),
                Trouble::Run(error) => error,
            }
        })
    }

    /// Lets the server speak `job` into its file.
    pub fn speak(&self, job: &RemoteJob, place: &Place, stopped: &AtomicBool) -> Result<Spoken, Trouble> {
        let before = self.spoken.load(Ordering::Relaxed);
        let spoken = self.patiently(
            stopped,
            |error| Err(self.give_up(error, before)),
            || self.ask(job, place, stopped),
        )?;
        self.spoken.fetch_add(1, Ordering::Relaxed);
        self.given_up.store(0, Ordering::Relaxed);
        Ok(spoken)
    }

    /// Tries as often as the patience with a line allows; then `give_up` says what that means.
    fn patiently<T>(
        &self,
        stopped: &AtomicBool,
        give_up: impl FnOnce(Error) -> Result<T, Trouble>,
        mut try_once: impl FnMut() -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let (began, mut wait) = (Instant::now(), FIRST_WAIT);
        loop {
            let error = match try_once() {
                Err(Trouble::Run(
                    error @ (Error::Overloaded { .. }
                    | Error::Unavailable(_)
                    | Error::TooSlow(_)
                    | Error::DeadlineExceeded(_)),
                )) => error,
                ended => return ended,
            };
            let told =
                if let Error::Overloaded { retry_after, .. } = &error { *retry_after } else { FIRST_WAIT };
            let pause = wait.max(told).min(LONGEST_WAIT);
            if began.elapsed() + pause > self.patience.line {
                return give_up(error);
            }
            sleep(pause, stopped)?;
            wait = (2 * wait).min(LONGEST_WAIT);
        }
    }

    /// Whether it is the line that cannot be spoken, or the server that is gone; `before` lines were spoken when the
    /// line was first tried.
    fn give_up(&self, error: Error, before: u64) -> Trouble {
        let in_a_row = 1 + self.given_up.fetch_add(1, Ordering::Relaxed);
        let lives = self.spoken.load(Ordering::Relaxed) > before
            || (in_a_row < GIVEN_UP_IN_A_ROW && self.ask_for_voices().is_ok());
        let code = match error {
            _ if !lives => return Trouble::Run(error),
            Error::Overloaded { .. } => "overloaded",
            Error::TooSlow(_) => "too_slow",
            Error::DeadlineExceeded(_) => "deadline_exceeded",
            _ => "unavailable",
        };
        let patience_ms = self.patience.line.as_millis();
        Trouble::Line(Refusal::new(code, format!("offered again for {patience_ms} ms, at last: {error}")))
    }

    fn ask_for_voices(&self) -> Result<Vec<RemoteVoice>> {
        let mut voices = voices(&self.address, self.patience.accept)?;
        let Some(first) = voices.first() else {
            return Err(Error::Unavailable(format!("the server at {} has no voice", self.address)));
        };
        voices.push(RemoteVoice { name: String::new(), ..first.clone() });
        Ok(voices)
    }

    fn ask(&self, job: &RemoteJob, place: &Place, stopped: &AtomicBool) -> Result<Spoken, Trouble> {
        let path = ready_for(&job.output, place)?;
        let mut speech = RemoteSpeech::open(&self.address, job.request.clone(), self.patience.accept)?;
        let mut output = Output::create(path, place)?;
        while let Some(bytes) = speech.next_bytes()? {
            if stopped.load(Ordering::Relaxed) {
                return Err(Trouble::Run(interrupted()));
            }
            output.write(&bytes)?;
        }
        let (account, sample_rate_hz) = (speech.account(), speech.sample_rate_hz());
        let format = AudioFormat { encoding: job.request.encoding, sample_rate_hz };
        let written = output.finish(format, account.samples)?;
        let how = Manner { voice: speech.voice().to_owned(), seed: job.request.seed, key: job.key.clone() };
        // A line calls it as we do.
        let notices = speech.notices().iter().map(|notice| match notice.strip_prefix("custom_dictionary:") {
            Some(rest) => format!("{LEXICON}:{rest}"),
            None => notice.clone(),
        });
        Ok(spoken(how, sample_rate_hz, account, notices.collect(), written))
    }
}

fn sleep(pause: Duration, stopped: &AtomicBool) -> Result<(), Trouble> {
    let until = Instant::now() + pause;
    while Instant::now() < until {
        if stopped.load(Ordering::Relaxed) {
            return Err(Trouble::Run(interrupted()));
        }
        std::thread::sleep(GLANCE.min(until.saturating_duration_since(Instant::now())));
    }
    Ok(())
}
