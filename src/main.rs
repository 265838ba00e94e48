//! The command line in, an exit status out.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use mezzavoce::batch::batch;
use mezzavoce::cli::{Cli, Command};
use mezzavoce::error::Error;
use mezzavoce::inspect::inspect;
use mezzavoce::say::{print, say};
use mezzavoce::serve::serve;
use mezzavoce::signals::INTERRUPTED;
use mezzavoce::telemetry::{LogFormat, start_log};

fn main() -> ExitCode {
    // ONNX Runtime 1.32 keeps a device id and a queue of events in the user's cache unless it is told not to before
    // it is loaded; its own switch comes too late.
    // SAFETY: no other thread has been started yet.
    unsafe { std::env::set_var("ORT_DISABLE_TELEMETRY", "1") };
    let cli = Cli::parse();
    let (format, level) = match &cli.command {
        Command::Serve(args) => (args.log_format, "info"),
        _ => (LogFormat::Human, "warn"),
    };
    let outcome = start_log(cli.log.as_deref().unwrap_or(level), format).and_then(|()| match &cli.command {
        Command::Say(args) => say(args),
        Command::Batch(args) => batch(args),
        Command::Serve(args) => serve(args),
        #[cfg(feature = "finetune")]
        Command::Finetune(args) => mezzavoce::adapt::adapt(args),
        Command::Inspect(args) => args.load().and_then(|voice| print(&inspect(&voice))),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has had enough: their choice, not a failure.
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::Interrupted => {
            ExitCode::from(INTERRUPTED as u8)
        }
        Err(error) => {
            // Nobody to tell must not change the status.
            let _ = writeln!(std::io::stderr(), "mezzavoce: {error}");
            ExitCode::from(exit_status(&error))
        }
    }
}

/// 2 as clap's own, then one for each thing a person can do.
fn exit_status(error: &Error) -> u8 {
    match error {
        Error::InvalidRequest(_) => 2,
        Error::InvalidVoice { .. } => 3,
        Error::Runtime(_) => 4,
        Error::Io { .. } => 5,
        Error::Internal(_) => 70,
        Error::Overloaded { .. } | Error::TooSlow(_) | Error::Unavailable(_) | Error::DeadlineExceeded(_) => {
            75
        }
    }
}
