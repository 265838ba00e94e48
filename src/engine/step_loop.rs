//! Commands in, frames of every active stream out, step by step: the synthesis loop.
//!
//! Requests join and leave between two steps. Streams in work stand in the decoder's rows, those that step in
//! front; a stream that waits for its reader or its next sentence is parked behind them. Never blocks on one
//! stream while another could step.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError};
use std::time::{Duration, Instant};

use super::encoder_thread::EncodeJob;
use super::stream::{Flow, Outlet};
use super::vocoder_thread::Message;
use super::{COMMANDS, Ending, Manner, Stats, StreamId, VoiceRules};
use crate::decoder::{Decoder, PrenetDropout, StopRule};
use crate::encoder::Encoded;
use crate::error::{Error, Result};
use crate::text::Segment;

/// How often parked streams are looked at when nothing steps.
const PARKED_INTERVAL: Duration = Duration::from_millis(5);
/// How long the loop sleeps at most when there is nothing to do.
const IDLE: Duration = Duration::from_secs(3600);

/// What the rest of the engine tells the step loop.
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

/// One request, from its admission to its end.
struct Stream {
    opening: Opening,
    opened: Instant,
    /// Segments that have not been sent to the encoder.
    text: VecDeque<Segment>,
    text_ended: bool,
    /// The segment that is with the encoder, or has come back from it.
    next: Option<(Segment, Option<Encoded>)>,
    /// Sentences begun.
    sentences: u64,
    /// It holds, or is promised, a row of the decoder.
    admitted: bool,
}

/// What a row of the decoder is doing.
struct Row {
    id: StreamId,
    /// The sentence being decoded; `None` between two.
    sentence: Option<Sentence>,
}

struct Sentence {
    segment: Segment,
    dropout: PrenetDropout,
    rule: StopRule,
    steps: usize,
}

/// The loop's own state.
pub(super) struct StepLoop {
    pub decoder: Decoder,
    pub rules: VoiceRules,
    pub slots: usize,
    pub encoder: SyncSender<EncodeJob>,
    pub vocoder: SyncSender<Message>,
    pub stats: Arc<Stats>,
}

struct State {
    own: StepLoop,
    streams: HashMap<StreamId, Stream>,
    /// Streams that wait for a row, in the order of their admission.
    queue: VecDeque<StreamId>,
    /// Streams that hold or are promised a row.
    admitted: usize,
    /// In the order of the decoder's rows; the first `active` step.
    rows: Vec<Row>,
    active: usize,
    /// When the last step ended, while there was another to make.
    last_step: Option<Instant>,
}

/// The vocoder or the encoder thread has gone: nothing can be finished any more.
struct Gone;

impl StepLoop {
    /// Serves commands until it is told to stop.
    pub fn run(self, commands: &Receiver<Command>) {
        let (streams, queue, rows) = (HashMap::new(), VecDeque::new(), Vec::new());
        let mut state = State { own: self, streams, queue, admitted: 0, rows, active: 0, last_step: None };
        if state.serve(commands).is_err() {
            tracing::error!("the engine has lost a thread and ends");
        }
    }
}

impl State {
    fn serve(&mut self, commands: &Receiver<Command>) -> Result<(), Gone> {
        while self.receive(commands)? {
            self.turn()?;
        }
        Ok(())
    }

    /// Takes every command that is there; waits for one when no row steps. -> false when the engine ends
    fn receive(&mut self, commands: &Receiver<Command>) -> Result<bool, Gone> {
        if self.active == 0 {
            let patience = if self.streams.is_empty() { IDLE } else { PARKED_INTERVAL };
            match commands.recv_timeout(patience) {
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(false),
                Ok(command) => self.obey(command)?,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        for _ in 0..COMMANDS {
            match commands.try_recv() {
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return Ok(false),
                Ok(command) => self.obey(command)?,
                Err(TryRecvError::Empty) => break,
            }
        }
        Ok(true)
    }

    fn obey(&mut self, command: Command) -> Result<(), Gone> {
        match command {
            Command::Wake | Command::Stop => {}
            Command::Open(opening, outlet, manner) => {
                let id = opening.id;
                self.own.vocoder.send(Message::Open(id, outlet, manner)).map_err(|_| Gone)?;
                let (text, opened) = (VecDeque::new(), Instant::now());
                let stream = Stream {
                    opening: *opening,
                    opened,
                    text,
                    text_ended: false,
                    next: None,
                    sentences: 0,
                    admitted: false,
                };
                self.streams.insert(id, stream);
                self.queue.push_back(id);
            }
            Command::Segment(id, segment) => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.text.push_back(segment);
                }
            }
            Command::EndOfText(id) => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.text_ended = true;
                }
            }
            Command::Encoded(id, encoded) => match (*encoded, self.streams.get_mut(&id)) {
                (Ok(encoded), Some(Stream { next: Some((_, place)), .. })) => {
                    *place = Some(encoded);
                    let busy = self.rows.iter().any(|row| row.id == id && row.sentence.is_some());
                    self.own.stats.encoded_ahead.fetch_add(u64::from(busy), Ordering::Relaxed);
                }
                (Err(error), Some(_)) => self.close(id, Some(error))?,
                _ => {}
            },
            Command::CancelAll(reason) => {
                for id in self.streams.keys().copied().collect::<Vec<_>>() {
                    self.close(id, Some(Error::Unavailable(reason.clone())))?;
                }
                // Streams that are decoded, but not yet vocoded or read, are known there alone.
                self.own.vocoder.send(Message::CloseAll(reason)).map_err(|_| Gone)?;
            }
        }
        Ok(())
    }

    /// Looks after every stream, then steps those that can.
    fn turn(&mut self) -> Result<(), Gone> {
        self.drop_the_lost()?;
        self.admit();
        self.encode_ahead()?;
        self.seat()?;
        self.own.stats.active.store(self.active, Ordering::Relaxed);
        self.own.stats.queued.store(self.queue.len(), Ordering::Relaxed);
        if self.active > 0 {
            return self.step();
        }
        self.last_step = None;
        Ok(())
    }

    /// Ends the streams whose reader has gone or was too slow, or whose deadline has passed.
    fn drop_the_lost(&mut self) -> Result<(), Gone> {
        let now = Instant::now();
        let lost = |stream: &Stream| {
            let opening = &stream.opening;
            if opening.flow.is_over() {
                return Some(None);
            }
            let late = stream.sentences == 0 && opening.deadline.is_some_and(|deadline| deadline <= now);
            late.then(|| {
                Some(Error::DeadlineExceeded("the deadline passed before speech could begin".to_owned()))
            })
        };
        let found: Vec<_> =
            self.streams.iter().filter_map(|(&id, stream)| Some((id, lost(stream)?))).collect();
        for (id, error) in found {
            let left = self.streams.get(&id).is_some_and(|stream| stream.opening.flow.is_left());
            self.own.stats.cancelled.fetch_add(u64::from(left), Ordering::Relaxed);
            self.close(id, error)?;
        }
        Ok(())
    }

    /// Promises free rows to the streams that have waited longest. One that has no text yet lets others pass.
    fn admit(&mut self) {
        while self.admitted < self.own.slots {
            let has_text = |id: &StreamId| {
                self.streams.get(id).is_some_and(|stream| !stream.text.is_empty() || stream.text_ended)
            };
            let Some(at) = self.queue.iter().position(has_text) else { return };
            let Some(stream) = self.queue.remove(at).and_then(|id| self.streams.get_mut(&id)) else { return };
            stream.admitted = true;
            self.admitted += 1;
            self.own.stats.queue_wait.observe(stream.opened.elapsed());
        }
    }

    /// Sends next segments to the encoder while it has room, those of streams with nothing to decode first; ends
    /// the streams that have no segment left.
    fn encode_ahead(&mut self) -> Result<(), Gone> {
        let busy: HashSet<StreamId> =
            self.rows.iter().filter(|row| row.sentence.is_some()).map(|row| row.id).collect();
        let idle = self.streams.iter().filter(|(_, stream)| stream.admitted && stream.next.is_none());
        let mut idle: Vec<(bool, StreamId)> = idle.map(|(&id, _)| (busy.contains(&id), id)).collect();
        idle.sort_unstable();
        let mut has_room = true;
        for (busy, id) in idle {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            if stream.text.is_empty() {
                if stream.text_ended && !busy {
                    self.close(id, None)?;
                }
            } else if has_room && let Some(segment) = stream.text.pop_front() {
                let Opening { speaker, flow, .. } = &stream.opening;
                let (ids, speaker, flow) = (segment.ids.clone(), speaker.clone(), Arc::clone(flow));
                match self.own.encoder.try_send(EncodeJob { id, ids, speaker, flow }) {
                    Ok(()) => {
                        stream.opening.flow.symbols_taken(segment.ids.len());
                        stream.next = Some((segment, None));
                    }
                    // Its next result wakes this loop.
                    Err(TrySendError::Full(_)) => {
                        stream.text.push_front(segment);
                        has_room = false;
                    }
                    Err(TrySendError::Disconnected(_)) => return Err(Gone),
                }
            }
        }
        Ok(())
    }

    /// Gives encoded sentences a row, parks the rows that cannot step and brings those that can to the front.
    fn seat(&mut self) -> Result<(), Gone> {
        let ready: Vec<StreamId> = self
            .streams
            .iter()
            .filter(|(_, stream)| matches!(stream.next, Some((_, Some(_)))))
            .map(|(&id, _)| id)
            .collect();
        for id in ready {
            let row = self.rows.iter().position(|row| row.id == id);
            if row.is_none_or(|row| self.rows[row].sentence.is_none())
                && let Err(error) = self.begin(id, row)
            {
                self.close(id, Some(error))?;
            }
        }
        let mut row = 0;
        while row < self.rows.len() {
            let steps = self.can_step(row);
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

    fn can_step(&self, row: usize) -> bool {
        let Row { id, sentence } = &self.rows[row];
        let paused = self.streams.get(id).is_none_or(|stream| stream.opening.flow.is_paused());
        sentence.is_some() && !paused
    }

    /// Begins the encoded sentence of stream `id` in its row, or in a new one.
    fn begin(&mut self, id: StreamId, row: Option<usize>) -> Result<()> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let Some((segment, Some(encoded))) = stream.next.take() else { return Ok(()) };
        let rules = &self.own.rules;
        let sentence = Sentence {
            dropout: PrenetDropout::new(rules.dropout, stream.opening.seed, stream.sentences),
            rule: StopRule::new(rules.stop_threshold, rules.cap(encoded.tokens)),
            steps: 0,
            segment,
        };
        stream.sentences += 1;
        match row {
            Some(row) => {
                self.own.decoder.begin(row, encoded)?;
                self.rows[row].sentence = Some(sentence);
            }
            None => {
                self.own.decoder.join(encoded)?;
                self.rows.push(Row { id, sentence: Some(sentence) });
            }
        }
        Ok(())
    }

    fn swap(&mut self, a: usize, b: usize) -> Result<(), Gone> {
        self.own.decoder.swap(a, b).map_err(|error| {
            tracing::error!("{error}");
            Gone
        })?;
        self.rows.swap(a, b);
        Ok(())
    }

    /// One step of every active row.
    fn step(&mut self) -> Result<(), Gone> {
        let began = Instant::now();
        if let Some(last) = self.last_step {
            self.own.stats.step_gap.observe(began - last);
        }
        let rows = &self.rows;
        let stepped = self.own.decoder.step(self.active, |row, step, layer, mask| {
            if let Some(sentence) = &rows[row].sentence {
                sentence.dropout.fill(step as u64, layer as u64, mask);
            }
        });
        self.own.stats.stepped(self.active, began.elapsed());
        self.last_step = Some(Instant::now());
        if let Err(error) = stepped {
            // What failed was the whole batch: every stream in it ends, those that are parked go on.
            let ids: Vec<StreamId> = self.rows[..self.active].iter().map(|row| row.id).collect();
            let reason = error.to_string();
            return ids.into_iter().try_for_each(|id| self.close(id, Some(Error::Internal(reason.clone()))));
        }
        // From the last row on, since a row that leaves is filled with a later one.
        for row in (0..self.active).rev() {
            self.hand_out(row)?;
        }
        Ok(())
    }

    /// Sends what the last step gave `row` to the vocoder, and ends its sentence if it has come to its end.
    fn hand_out(&mut self, row: usize) -> Result<(), Gone> {
        let id = self.rows[row].id;
        let step = match self.own.decoder.output(row) {
            Ok(step) => step,
            Err(error) => return self.close(id, Some(error)),
        };
        let Some(sentence) = &mut self.rows[row].sentence else { return Ok(()) };
        sentence.steps += 1;
        let end = sentence.rule.after(sentence.steps, step.stop_logits);
        self.own.vocoder.send(Message::Frames(id, step.frames.to_vec())).map_err(|_| Gone)?;
        if let Some(end) = end
            && let Some(sentence) = self.rows[row].sentence.take()
        {
            let (steps, frames) = (sentence.steps, sentence.steps * self.own.rules.reduction_factor);
            let ending = Ending { steps, frames, end };
            self.own.vocoder.send(Message::SentenceEnd(id, sentence.segment, ending)).map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// Ends stream `id`, frees its row and its promise of one.
    fn close(&mut self, id: StreamId, error: Option<Error>) -> Result<(), Gone> {
        let Some(stream) = self.streams.remove(&id) else { return Ok(()) };
        self.admitted -= usize::from(stream.admitted);
        self.queue.retain(|queued| *queued != id);
        if let Some(row) = self.rows.iter().position(|row| row.id == id) {
            let mut row = row;
            if row < self.active {
                self.active -= 1;
                self.swap(row, self.active)?;
                row = self.active;
            }
            let last = self.rows.len() - 1;
            self.swap(row, last)?;
            self.own.decoder.leave_last();
            self.rows.pop();
        }
        self.own.vocoder.send(Message::Close(id, error)).map_err(|_| Gone)
    }
}
