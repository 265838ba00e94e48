//! Encoded sentences in, what every step makes of them out: which stream sits in which row of the decoder.
//!
//! The rows that step stand in front, those that are parked behind them; a row that leaves is filled with the last
//! one. Never asks why a row is parked.

use super::{Ending, StreamId};
use crate::decoder::{Decoder, PrenetDropout, StopRule};
use crate::encoder::Encoded;
use crate::error::Result;
use crate::text::{Prosody, Segment};

/// The decoder and who is in it.
pub(super) struct Rows {
    decoder: Decoder,
    reduction_factor: usize,
    /// In the order of the decoder's rows; the first `active` step.
    rows: Vec<Row>,
    active: usize,
}

/// What a row of the decoder is doing.
struct Row {
    id: StreamId,
    /// The sentence being decoded; `None` between two.
    sentence: Option<Sentence>,
}

/// A sentence in the making.
pub(super) struct Sentence {
    pub segment: Segment,
    pub dropout: PrenetDropout,
    pub rule: StopRule,
    /// Steps made so far.
    pub steps: usize,
}

/// What a step made for one stream.
pub(super) struct Made {
    /// Raw, row-major [reduction_factor, n_mels].
    pub frames: Vec<f32>,
    pub prosody: Prosody,
    /// The sentence, if this was its last step.
    pub ended: Option<(Segment, Ending)>,
}

impl Rows {
    pub fn new(decoder: Decoder, reduction_factor: usize) -> Self {
        Self { decoder, reduction_factor, rows: Vec::new(), active: 0 }
    }

    /// How many rows step.
    pub fn active(&self) -> usize {
        self.active
    }

    /// The streams that step, in the order of their rows.
    pub fn stepping(&self) -> Vec<StreamId> {
        self.rows.iter().take(self.active).map(|row| row.id).collect()
    }

    /// The streams in the middle of a sentence.
    pub fn busy(&self) -> impl Iterator<Item = StreamId> {
        self.rows.iter().filter(|row| row.sentence.is_some()).map(|row| row.id)
    }

    /// Begins `sentence` in the row of stream `id`, or in a new one.
    pub fn begin(&mut self, id: StreamId, encoded: Encoded, sentence: Sentence) -> Result<()> {
        match self.rows.iter().position(|row| row.id == id) {
            Some(row) => {
                self.decoder.begin(row, encoded)?;
                self.rows[row].sentence = Some(sentence);
            }
            None => {
                self.decoder.join(encoded)?;
                self.rows.push(Row { id, sentence: Some(sentence) });
            }
        }
        Ok(())
    }

    /// Brings the rows with a sentence to the front, but for those of the streams that are paused.
    pub fn arrange(&mut self, is_paused: impl Fn(StreamId) -> bool) -> Result<()> {
        let mut row = 0;
        while row < self.rows.len() {
            let Row { id, sentence } = &self.rows[row];
            let steps = sentence.is_some() && !is_paused(*id);
            if steps && row >= self.active {
                self.swap(row, self.active)?;
                self.active += 1;
            } else if !steps && row < self.active {
                self.active -= 1;
                self.swap(row, self.active)?;
                continue;
            }
            row += 1;
        }
        Ok(())
    }

    /// One step of every active row.
    pub fn step(&mut self) -> Result<()> {
        let rows = &self.rows;
        self.decoder.step(self.active, |row, step, layer, mask| {
            if let Some(sentence) = &rows[row].sentence {
                sentence.dropout.fill(step as u64, layer as u64, mask);
            }
        })
    }

    /// What the last step made in `row`; `None` where nothing is decoded.
    pub fn take(&mut self, row: usize) -> Result<Option<Made>> {
        let step = self.decoder.output(row)?;
        let Some(sentence) = &mut self.rows[row].sentence else { return Ok(None) };
        sentence.steps += 1;
        let end = sentence.rule.after(sentence.steps, step.stop_logits);
        let (frames, prosody) = (step.frames.to_vec(), sentence.segment.prosody);
        let ended = end.and_then(|end| {
            let Sentence { segment, steps, .. } = self.rows[row].sentence.take()?;
            Some((segment, Ending { steps, frames: steps * self.reduction_factor, end }))
        });
        Ok(Some(Made { frames, prosody, ended }))
    }

    /// Frees the row of stream `id`, if it has one.
    pub fn leave(&mut self, id: StreamId) -> Result<()> {
        let Some(mut row) = self.rows.iter().position(|row| row.id == id) else { return Ok(()) };
        if row < self.active {
            self.active -= 1;
            self.swap(row, self.active)?;
            row = self.active;
        }
        self.swap(row, self.rows.len() - 1)?;
        self.decoder.leave_last();
        self.rows.pop();
        Ok(())
    }

    fn swap(&mut self, a: usize, b: usize) -> Result<()> {
        self.decoder.swap(a, b)?;
        self.rows.swap(a, b);
        Ok(())
    }
}
