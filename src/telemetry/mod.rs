//! Events in, log lines and metrics out.
//!
//! Never holds up what it reports on: whoever counts does so with an atomic or a short lock, and a scrape reads.

mod metrics;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

pub use metrics::{Metrics, serve_metrics};

use crate::error::{Error, Result};

/// What a log line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For a person at a terminal.
    #[default]
    Human,
    /// One JSON object a line, with its time, for a collector.
    Json,
}

/// Writes what `filter` lets through to stderr from now on: a level, or `target=level` parts.
///
/// # Errors
/// [`Error::InvalidRequest`] when the filter is not understood or a log has been started already.
pub fn start_log(filter: &str, format: LogFormat) -> Result<()> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    if let Some(word) = filter.split(',').find(|part| !part.contains('=') && !levels.contains(part)) {
        let reason = format!("log filter `{word}` is no level ({}) and no target=level", levels.join(", "));
        return Err(Error::InvalidRequest(reason));
    }
    let refuse = |e| Error::InvalidRequest(format!("log filter `{filter}` is not understood: {e}"));
    // The binding repeats what we log ourselves; naming it in the filter brings it back.
    let filter = EnvFilter::try_new(format!("ort=error,{filter}")).map_err(refuse)?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .log_internal_errors(false);
    let started = match format {
        LogFormat::Human => log.with_ansi(std::io::stderr().is_terminal()).without_time().try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    started.map_err(|e| Error::InvalidRequest(format!("the log cannot be started: {e}")))
}
