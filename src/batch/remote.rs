//! One job in, its file out, spoken by a server.
//!
//! A server that has too much to do, or is not there for a while, is asked again. Never asks for ever, and never keeps
//! half an answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::line::Refusal;
use super::record::Spoken;
use super::settings::RemoteJob;
use super::speak::{Manner, Output, Place, Trouble, interrupted, ready_for, spoken};
use crate::codec::AudioFormat;
use crate::error::{Error, Result};
use crate::transport::client::{RemoteSpeech, ServerAddress};

/// The first wait before a server is asked again; each next one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How often a sleeper looks whether the run was stopped.
const GLANCE: Duration = Duration::from_millis(50);

/// A server, and how patient one is with it.
#[derive(Debug)]
pub struct Server {
    pub address: ServerAddress,
    /// How long it may take to accept a request.
    pub timeout: Duration,
    /// How long one line may be refused or cut off before it is given up.
    pub patience: Duration,
    /// Lines that have been spoken.
    pub spoken: AtomicU64,
}

impl Server {
    /// Lets the server speak `job` into its file. Where patience ends though other lines are spoken meanwhile, it is
    /// the line that cannot be spoken; where none is, it is the server that is gone, and the run ends.
    pub fn speak(&self, job: &RemoteJob, place: &Place, stopped: &AtomicBool) -> Result<Spoken, Trouble> {
        let (began, before) = (Instant::now(), self.spoken.load(Ordering::Relaxed));
        let mut wait = FIRST_WAIT;
        loop {
            let error = match self.ask(job, place, stopped) {
                Err(Trouble::Run(error @ (Error::Overloaded { .. } | Error::Unavailable(_)))) => error,
                ended => {
                    self.spoken.fetch_add(u64::from(ended.is_ok()), Ordering::Relaxed);
                    return ended;
                }
            };
            let told =
                if let Error::Overloaded { retry_after, .. } = &error { *retry_after } else { FIRST_WAIT };
            let pause = wait.max(told).min(LONGEST_WAIT);
            if began.elapsed() + pause > self.patience {
                let others_spoke = self.spoken.load(Ordering::Relaxed) > before;
                let refusal = || Refusal::new("unavailable", error.to_string());
                return Err(if others_spoke { Trouble::Line(refusal()) } else { Trouble::Run(error) });
            }
            sleep(pause, stopped)?;
            wait = (2 * wait).min(LONGEST_WAIT);
        }
    }

    fn ask(&self, job: &RemoteJob, place: &Place, stopped: &AtomicBool) -> Result<Spoken, Trouble> {
        let path = ready_for(&job.output, place)?;
        let mut speech = RemoteSpeech::open(&self.address, job.request.clone(), self.timeout)?;
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
        Ok(spoken(how, sample_rate_hz, account, speech.notices().to_vec(), written))
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
