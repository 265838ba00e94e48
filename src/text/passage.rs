//! What a whole text becomes: segments, how each is delivered, and what stands between and beside them.
//!
//! Never holds raw text.

use super::Segment;

/// How a segment is delivered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prosody {
    /// How fast, beside the request's own speaking rate: 1 is that rate.
    pub rate: f32,
    /// How much louder than the voice, in decibels; −∞ is silence.
    pub gain_db: f32,
}

impl Default for Prosody {
    fn default() -> Self {
        Self { rate: 1.0, gain_db: 0.0 }
    }
}

impl Prosody {
    /// What the samples are multiplied with: 10^(dB / 20).
    pub fn gain(self) -> f32 {
        10f32.powf(self.gain_db / 20.0)
    }
}

/// A named place in the speech.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub name: String,
    /// How many of the segment's symbols come before it; 0 is its beginning, all of them its end.
    /// In between it is an estimate, from the share of the sentence's characters that come before.
    pub symbol: usize,
}

/// A whole text, ready to be spoken.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Passage {
    pub segments: Vec<Segment>,
    /// Silence before the first segment, in milliseconds.
    pub lead_ms: u32,
    /// Marks behind the last segment.
    pub end_marks: Vec<String>,
    /// What was asked for and is not served, in whole sentences.
    pub notices: Vec<String>,
}
