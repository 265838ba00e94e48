//! Frames of many streams in, their chunks out.
//!
//! One thread owns postnet and vocoder. Never waits for a reader: a stream whose reader has no room keeps its
//! chunks, and the step loop pauses it.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use super::step_loop::Command;
use super::stream::Outlet;
use super::{AudioChunk, ChunkSizes, Chunker, Ending, SpokenSentence, StreamId, Tail};
use crate::error::{Error, Result};
use crate::text::Segment;

/// How often a reader without room is asked again.
const FLUSH_INTERVAL: Duration = Duration::from_millis(5);
/// How long the thread sleeps at most when there is nothing to do.
const IDLE: Duration = Duration::from_secs(3600);

/// What the step loop tells the vocoder thread.
pub(super) enum Message {
    Open {
        id: StreamId,
        outlet: Outlet,
        sizes: ChunkSizes,
        speaking_rate: f32,
    },
    /// The next raw frames of the stream's present sentence, row-major [reduction_factor, n_mels].
    Frames(StreamId, Vec<f32>),
    /// The sentence has ended.
    SentenceEnd(StreamId, Segment, Ending),
    /// The stream has ended, for this reason if it did not come to its own end.
    Close(StreamId, Option<Error>),
}

struct Voice {
    outlet: Outlet,
    sizes: ChunkSizes,
    speaking_rate: f32,
    sentence: Option<Chunker>,
    /// Samples of the present sentence so far.
    samples: u64,
}

impl Voice {
    /// Takes raw frames of the present sentence, which begins with the first, and sends the chunks they complete.
    fn speak(&mut self, tail: &mut Tail, raw: &[f32], ended: bool) -> Result<()> {
        let Self { outlet, sizes, speaking_rate, sentence, samples } = self;
        let chunker = sentence.get_or_insert_with(|| Chunker::new(tail, *sizes, *speaking_rate));
        chunker.push(tail, raw, ended, |chunk| {
            *samples += chunk.len() as u64;
            outlet.send(Ok(AudioChunk { samples: chunk, completes: None }));
        })
    }
}

/// Serves messages until nobody can send any more.
pub(super) fn run(
    mut tail: Tail,
    sample_rate_hz: u32,
    inbox: &Receiver<Message>,
    wake: &SyncSender<Command>,
) {
    let mut voices: HashMap<StreamId, Voice> = HashMap::new();
    let mut closing: Vec<Outlet> = Vec::new();
    loop {
        let waiting = flush(&mut voices, &mut closing, wake);
        let message = match inbox.recv_timeout(if waiting { FLUSH_INTERVAL } else { IDLE }) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) if waiting => {
                std::thread::sleep(FLUSH_INTERVAL);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match message {
            Message::Open { id, outlet, sizes, speaking_rate } => {
                voices.insert(id, Voice { outlet, sizes, speaking_rate, sentence: None, samples: 0 });
            }
            Message::Frames(id, raw) => vocode(&mut tail, voices.get_mut(&id), &raw),
            Message::SentenceEnd(id, segment, ending) => {
                end_sentence(&mut tail, voices.get_mut(&id), segment, ending, sample_rate_hz);
            }
            Message::Close(id, error) => {
                if let Some(mut voice) = voices.remove(&id) {
                    if let Some(error) = error {
                        voice.outlet.fail(error);
                    }
                    closing.push(voice.outlet);
                }
            }
        }
    }
}

/// Hands waiting chunks over. -> whether any still wait
fn flush(
    voices: &mut HashMap<StreamId, Voice>,
    closing: &mut Vec<Outlet>,
    wake: &SyncSender<Command>,
) -> bool {
    let mut waiting = false;
    for voice in voices.values_mut().filter(|voice| voice.outlet.flow().stalled_for().is_some()) {
        if voice.outlet.flush() {
            waiting = true;
        } else {
            let _ = wake.try_send(Command::Wake);
        }
    }
    closing.retain_mut(Outlet::flush);
    waiting || !closing.is_empty()
}

fn vocode(tail: &mut Tail, voice: Option<&mut Voice>, raw: &[f32]) {
    let Some(voice) = voice.filter(|voice| !voice.outlet.flow().is_cancelled()) else { return };
    if let Err(error) = voice.speak(tail, raw, false) {
        voice.outlet.fail(error);
    }
}

fn end_sentence(
    tail: &mut Tail,
    voice: Option<&mut Voice>,
    segment: Segment,
    ending: Ending,
    sample_rate_hz: u32,
) {
    let Some(voice) = voice.filter(|voice| !voice.outlet.flow().is_cancelled()) else { return };
    if let Err(error) = voice.speak(tail, &[], true) {
        voice.outlet.fail(error);
        return;
    }
    voice.sentence = None;
    let samples = std::mem::take(&mut voice.samples);
    let silence = segment.pause.duration_ms() as usize * sample_rate_hz as usize / 1000;
    let completes = Some(SpokenSentence { segment, ending, samples });
    voice.outlet.send(Ok(AudioChunk { samples: vec![0.0; silence], completes }));
}
