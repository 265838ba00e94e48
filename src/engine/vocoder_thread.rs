//! Frames of many streams in, their chunks out.
//!
//! One thread owns postnet and vocoder. Whose audio is about to run out comes first, then who has heard nothing
//! yet, then whose audio runs out next. Never waits for a reader: a stream whose reader has no room keeps its chunks, the step
//! loop pauses it, and it ends when the reader takes nothing for too long.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use super::command::Command;
use super::stream::Outlet;
use super::{AudioChunk, Chunker, Ending, MESSAGES, Manner, SpokenSentence, Stats, StreamId, Tail};
use crate::error::{Error, Result};
use crate::text::{Prosody, Segment};

/// How often a reader without room is asked again.
const FLUSH_INTERVAL: Duration = Duration::from_millis(5);
/// How long the thread sleeps at most when there is nothing to do.
const IDLE: Duration = Duration::from_secs(3600);
/// A stream with less audio than this ahead of its playback is served before one that has not begun: a beginning
/// may wait, a gap is heard. Long enough for some chunks of others, shorter than the first chunk of the default voice.
const URGENT: Duration = Duration::from_millis(50);
/// What each stream adds to that where there are many: all of them may need a chunk before one's turn comes again.
const URGENT_PER_STREAM: Duration = Duration::from_millis(4);
/// Frames beyond the next chunk with which a stream pauses until the vocoder has caught up.
const FRAMES_AHEAD: usize = 256;

/// What the step loop tells the vocoder thread.
pub(super) enum Message {
    Open(StreamId, Outlet, Manner),
    /// The next raw frames of the stream's present sentence, row-major [reduction_factor, n_mels], and how it is
    /// delivered.
    Frames(StreamId, Vec<f32>, Prosody),
    /// The sentence has ended.
    SentenceEnd(StreamId, Segment, Ending),
    /// The stream has no more frames, for this reason if it did not come to its own end.
    Close(StreamId, Option<Error>),
    /// Every stream ends now, for this reason.
    CloseAll(String),
}

struct Voice {
    outlet: Outlet,
    manner: Manner,
    /// In the order of speaking; the last one may not have ended.
    sentences: VecDeque<SentenceInWork>,
    /// When a reader that plays what it gets will run out of audio; `None` before the first chunk.
    plays_until: Option<Instant>,
    closed: bool,
}

struct SentenceInWork {
    chunker: Chunker,
    /// What its samples are multiplied with.
    gain: f32,
    /// Samples made so far.
    samples: u64,
    /// Its text and how it ended; `None` while frames of it still come.
    ended: Option<(Segment, Ending)>,
}

/// The thread's own state.
pub(super) struct VocoderLoop {
    pub tail: Tail,
    pub sample_rate_hz: u32,
    pub slow_client_timeout: Duration,
    pub wake: SyncSender<Command>,
    pub stats: Arc<Stats>,
}

struct State {
    own: VocoderLoop,
    voices: HashMap<StreamId, Voice>,
}

impl VocoderLoop {
    /// Serves messages until nobody can send any more.
    pub fn run(self, inbox: &Receiver<Message>) {
        let mut state = State { own: self, voices: HashMap::new() };
        while state.receive(inbox) {
            if let Some(id) = state.most_urgent() {
                state.vocode(id);
            }
            state.deliver();
        }
    }
}

impl State {
    /// Takes the messages that are there; waits for one when no chunk can be made. -> false at the end
    fn receive(&mut self, inbox: &Receiver<Message>) -> bool {
        if self.most_urgent().is_none() {
            let stalled = self.voices.values().any(|voice| voice.outlet.flow().stalled_for().is_some());
            match inbox.recv_timeout(if stalled { FLUSH_INTERVAL } else { IDLE }) {
                Ok(message) => self.obey(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        for _ in 0..MESSAGES {
            match inbox.try_recv() {
                Ok(message) => self.obey(message),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    fn obey(&mut self, message: Message) {
        match message {
            Message::Open(id, outlet, manner) => {
                let sentences = VecDeque::new();
                self.voices.insert(id, Voice { outlet, manner, sentences, plays_until: None, closed: false });
            }
            Message::Frames(id, raw, prosody) => {
                if let Some(voice) = self.voices.get_mut(&id) {
                    voice.present_sentence(&self.own.tail, prosody).chunker.push(&raw);
                    voice.report_backlog();
                }
            }
            Message::SentenceEnd(id, segment, ending) => {
                if let Some(voice) = self.voices.get_mut(&id) {
                    let sentence = voice.present_sentence(&self.own.tail, segment.prosody);
                    sentence.chunker.end();
                    sentence.ended = Some((segment, ending));
                }
            }
            Message::Close(id, Some(error)) => self.fail(id, error),
            Message::Close(id, None) => {
                if let Some(voice) = self.voices.get_mut(&id) {
                    voice.closed = true;
                }
            }
            Message::CloseAll(reason) => {
                for (_, voice) in self.voices.drain() {
                    voice.outlet.fail(Error::Unavailable(reason.clone()));
                }
            }
        }
    }

    /// The stream with a chunk to make whose reader needs it first.
    fn most_urgent(&self) -> Option<StreamId> {
        let turn = URGENT_PER_STREAM * u32::try_from(self.voices.len()).unwrap_or(u32::MAX).min(1000);
        let soon = Instant::now() + URGENT.max(turn);
        let rank = |voice: &Voice| match voice.plays_until {
            Some(until) if until < soon => 0,
            None => 1,
            Some(_) => 2,
        };
        let ready = self.voices.iter().filter(|(_, voice)| voice.can_vocode());
        ready.min_by_key(|&(&id, voice)| (rank(voice), voice.plays_until, id)).map(|(&id, _)| id)
    }

    /// Makes the next chunk of stream `id`.
    fn vocode(&mut self, id: StreamId) {
        let began = Instant::now();
        let Some(voice) = self.voices.get_mut(&id) else { return };
        let made = voice.vocode(&mut self.own.tail, self.own.sample_rate_hz);
        self.own.stats.vocode_time.observe(began.elapsed());
        match made {
            Ok(()) => {
                if voice.report_backlog() {
                    self.wake();
                }
            }
            Err(error) => self.fail(id, error),
        }
    }

    /// Hands waiting chunks over, and lets go of the streams that are finished, left or too slow.
    fn deliver(&mut self) {
        let patience = self.own.slow_client_timeout;
        let (mut over, mut moved) = (Vec::new(), false);
        for (&id, voice) in &mut self.voices {
            let flow = Arc::clone(voice.outlet.flow());
            if flow.stalled_for().is_some() {
                voice.outlet.flush();
                moved |= flow.stalled_for().is_none();
            }
            let slow = flow.stalled_for().is_some_and(|stalled| stalled > patience);
            let finished = voice.closed && voice.sentences.is_empty() && flow.stalled_for().is_none();
            if slow || finished || flow.is_left() {
                over.push((id, slow && !flow.is_left()));
            }
        }
        for (id, slow) in over {
            if slow {
                if let Some(voice) = self.voices.get(&id) {
                    voice.outlet.flow().count_once(&self.own.stats.slow_readers);
                }
                let reason = format!("nothing was taken for {} ms", patience.as_millis());
                self.fail(id, Error::TooSlow(reason));
            } else if let Some(voice) = self.voices.remove(&id) {
                let flow = voice.outlet.flow();
                if flow.is_given_up() {
                    flow.count_once(&self.own.stats.slow_readers);
                }
                voice.outlet.finish();
            }
        }
        if moved {
            self.wake();
        }
    }

    fn fail(&mut self, id: StreamId, error: Error) {
        if let Some(voice) = self.voices.remove(&id) {
            voice.outlet.fail(error);
            self.wake();
        }
    }

    fn wake(&self) {
        let _ = self.own.wake.try_send(Command::Wake);
    }
}

impl Voice {
    /// The sentence whose frames are coming in.
    fn present_sentence(&mut self, tail: &Tail, prosody: Prosody) -> &mut SentenceInWork {
        if self.sentences.back().is_none_or(|sentence| sentence.ended.is_some()) {
            let speaking_rate = self.manner.speaking_rate * prosody.rate;
            let chunker = Chunker::new(tail, self.manner.chunk_sizes, speaking_rate);
            let gain = prosody.gain();
            self.sentences.push_back(SentenceInWork { chunker, gain, samples: 0, ended: None });
        }
        let last = self.sentences.len() - 1;
        &mut self.sentences[last]
    }

    fn can_vocode(&self) -> bool {
        let flow = self.outlet.flow();
        !flow.is_over()
            && flow.stalled_for().is_none()
            && self.sentences.front().is_some_and(|sentence| sentence.chunker.is_ready())
    }

    fn vocode(&mut self, tail: &mut Tail, sample_rate_hz: u32) -> Result<()> {
        let Some(sentence) = self.sentences.front_mut() else { return Ok(()) };
        let Some(mut samples) = sentence.chunker.next(tail)? else { return Ok(()) };
        if sentence.gain != 1.0 {
            samples.iter_mut().for_each(|sample| *sample *= sentence.gain);
        }
        sentence.samples += samples.len() as u64;
        let total = sentence.samples;
        let ended = if sentence.chunker.is_done() { sentence.ended.take() } else { None };
        if !samples.is_empty() {
            self.send(AudioChunk { samples, completes: None }, sample_rate_hz);
        }
        if let Some((segment, ending)) = ended {
            self.sentences.pop_front();
            let silence = segment.pause.duration_ms() as usize * sample_rate_hz as usize / 1000;
            let completes = Some(SpokenSentence { segment, ending, samples: total });
            self.send(AudioChunk { samples: vec![0.0; silence], completes }, sample_rate_hz);
        }
        Ok(())
    }

    fn send(&mut self, chunk: AudioChunk, sample_rate_hz: u32) {
        let now = Instant::now();
        let length = Duration::from_secs(chunk.samples.len() as u64) / sample_rate_hz;
        self.plays_until = Some(self.plays_until.map_or(now, |until| until.max(now)) + length);
        self.outlet.send(chunk);
    }

    /// Tells the step loop whether this stream's frames pile up. -> whether they have ceased to
    fn report_backlog(&self) -> bool {
        let frames = self.sentences.iter().map(|sentence| sentence.chunker.surplus_frames()).sum::<usize>();
        // A stream pauses only while a chunk can be made of what is there: it can never wait for itself.
        let behind = frames > FRAMES_AHEAD
            && self.sentences.front().is_some_and(|sentence| sentence.chunker.is_ready());
        self.outlet.flow().set_behind(behind) && !behind
    }
}
