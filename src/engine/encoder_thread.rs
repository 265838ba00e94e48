//! Sentences of many streams in, encoded sentences out.
//!
//! A thread of its own, so that a long sentence does not hold up the streams that are being decoded. Never
//! reorders.

use std::sync::mpsc::{Receiver, SyncSender};

use super::StreamId;
use super::step_loop::Command;
use crate::encoder::Encoder;

/// One sentence to encode.
pub(super) struct EncodeJob {
    pub id: StreamId,
    pub ids: Vec<i64>,
    /// [speaker_embedding_dim]
    pub speaker: Vec<f32>,
}

/// Serves jobs until nobody can send any more.
pub(super) fn run(mut encoder: Encoder, jobs: &Receiver<EncodeJob>, results: &SyncSender<Command>) {
    for job in jobs {
        let encoded = encoder.encode(&job.ids, &job.speaker);
        if results.send(Command::Encoded(job.id, Box::new(encoded))).is_err() {
            return;
        }
    }
}
