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

use super::command::{Command, Opening};
use super::encoder_thread::EncodeJob;
use super::rows::{Made, Rows, Sentence};
use super::vocoder_thread::Message;
use super::{COMMANDS, Stats, StreamId, VoiceRules};
use crate::decoder::{Decoder, PrenetDropout, StopRule};
use crate::encoder::Encoded;
use crate::error::{Error, Result};
use crate::text::Segment;

/// How often parked streams are looked at when nothing steps.
const PARKED_INTERVAL: Duration = Duration::from_millis(5);
/// How long the loop sleeps at most when there is nothing to do.
const IDLE: Duration = Duration::from_secs(3600);

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
    /// Since when it holds, or is promised, a row of the decoder.
    seated: Option<Instant>,
}

impl Stream {
    /// Whether a row would be of use to it.
    fn has_text(&self) -> bool {
        !self.text.is_empty() || self.text_ended
    }
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
    rules: VoiceRules,
    slots: usize,
    encoder: SyncSender<EncodeJob>,
    vocoder: SyncSender<Message>,
    stats: Arc<Stats>,
    rows: Rows,
    streams: HashMap<StreamId, Stream>,
    /// Streams that wait for a row, in the order of their admission.
    queue: VecDeque<StreamId>,
    /// Streams that hold or are promised a row.
    seated: usize,
    /// When the last step ended, while there was another to make.
    last_step: Option<Instant>,
}

/// The vocoder or the encoder thread has gone: nothing can be finished any more.
struct Gone;

impl StepLoop {
    /// Serves commands until it is told to stop.
    pub fn run(self, commands: &Receiver<Command>) {
        let Self { decoder, rules, slots, encoder, vocoder, stats } = self;
        let rows = Rows::new(decoder, rules.reduction_factor);
        let (streams, queue) = (HashMap::new(), VecDeque::new());
        let mut state =
            State { rules, slots, encoder, vocoder, stats, rows, streams, queue, seated: 0, last_step: None };
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
        if self.rows.active() == 0 {
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
                self.vocoder.send(Message::Open(id, outlet, manner)).map_err(|_| Gone)?;
                let (text, opened) = (VecDeque::new(), Instant::now());
                let stream = Stream {
                    opening: *opening,
                    opened,
                    text,
                    text_ended: false,
                    next: None,
                    sentences: 0,
                    seated: None,
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
                    let busy = self.rows.busy().any(|busy| busy == id);
                    self.stats.encoded_ahead.fetch_add(u64::from(busy), Ordering::Relaxed);
                }
                (Err(error), Some(_)) => self.close(id, Some(error))?,
                _ => {}
            },
            Command::CancelAll(reason) => {
                for id in self.streams.keys().copied().collect::<Vec<_>>() {
                    self.close(id, Some(Error::Unavailable(reason.clone())))?;
                }
                // Streams that are decoded, but not yet vocoded or read, are known there alone.
                self.vocoder.send(Message::CloseAll(reason)).map_err(|_| Gone)?;
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
        let silent = self.queue.iter().filter(|id| !self.has_text(**id)).count();
        self.stats.active.store(self.rows.active(), Ordering::Relaxed);
        self.stats.seated.store(self.seated, Ordering::Relaxed);
        self.stats.silent.store(silent, Ordering::Relaxed);
        if self.rows.active() > 0 {
            return self.step();
        }
        self.last_step = None;
        Ok(())
    }

    /// Ends the streams whose reader has gone or was too slow, or whose deadline has passed.
    fn drop_the_lost(&mut self) -> Result<(), Gone> {
        let now = Instant::now();
        let end = |stream: &Stream| {
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
            self.streams.iter().filter_map(|(&id, stream)| Some((id, end(stream)?))).collect();
        for (id, error) in found {
            if let Some(flow) = self.streams.get(&id).map(|stream| &stream.opening.flow)
                && flow.is_left()
            {
                let stats = &self.stats;
                flow.count_once(if flow.is_given_up() { &stats.slow_readers } else { &stats.cancelled });
            }
            self.close(id, error)?;
        }
        Ok(())
    }

    /// Promises free rows to the streams that have waited longest. One that has no text yet lets others pass.
    fn admit(&mut self) {
        while self.seated < self.slots {
            let Some(at) = self.queue.iter().position(|id| self.has_text(*id)) else { return };
            let Some(stream) = self.queue.remove(at).and_then(|id| self.streams.get_mut(&id)) else { return };
            stream.seated = Some(Instant::now());
            self.seated += 1;
            self.stats.queued.fetch_sub(1, Ordering::Relaxed);
            self.stats.queue_wait.observe(stream.opened.elapsed());
        }
    }

    fn has_text(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_some_and(Stream::has_text)
    }

    /// Sends next segments to the encoder while it has room, those of streams with nothing to decode first; ends
    /// the streams that have no segment left.
    fn encode_ahead(&mut self) -> Result<(), Gone> {
        let busy: HashSet<StreamId> = self.rows.busy().collect();
        let idle = self.streams.iter().filter(|(_, stream)| stream.seated.is_some() && stream.next.is_none());
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
                match self.encoder.try_send(EncodeJob { id, ids, speaker, flow }) {
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
        let busy: HashSet<StreamId> = self.rows.busy().collect();
        for id in ready.into_iter().filter(|id| !busy.contains(id)) {
            if let Err(error) = self.begin(id) {
                self.close(id, Some(error))?;
            }
        }
        let streams = &self.streams;
        let is_paused = |id: StreamId| streams.get(&id).is_none_or(|stream| stream.opening.flow.is_paused());
        self.rows.arrange(is_paused).map_err(lost)
    }

    /// Begins the encoded sentence of stream `id`.
    fn begin(&mut self, id: StreamId) -> Result<()> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let Some((segment, Some(encoded))) = stream.next.take() else { return Ok(()) };
        let rules = &self.rules;
        let sentence = Sentence {
            dropout: PrenetDropout::new(rules.dropout, stream.opening.seed, stream.sentences),
            rule: StopRule::new(rules.stop_threshold, rules.cap(encoded.tokens)),
            steps: 0,
            segment,
        };
        stream.sentences += 1;
        self.rows.begin(id, encoded, sentence)
    }

    /// One step of every active row.
    fn step(&mut self) -> Result<(), Gone> {
        let began = Instant::now();
        if let Some(last) = self.last_step {
            self.stats.step_gap.observe(began - last);
        }
        let stepped = self.rows.step();
        self.stats.stepped(self.rows.active(), began.elapsed());
        self.last_step = Some(Instant::now());
        let ids = self.rows.stepping();
        if let Err(error) = stepped {
            // What failed was the whole batch: every stream in it ends, those that are parked go on.
            let reason = error.to_string();
            return ids.into_iter().try_for_each(|id| self.close(id, Some(Error::Internal(reason.clone()))));
        }
        // From the last row on, since a row that leaves is filled with a later one.
        ids.into_iter().enumerate().rev().try_for_each(|(row, id)| self.hand_out(row, id))
    }

    /// Sends what the last step gave stream `id` in `row` to the vocoder.
    fn hand_out(&mut self, row: usize, id: StreamId) -> Result<(), Gone> {
        match self.rows.take(row) {
            Err(error) => self.close(id, Some(error)),
            Ok(None) => Ok(()),
            Ok(Some(Made { frames, prosody, ended })) => {
                self.vocoder.send(Message::Frames(id, frames, prosody)).map_err(|_| Gone)?;
                let Some((segment, ending)) = ended else { return Ok(()) };
                self.vocoder.send(Message::SentenceEnd(id, segment, ending)).map_err(|_| Gone)
            }
        }
    }

    /// Ends stream `id`, frees its row and its promise of one.
    fn close(&mut self, id: StreamId, error: Option<Error>) -> Result<(), Gone> {
        let Some(stream) = self.streams.remove(&id) else { return Ok(()) };
        match stream.seated {
            Some(since) => {
                self.seated -= 1;
                self.stats.gave_back(since.elapsed());
            }
            None => {
                self.queue.retain(|queued| *queued != id);
                self.stats.queued.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.rows.leave(id).map_err(lost)?;
        self.vocoder.send(Message::Close(id, error)).map_err(|_| Gone)
    }
}

/// Where the rows cannot be told apart any more, no stream can go on.
fn lost(error: Error) -> Gone {
    tracing::error!("{error}");
    Gone
}
