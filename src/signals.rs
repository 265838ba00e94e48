//! What the operating system tells the process in, futures and flags out.
//!
//! SIGTERM, SIGINT and SIGHUP where they exist; elsewhere the interrupt of the console, and no reload. Never decides
//! what ends: that is for whoever listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use crate::error::{Error, Result};

/// The exit status of a program that was asked to end.
pub const INTERRUPTED: i32 = 130;

/// Ends the process without the exit handlers of ONNX Runtime, which would pull the floor from under running graphs.
pub fn leave_at_once() -> ! {
    // SAFETY: it takes a number and does not return; the system closes what is open.
    unsafe { libc::_exit(INTERRUPTED) }
}

/// Set by the first signal that asks the program to end; the second one ends it.
pub fn interruption() -> Result<Arc<AtomicBool>> {
    interruption_that_says("")
}

/// As [`interruption`]; the first signal is answered with `words` on stderr.
pub fn interruption_that_says(words: &'static str) -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            leave_at_once();
        }
        if !words.is_empty() {
            tracing::warn!("{words}");
        }
    };
    ctrlc::set_handler(handler).map_err(uncaught)?;
    Ok(interrupted)
}

/// Ends when the process is told to end; being told twice ends it as is usual for an impatient person. Within a Tokio
/// runtime.
pub fn shutdown() -> Result<impl Future<Output = ()>> {
    let mut end = Ends::new()?;
    Ok(async move {
        end.next().await;
        tokio::spawn(async move {
            end.next().await;
            tracing::warn!("told to end twice: not waiting any longer");
            leave_at_once();
        });
    })
}

#[cfg(unix)]
struct Ends {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Ends {
    fn new() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let catch = |kind| signal(kind).map_err(uncaught);
        Ok(Self { terminate: catch(SignalKind::terminate())?, interrupt: catch(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Ends;

#[cfg(not(unix))]
impl Ends {
    fn new() -> Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // Where the console cannot be listened to, nothing ends the process but its own end.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

/// A message for every SIGHUP; none where there is no such signal. Within a Tokio runtime.
pub fn reload() -> Result<mpsc::Receiver<()>> {
    let (sender, receiver) = mpsc::channel(1);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut hangup = signal(SignalKind::hangup()).map_err(uncaught)?;
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                // One reload that waits is as good as many.
                let _ = sender.try_send(());
            }
        });
    }
    #[cfg(not(unix))]
    drop(sender);
    Ok(receiver)
}

fn uncaught(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("signals cannot be caught: {error}"))
}
