//! The command line in, an exit status out.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use mezzavoce::cli::{Cli, Command};
use mezzavoce::error::Error;
use mezzavoce::inspect::inspect;
use mezzavoce::say::{INTERRUPTED, print, say};
use mezzavoce::serve::serve;
use mezzavoce::telemetry::{LogFormat, start_log};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let format = match &cli.command {
        Command::Serve(args) => args.log_format,
        _ => LogFormat::Human,
    };
    let outcome = start_log(&cli.log, format).and_then(|()| match &cli.command {
        Command::Say(args) => say(args),
        Command::Serve(args) => serve(args),
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
        Error::Overloaded(_) | Error::Unavailable(_) | Error::DeadlineExceeded(_) => 75,
    }
}
