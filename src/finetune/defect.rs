//! What can be wrong with one clip of a data set, and the sentence that says so.
//!
//! Never decides whether a run goes on.

use std::fmt;

use serde::Serialize;

/// The kinds of things that are wrong with clips, those that keep a clip out of training first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Defect {
    /// A line of the listing that names no clip.
    BadLine,
    /// A file that is missing, damaged or no audio.
    Unreadable,
    Silent,
    TooShort,
    TooLong,
    /// A text that the voice cannot say, or cannot say in one go.
    Unspeakable,
    /// The recording of an earlier line.
    Duplicate,
    /// Flat tops at full scale.
    Clipped,
    /// Far more or far fewer symbols a second than the other clips.
    OddRate,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::BadLine => "bad line",
            Self::Unreadable => "unreadable",
            Self::Silent => "silent",
            Self::TooShort => "too short",
            Self::TooLong => "too long",
            Self::Unspeakable => "unspeakable",
            Self::Duplicate => "duplicate",
            Self::Clipped => "clipped",
            Self::OddRate => "odd rate",
        })
    }
}

/// A line of a listing that is not trained on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// From 1 on.
    pub line: usize,
    pub defect: Defect,
    pub reason: String,
}
