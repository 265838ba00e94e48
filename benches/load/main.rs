//! Streams at once against one engine: when each hears something first, whether its audio keeps ahead of its
//! playback, and what the engine does meanwhile.
//!
//! Every stream is read as fast as its chunks come; a chunk is late when it arrives after a player that started
//! with the first chunk would have needed it. `cargo bench --bench load -- [levels|grpc|memory|voices|length]` runs a part:
//! `grpc` is a server over loopback by its clients' clocks, `voices` are engines that come and go.

mod grpc;
#[path = "../support/mod.rs"]
mod support;

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use mezzavoce::engine::{EngineOptions, StreamRequest};
use mezzavoce::error::{Error, Result};
use mezzavoce::repertoire::{Repertoire, VoiceOptions, VoiceSource};
use mezzavoce::runtime::Accelerator;
use mezzavoce::synthesizer::{Script, Synthesizer};
use mezzavoce::telemetry::Metrics;
use mezzavoce::text::Reading;
use mezzavoce::voice::Voice;
use support::{PRECISION, THREADS, plan, runtime, speaker};

const LEVELS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Every level is measured this often; a figure is the median.
const ROUNDS: usize = 3;

/// About twelve words and 3.5 s each.
const SENTENCES: [&str; 13] = [
    "The river runs past the old mill and under the stone bridge.",
    "Nobody has lived in that house since the winter of the flood.",
    "In summer the children of the village come here to swim all day.",
    "Along the path in autumn lie the yellow leaves of seven tall trees.",
    "Whoever walks here in the evening hears only the water and the wind.",
    "My sister wrote a long letter and sent it home before the holiday.",
    "They sold the boat, the nets, and the small red house above the harbour.",
    "A train leaves for the coast at nine and another one at noon.",
    "Please put the kettle on, and tell me what the doctor said to you.",
    "We counted forty ships that morning, and none of them came back again.",
    "The baker opens at six, but the bread is ready an hour before that.",
    "If it rains tomorrow, we shall stay inside and play cards until dinner.",
    "Her brother found the key under a flower pot beside the garden door.",
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let runs = |part: &str| wanted.is_empty() || wanted.iter().any(|word| word == part);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average before: {}", load.trim());
    if runs("levels") {
        levels();
    }
    if runs("grpc") {
        grpc::measure();
    }
    if runs("memory") {
        memory();
    }
    if runs("voices") {
        voices();
    }
    if runs("length") {
        length();
    }
}

/// What a client hears of one text.
struct Heard {
    /// When each chunk came, from the call on, and its seconds of audio.
    chunks: Vec<(Duration, f64)>,
    wall: Duration,
}

impl Heard {
    fn first(&self) -> Duration {
        self.chunks.first().map_or(Duration::MAX, |&(arrival, _)| arrival)
    }

    fn audio_s(&self) -> f64 {
        self.chunks.iter().map(|(_, audio_s)| audio_s).sum()
    }

    /// By how much each chunk after the first came too late.
    fn lateness(&self) -> Vec<Duration> {
        let mut needed = self.first().as_secs_f64();
        let late = |&(arrival, audio_s): &(Duration, f64)| {
            let late = arrival.as_secs_f64() - needed;
            needed += audio_s;
            Duration::from_secs_f64(late.max(0.0))
        };
        self.chunks.iter().map(late).skip(1).collect()
    }
}

struct Client {
    synthesizer: Synthesizer,
    speaker: Vec<f32>,
}

impl Client {
    fn new(max_streams: usize) -> Self {
        let voice = Voice::embedded().unwrap();
        let options = EngineOptions {
            threads: THREADS,
            max_streams,
            queue: 0,
            kv_cache_bytes: 4 << 30,
            slow_client_timeout: Duration::from_secs(10),
        };
        let synthesizer = Synthesizer::load(runtime(), &voice, &plan(&voice, PRECISION), &options).unwrap();
        Self { synthesizer, speaker: speaker(&voice) }
    }

    /// Speaks `text` and hears it to the end: all that another transport would do in another way.
    fn hear(&self, text: &str) -> Result<Heard> {
        let began = Instant::now();
        let segments =
            self.synthesizer.passage(&Script::Text(text.to_owned()), &Reading::default())?.segments;
        let stream = self.synthesizer.speak(segments, StreamRequest::new(self.speaker.clone()))?;
        let rate = f64::from(self.synthesizer.sample_rate_hz());
        let mut chunks = Vec::new();
        for chunk in stream {
            let samples = chunk?.samples.len();
            if samples > 0 {
                chunks.push((began.elapsed(), samples as f64 / rate));
            }
        }
        Ok(Heard { chunks, wall: began.elapsed() })
    }
}

/// The text of stream number `stream`: three sentences that no other stream of a level speaks in this order.
fn text(stream: usize) -> String {
    let sentence =
        |offset: usize| SENTENCES[(stream + offset * (1 + stream / SENTENCES.len())) % SENTENCES.len()];
    format!("{} {} {}", sentence(0), sentence(3), sentence(7))
}

/// One round of a level: figures by the column that they are printed in.
fn round(client: &Client, streams: usize) -> [f64; COLUMNS.len()] {
    let stats = client.synthesizer.engine().stats();
    let count = || stats.steps.load(std::sync::atomic::Ordering::Relaxed);
    let (barrier, steps, cpu_before) = (Barrier::new(streams + 1), count(), cpu_s());
    let (heard, wall) = thread::scope(|scope| {
        let barrier = &barrier;
        let speak = |stream| {
            scope.spawn(move || {
                barrier.wait();
                client.hear(&text(stream))
            })
        };
        let threads: Vec<_> = (0..streams).map(speak).collect();
        barrier.wait();
        let began = Instant::now();
        let heard: Vec<Result<Heard>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        (heard, began.elapsed().as_secs_f64())
    });
    let steps = count() - steps;
    let refused = heard.iter().filter(|heard| matches!(heard, Err(Error::Overloaded { .. }))).count();
    let heard: Vec<Heard> = heard.into_iter().filter_map(Result::ok).collect();
    assert_eq!(heard.len() + refused, streams, "a stream failed");

    let first: Vec<f64> = heard.iter().map(|heard| heard.first().as_secs_f64() * 1e3).collect();
    let late: Vec<f64> =
        heard.iter().flat_map(Heard::lateness).map(|late| late.as_secs_f64() * 1e3).collect();
    let audio_s: f64 = heard.iter().map(Heard::audio_s).sum();
    let factors: Vec<f64> = heard.iter().map(|heard| heard.wall.as_secs_f64() / heard.audio_s()).collect();
    let late_share = late.iter().filter(|&&late| late > 0.0).count() as f64 / late.len().max(1) as f64;
    [
        quantile(&first, 0.5),
        quantile(&first, 0.99),
        quantile(&factors, 0.5),
        wall / audio_s,
        late_share * 100.0,
        quantile(&late, 1.0),
        refused as f64,
        rss_mib(),
        steps as f64 / wall,
        (cpu_s() - cpu_before) / audio_s,
    ]
}

const COLUMNS: [&str; 10] = [
    "first p50 ms",
    "first p99 ms",
    "RTF stream",
    "RTF all",
    "late %",
    "latest ms",
    "refused",
    "RSS MiB",
    "steps/s",
    "CPU/audio",
];

fn levels() {
    let client = Client::new(32);
    client.hear(&text(0)).unwrap();
    println!("\nstreams  {}", COLUMNS.map(|name| format!("{name:>12}")).join(" "));
    for streams in LEVELS {
        let rounds: Vec<_> = (0..ROUNDS).map(|_| round(&client, streams)).collect();
        let median = |column| quantile(&rounds.iter().map(|round| round[column]).collect::<Vec<_>>(), 0.5);
        let row = (0..COLUMNS.len()).map(|column| format!("{:>12.3}", median(column)));
        println!("{streams:>7}  {}", row.collect::<Vec<_>>().join(" "));
    }
    let stats = client.synthesizer.engine().stats();
    println!("\nstreams in a step: mean step time, steps");
    for rows in [1, 2, 4, 8, 16, 24, 32] {
        let (steps, time) = stats.steps_of(rows);
        println!("{rows:>7}: {:>8.3} ms, {steps}", time.as_secs_f64() * 1e3 / steps.max(1) as f64);
    }
    for (name, times) in [
        ("step gap", &stats.step_gap),
        ("encode", &stats.encode_time),
        ("vocode a chunk", &stats.vocode_time),
    ] {
        let (count, mean) = (times.count(), times.sum().as_secs_f64() * 1e3 / times.count().max(1) as f64);
        println!(
            "{name}: {count} times, mean {mean:.3} ms, longest {:.1} ms",
            times.max().as_secs_f64() * 1e3
        );
    }
}

/// Whether memory stays where it is while a voice is loaded and unloaded.
fn voices() {
    let engine = EngineOptions {
        threads: THREADS,
        max_streams: 32,
        queue: 0,
        kv_cache_bytes: 512 << 20,
        slow_client_timeout: Duration::from_secs(10),
    };
    let options = VoiceOptions { precision: PRECISION, accelerator: Accelerator::Cpu, engine, lexicon: None };
    let repertoire = Repertoire::new(Arc::clone(runtime()), options, Metrics::new());
    println!("\nvoices loaded and unloaded  RSS MiB");
    for round in 1..=30 {
        repertoire.add(&VoiceSource { name: Some("a".to_owned()), directory: None }).unwrap();
        assert!(repertoire.unload("a").unwrap());
        if round == 1 || round % 5 == 0 {
            println!("{round:>26}  {:>7.1}", rss_mib());
        }
    }
}

/// Whether memory stays where it is, over requests of random length.
fn memory() {
    let client = Client::new(8);
    let (mut random, mut after_100) = (0x9e37_79b9_u64, 0.0);
    println!("\nrequests  RSS MiB");
    for batch in 0..50 {
        let texts: Vec<String> = (0..10)
            .map(|_| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let words = 1 + (random >> 33) as usize % 30;
                let all = text((random >> 40) as usize % 64);
                all.split_whitespace().take(words).collect::<Vec<_>>().join(" ")
            })
            .collect();
        for pair in texts.chunks(5) {
            thread::scope(|scope| {
                for text in pair {
                    scope.spawn(|| client.hear(text).unwrap());
                }
            });
        }
        let done = (batch + 1) * 10;
        if done == 100 {
            after_100 = rss_mib();
        }
        if done % 100 == 0 {
            println!("{done:>8}  {:>7.1}", rss_mib());
        }
    }
    println!("RSS after 500 over RSS after 100: {:.3} (at most 1.1)", rss_mib() / after_100);
}

/// Whether a long text is heard as early as a short one.
fn length() {
    let client = Client::new(1);
    let short = "The kettle was on, and the door was open";
    let long: String =
        SENTENCES.iter().cycle().take(40).flat_map(|sentence| [sentence, " "]).collect::<String>()[..2000]
            .to_owned();
    let first = |text: &str| {
        let times: Vec<f64> =
            (0..9).map(|_| client.hear(text).unwrap().first().as_secs_f64() * 1e3).collect();
        quantile(&times, 0.5)
    };
    let (short_ms, long_ms) = (first(short), first(&long));
    println!(
        "\nfirst audio of {} characters {short_ms:.1} ms, of {} characters {long_ms:.1} ms: {:.2} times (at most 1.5)",
        short.len(),
        long.len(),
        long_ms / short_ms
    );
}

/// The value below which the share `q` of `values` lies.
fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (q * (sorted.len().max(1) - 1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(0.0)
}

/// Seconds of CPU time that this process has taken, which other processes on the machine hardly change.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    // Linux reports hundredths of a second on every platform.
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Resident memory of this process.
fn rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}
