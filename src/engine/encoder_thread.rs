//! Sentences of many streams in, encoded sentences out.
//!
//! A thread of its own, so that a long sentence does not hold up the streams that are being decoded. Never
//! reorders.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Instant;

use super::command::Command;
use super::stream::Flow;
use super::{Stats, StreamId};
use crate::encoder::Encoder;

/// One sentence to encode.
pub(super) struct EncodeJob {
    pub id: StreamId,
    pub ids: Vec<i64>,
    /// [speaker_embedding_dim]
    pub speaker: Vec<f32>,
    pub flow: Arc<Flow>,
}

/// Serves jobs until nobody can send any more.
pub(super) fn run(
    mut encoder: Encoder,
    jobs: &Receiver<EncodeJob>,
    results: &SyncSender<Command>,
    stats: &Stats,
) {
    for job in jobs {
        if job.flow.is_over() {
            continue;
        }
        let began = Instant::now();
        let encoded = encoder.encode(&job.ids, &job.speaker);
        stats.encode_time.observe(began.elapsed());
        if results.send(Command::Encoded(job.id, Box::new(encoded))).is_err() {
            return;
        }
    }
}
