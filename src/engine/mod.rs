//! A [`StreamRequest`] and its segments in, a stream of [`AudioChunk`]s out, many at once.
//!
//! Three threads own the sessions: one encodes, one steps every active stream together, one refines and vocodes
//! what the steps have made. Bounded channels join them. Never queues without a bound, and never lets one reader
//! hold up another.

mod admission;
mod chunker;
mod command;
mod encoder_thread;
mod rows;
mod stats;
mod step_loop;
mod stream;
mod vocoder_thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use chunker::{ChunkSizes, Chunker, Tail};
pub use stats::{Distribution, Stats};
pub use stream::{AudioStream, TextInlet};

use admission::Admission;
use command::{Command, Opening};
use step_loop::StepLoop;
use vocoder_thread::VocoderLoop;

use crate::decoder::{Decoder, End, StopRule, cache_bytes_per_stream};
use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::postnet::Postnet;
use crate::precision::Plan;
use crate::runtime::Runtime;
pub use crate::tempo::SPEAKING_RATES;
use crate::text::Segment;
use crate::vocoder::Vocoder;
use crate::voice::Voice;

/// Commands that may wait for the step loop, which takes them between two steps.
const COMMANDS: usize = 4096;
/// Messages that may wait for the vocoder thread, which takes them between two chunks.
const MESSAGES: usize = 1024;
/// Sentences that may wait for the encoder thread: enough to keep it busy, few enough that a stream which has
/// nothing to decode is soon served.
const SENTENCES_AHEAD: usize = 2;

/// After what time a place may be free, before any request has ended, and at the least.
const RETRY_UNKNOWN: Duration = Duration::from_secs(1);
const RETRY_LEAST: Duration = Duration::from_millis(10);

/// The seed of a request that names none.
pub const DEFAULT_SEED: u64 = 42;

/// The number of a stream within its engine.
pub type StreamId = u64;

/// How an engine is set up.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Threads in all, at least 1.
    pub threads: usize,
    /// Streams that step together at most.
    pub max_streams: usize,
    /// Requests that may wait for a stream to end.
    pub queue: usize,
    /// What the caches may take; fewer streams step together where it does not suffice.
    pub kv_cache_bytes: usize,
    /// A reader that takes nothing for this long, while chunks wait for it, is dropped.
    pub slow_client_timeout: Duration,
}

impl EngineOptions {
    /// An engine for one stream at a time, whose reader may take as long as it likes.
    pub fn solo(threads: usize) -> Self {
        let slow_client_timeout = Duration::MAX;
        Self { threads, max_streams: 1, queue: 0, kv_cache_bytes: usize::MAX, slow_client_timeout }
    }
}

/// How a request is spoken.
#[derive(Debug, Clone)]
pub struct StreamRequest {
    /// [speaker_embedding_dim], before its L2 normalisation
    pub speaker: Vec<f32>,
    /// Chooses the prenet's dropout masks: the same seed gives the same audio.
    pub seed: u64,
    pub chunk_sizes: ChunkSizes,
    /// How fast, within [`SPEAKING_RATES`], also with each segment's own rate; 1 is the voice's own pace. The pitch stays, and so do the pauses
    /// between sentences.
    pub speaking_rate: f32,
    /// A request that has not begun to be spoken by then is dropped.
    pub deadline: Option<Instant>,
}

impl StreamRequest {
    /// A request for `speaker` with the default seed and chunks, and without a deadline.
    pub fn new(speaker: Vec<f32>) -> Self {
        Self {
            speaker,
            seed: DEFAULT_SEED,
            chunk_sizes: ChunkSizes::default(),
            speaking_rate: 1.0,
            deadline: None,
        }
    }
}

/// What of a request is the vocoder thread's.
#[derive(Debug, Clone, Copy)]
struct Manner {
    chunk_sizes: ChunkSizes,
    speaking_rate: f32,
}

/// A run of samples, in playing order.
#[derive(Debug, Clone)]
pub struct AudioChunk {
    /// f32 in −1..1 at the voice's sample rate, one channel, a whole number of mel frames or a silence
    pub samples: Vec<f32>,
    /// The sentence that this chunk completes, if it does.
    pub completes: Option<SpokenSentence>,
}

/// What became of one sentence.
#[derive(Debug, Clone)]
pub struct SpokenSentence {
    /// The text that was spoken, its symbols, and what the voice could not pronounce.
    pub segment: Segment,
    pub ending: Ending,
    /// Samples of the sentence at the voice's rate, without the silence behind it.
    pub samples: u64,
}

/// How a sentence came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub steps: usize,
    /// Frames that the decoder gave, before a change of pace.
    pub frames: usize,
    pub end: End,
}

/// What of a voice decides how its sentences run and end.
struct VoiceRules {
    dropout: f32,
    stop_threshold: f32,
    max_frames_per_symbol: f32,
    reduction_factor: usize,
    positions: usize,
}

impl VoiceRules {
    fn new(voice: &Voice) -> Self {
        Self {
            dropout: voice.config.speech_decoder_prenet_dropout,
            stop_threshold: voice.stop_threshold,
            max_frames_per_symbol: voice.max_frames_per_symbol,
            reduction_factor: voice.config.reduction_factor,
            positions: voice.config.max_speech_positions,
        }
    }

    fn cap(&self, tokens: usize) -> usize {
        StopRule::cap(tokens, self.max_frames_per_symbol, self.reduction_factor, self.positions)
    }
}

/// One voice, speaking many requests at once.
pub struct Engine {
    commands: SyncSender<Command>,
    admission: Arc<Admission>,
    stats: Arc<Stats>,
    next_id: AtomicU64,
    slots: usize,
    cache_bytes: usize,
    slow_client_timeout: Duration,
    threads: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Builds every graph of `voice` as `plan` says, allocates the caches and starts the threads.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when the cache budget does not hold one stream.
    pub fn start(runtime: &Runtime, voice: &Voice, plan: &Plan, options: &EngineOptions) -> Result<Self> {
        let per_stream = cache_bytes_per_stream(voice, plan.decoder.executed.kv_cache);
        let slots = options.max_streams.min(options.kv_cache_bytes / per_stream);
        if slots == 0 {
            let budget = options.kv_cache_bytes;
            return Err(Error::InvalidRequest(format!(
                "a KV cache of {budget} bytes for {} streams: one stream takes {per_stream}",
                options.max_streams
            )));
        }
        let cache_bytes = slots * per_stream;
        tracing::info!("KV cache of {cache_bytes} bytes for {slots} streams");

        let decoder_threads = options.threads.saturating_sub(1).max(1);
        // Alone, a sentence is encoded sooner by two threads; in company they take the core that the steps need.
        let encoder_threads = if slots > 1 { 1 } else { options.threads };
        let encoder = Encoder::load(runtime, voice, plan, encoder_threads)?;
        let decoder = Decoder::load(runtime, voice, plan, decoder_threads, slots)?;
        let postnet = Postnet::load(runtime, voice, plan, 1)?;
        let tail = Tail { postnet, vocoder: Vocoder::load(runtime, voice, plan, 1)? };

        let stats = Arc::new(Stats::new(slots));
        let (commands, command_inbox) = sync_channel(COMMANDS);
        let (jobs, job_inbox) = sync_channel(SENTENCES_AHEAD);
        let (messages, message_inbox) = sync_channel(MESSAGES);
        let step_loop = StepLoop {
            decoder,
            rules: VoiceRules::new(voice),
            slots,
            encoder: jobs,
            vocoder: messages,
            stats: Arc::clone(&stats),
        };
        let vocoder_loop = VocoderLoop {
            tail,
            sample_rate_hz: voice.vocoder_config.sample_rate_hz(),
            slow_client_timeout: options.slow_client_timeout,
            wake: commands.clone(),
            stats: Arc::clone(&stats),
        };
        let (results, encoder_stats) = (commands.clone(), Arc::clone(&stats));
        let threads = vec![
            spawn("decoder", move || step_loop.run(&command_inbox))?,
            spawn("encoder", move || encoder_thread::run(encoder, &job_inbox, &results, &encoder_stats))?,
            spawn("vocoder", move || vocoder_loop.run(&message_inbox))?,
        ];

        let (admission, next_id) = (Admission::new(slots, options.queue), AtomicU64::new(0));
        let slow_client_timeout = options.slow_client_timeout;
        Ok(Self { commands, admission, stats, next_id, slots, cache_bytes, slow_client_timeout, threads })
    }

    /// Opens a stream, or refuses it at the door.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a speaking rate outside [`SPEAKING_RATES`], [`Error::Overloaded`] when streams
    /// and queue are taken, [`Error::Unavailable`] while draining.
    pub fn open(&self, request: StreamRequest) -> Result<(TextInlet, AudioStream)> {
        let StreamRequest { speaker, seed, chunk_sizes, speaking_rate, deadline } = request;
        if !SPEAKING_RATES.contains(&speaking_rate) {
            let (low, high) = SPEAKING_RATES.into_inner();
            return Err(Error::InvalidRequest(format!(
                "a speaking rate of {speaking_rate}: it must be {low} to {high}"
            )));
        }
        let permit = self.admission.admit(self.retry_after())?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (inlet, stream, outlet) = stream::stream(id, permit, &self.commands, speaking_rate);
        let flow = Arc::clone(outlet.flow());
        let opening = Opening { id, speaker, seed, flow, deadline };
        let manner = Manner { chunk_sizes, speaking_rate };
        self.stats.queued.fetch_add(1, Ordering::Relaxed);
        self.commands.send(Command::Open(Box::new(opening), outlet, manner)).map_err(|_| {
            self.stats.queued.fetch_sub(1, Ordering::Relaxed);
            Error::Unavailable("the engine has ended".to_owned())
        })?;
        Ok((inlet, stream))
    }

    /// When somebody who is refused now may find a place.
    fn retry_after(&self) -> Duration {
        match self.stats.turnover() {
            Duration::ZERO => RETRY_UNKNOWN,
            turnover => turnover.max(RETRY_LEAST),
        }
    }

    /// Refuses new requests from now on; those in work go on.
    pub fn drain(&self) {
        self.admission.drain();
    }

    /// Ends every stream for `reason`.
    pub fn cancel_all(&self, reason: &str) {
        let _ = self.commands.send(Command::CancelAll(reason.to_owned()));
    }

    /// Requests that have been admitted and have not ended.
    pub fn in_flight(&self) -> usize {
        self.admission.in_flight()
    }

    /// Streams that can step together.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes that the caches of all slots take.
    pub fn cache_bytes(&self) -> usize {
        self.cache_bytes
    }

    /// For how long a reader may take nothing.
    pub fn slow_client_timeout(&self) -> Duration {
        self.slow_client_timeout
    }

    pub fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }
}

/// Streams that are still in work end with an error; when this returns, the threads have ended and the memory is
/// free.
impl Drop for Engine {
    fn drop(&mut self) {
        // The other threads end when the step loop lets go of their channels.
        let _ = self.commands.send(Command::Stop);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the engine had died");
            }
        }
        give_back_memory();
    }
}

/// Hands what the sessions have freed back to the system: glibc would keep it, in every arena that a thread has used.
fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes a number and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let fault = |e| Error::Internal(format!("the {name} thread did not start: {e}"));
    thread::Builder::new().name(name.to_owned()).spawn(body).map_err(fault)
}
