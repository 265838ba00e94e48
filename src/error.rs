//! A failure in, one of five kinds out: each kind is something the caller can do.
//!
//! Never holds another module's type; whoever raises an error writes the sentence.

use std::path::{Path, PathBuf};

/// Why the work could not be done. The variants are the caller's next step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Ask differently: a text, option or value that cannot be served.
    #[error("{0}")]
    InvalidRequest(String),

    /// Mend or replace the voice: a file that is missing, truncated, hostile or foreign.
    #[error("voice {}: {reason}", path.display())]
    InvalidVoice { path: PathBuf, reason: String },

    /// Install or name the ONNX Runtime library.
    #[error("ONNX Runtime: {0}")]
    Runtime(String),

    /// Wait a little and ask again.
    #[error("too much to do: {0}")]
    Overloaded(String),

    /// Ask another server, or this one when it is back.
    #[error("not available: {0}")]
    Unavailable(String),

    /// Ask with more time.
    #[error("too late: {0}")]
    DeadlineExceeded(String),

    /// Look at the disk, the permissions or the other end of the pipe.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },

    /// Report a fault of ours.
    #[error("internal fault: {0} (please report this)")]
    Internal(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn voice(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::InvalidVoice { path: path.into(), reason: reason.into() }
    }

    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), source }
    }
}
