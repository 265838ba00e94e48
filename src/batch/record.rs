//! What became of one line: one object of `manifest.jsonl`.
//!
//! Never holds a time, a host or a thread count: the same work gives the same record.

use serde::{Deserialize, Serialize};

use super::line::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    Failed,
    /// A blank line.
    Skipped,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub code: String,
    pub message: String,
}

/// A sentence, or a mark of no samples, in samples at `sample_rate_hz`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanRecord {
    pub text: String,
    pub first_sample: u64,
    pub samples: u64,
    pub capped: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarkRecord {
    pub name: String,
    pub sample: u64,
}

/// What is known of audio that was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spoken {
    pub voice: String,
    pub seed: u64,
    pub sample_rate_hz: u32,
    pub samples: u64,
    pub seconds: f64,
    pub steps: u64,
    pub processed_text: String,
    pub spans: Vec<SpanRecord>,
    pub marks: Vec<MarkRecord>,
    /// Some sentence was cut before the voice ended it.
    pub capped: bool,
    pub unmapped: String,
    pub clipped_samples: u64,
    pub notices: Vec<String>,
    pub bytes: u64,
    pub sha256: String,
    /// Hash of all that decides the audio and its place.
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Counted over all inputs, from 1.
    pub line: u64,
    /// The file and the line in it.
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub spoken: Option<Spoken>,
}

impl Record {
    pub fn failed(
        line: u64,
        source: String,
        id: Option<String>,
        output: Option<String>,
        why: Refusal,
    ) -> Self {
        let Refusal { code, message } = why;
        let error = Some(Failure { code: code.to_owned(), message });
        Self { line, source, id, output, status: Status::Failed, error, spoken: None }
    }

    pub fn skipped(line: u64, source: String) -> Self {
        Self { line, source, id: None, output: None, status: Status::Skipped, error: None, spoken: None }
    }
}
