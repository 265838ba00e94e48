//! What the rest of the engine tells the step loop.
//!
//! Never waits for an answer: what comes of a command is seen in the stream.

use std::sync::Arc;
use std::time::Instant;

use super::stream::{Flow, Outlet};
use super::{Manner, StreamId};
use crate::encoder::Encoded;
use crate::error::Result;
use crate::text::Segment;

/// One thing that the step loop should know; taken between two steps.
#[derive(Debug)]
pub(super) enum Command {
    Open(Box<Opening>, Outlet, Manner),
    Segment(StreamId, Segment),
    EndOfText(StreamId),
    Encoded(StreamId, Box<Result<Encoded>>),
    /// Something has changed that the loop should look at.
    Wake,
    /// Every stream ends now, for this reason.
    CancelAll(String),
    /// The engine ends.
    Stop,
}

/// A stream that has been admitted.
#[derive(Debug)]
pub(super) struct Opening {
    pub id: StreamId,
    /// [speaker_embedding_dim]
    pub speaker: Vec<f32>,
    pub seed: u64,
    pub flow: Arc<Flow>,
    pub deadline: Option<Instant>,
}
