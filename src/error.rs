//! A failure in, one of a few kinds out: each kind is something the caller can do.
//!
//! Whoever raises an error writes the sentence, and quotes what somebody sent through [`Excerpt`] or [`shortened`],
//! since a message travels in a header of a few kB. Never holds another module's type.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the work could not be done. The variants are the caller's next step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Ask differently: a text, option or value that cannot be served.
    #[error("{0}")]
    InvalidRequest(String),

    /// Mend or replace the voice: a file that is missing, truncated, hostile or foreign.
    #[error("voice {}: {reason}", short_path(path))]
    InvalidVoice { path: PathBuf, reason: String },

    /// Install or name the ONNX Runtime library.
    #[error("ONNX Runtime: {0}")]
    Runtime(String),

    /// Wait for about `retry_after` and ask again.
    #[error("too much to do: {reason}")]
    Overloaded { reason: String, retry_after: Duration },

    /// Take what is made as it is made, or ask for less.
    #[error("too slow a reader: {0}")]
    TooSlow(String),

    /// Ask another server, or this one when it is back.
    #[error("not available: {0}")]
    Unavailable(String),

    /// Ask with more time.
    #[error("too late: {0}")]
    DeadlineExceeded(String),

    /// Look at the disk, the permissions or the other end of the pipe.
    #[error("{}: {source}", short_path(path))]
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

/// What somebody sent, as a message quotes it: control characters escaped, and beyond [`Self::CHARACTERS`] its beginning
/// and its length.
#[derive(Debug, Clone, Copy)]
pub struct Excerpt<'a>(pub &'a str);

impl Excerpt<'_> {
    pub const CHARACTERS: usize = 100;
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars().take(Self::CHARACTERS) {
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
        }
        match self.0.chars().count() {
            0..=Self::CHARACTERS => Ok(()),
            count => write!(f, "… ({count} characters)"),
        }
    }
}

/// Names to choose from, as many as a message has room for.
pub fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const NAMES: usize = 16;
    let more = names.len().saturating_sub(NAMES);
    let mut listed = names.take(NAMES).map(|name| Excerpt(name).to_string()).collect::<Vec<_>>().join(", ");
    if more > 0 {
        listed.push_str(&format!(" and {more} more"));
    }
    listed
}

/// `text` without its middle where it is longer than `bytes`.
pub fn shortened(text: String, bytes: usize) -> String {
    if text.len() <= bytes {
        return text;
    }
    let head = text.floor_char_boundary(bytes * 5 / 8);
    let tail = text.ceil_char_boundary(text.len() - bytes * 3 / 8);
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head} … {tail}")
}

fn short_path(path: &Path) -> String {
    const BYTES: usize = 400;
    shortened(path.to_string_lossy().into_owned(), BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_quoted_by_its_beginning_and_its_length() {
        assert_eq!(Excerpt("joe").to_string(), "joe");
        assert_eq!(Excerpt("a\nb").to_string(), "a\\nb");
        let just = "ä".repeat(100);
        assert_eq!(Excerpt(&just).to_string(), just);
        let long = "ä".repeat(5_000);
        assert_eq!(Excerpt(&long).to_string(), format!("{just}… (5000 characters)"));
    }

    #[test]
    fn a_list_of_names_says_how_many_it_leaves_out() {
        let names: Vec<String> = (0..40).map(|number| format!("n{number}")).collect();
        let of = |count: usize| listed(names[..count].iter().map(String::as_str));
        assert_eq!(of(2), "n0, n1");
        assert!(of(16).ends_with(", n15"));
        assert!(of(40).ends_with(", n15 and 24 more"));
    }

    #[test]
    fn a_path_and_a_reason_keep_their_ends() {
        let path = format!("/{}/config.json", "é".repeat(4_000));
        let message = Error::voice(&path, "not a directory").to_string();
        assert!(message.len() < 500 && message.ends_with("/config.json: not a directory"), "{message}");
        assert_eq!(shortened("ä".repeat(10), 20), "ä".repeat(10));
        assert!(shortened("ä".repeat(11), 20).len() < 26);
    }
}
