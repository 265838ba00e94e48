//! One job in, its file out, spoken by a server.
//!
//! A server that has too much to do, or is not there for a while, is asked again. Never asks for ever, and never keeps
//! half an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
#[derive(Debug, Clone)]
pub struct Server {
    pub address: ServerAddress,
    /// How long it may take to accept a request.
    pub timeout: Duration,
    /// How long one line may be refused or cut off before the run ends.
    pub patience: Duration,
}

impl Server {
    /// Lets the server speak `job` into its file.
    pub fn speak(&self, job: &RemoteJob, place: &Place, stopped: &AtomicBool) -> Result<Spoken, Trouble> {
        let began = Instant::now();
        let mut wait = FIRST_WAIT;
        loop {
            let error = match self.ask(job, place, stopped) {
                Err(Trouble::Run(error @ (Error::Overloaded { .. } | Error::Unavailable(_)))) => error,
                ended => return ended,
            };
            let told =
                if let Error::Overloaded { retry_after, .. } = &error { *retry_after } else { FIRST_WAIT };
            let pause = wait.max(told).min(LONGEST_WAIT);
            if began.elapsed() + pause > self.patience {
                return Err(Trouble::Run(error));
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
