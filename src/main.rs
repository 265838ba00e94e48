//! The command line in, an exit status out.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use mezzavoce::cli::{Cli, Command};
use mezzavoce::error::{Error, Result};
use mezzavoce::inspect::inspect;
use mezzavoce::say::{INTERRUPTED, print, say};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = start_log(&cli.log).and_then(|()| match &cli.command {
        Command::Say(args) => say(args),
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

fn start_log(filter: &str) -> Result<()> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    if let Some(word) = filter.split(',').find(|part| !part.contains('=') && !levels.contains(part)) {
        let reason = format!("log filter `{word}` is no level ({}) and no target=level", levels.join(", "));
        return Err(Error::InvalidRequest(reason));
    }
    let refuse = |e| Error::InvalidRequest(format!("log filter `{filter}` is not understood: {e}"));
    // The binding repeats what we log ourselves; naming it in the filter brings it back.
    let filter = EnvFilter::try_new(format!("ort=error,{filter}")).map_err(refuse)?;
    let ansi = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(ansi)
        .with_target(false)
        .log_internal_errors(false)
        .without_time()
        .init();
    Ok(())
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
