//! Requests and engines in, Prometheus' text format 0.0.4 out, by HTTP if asked.
//!
//! What an engine counts is read from its [`Stats`] when somebody asks. Never counts a thing twice.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::prometheus_text::{self, encode};
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::net::TcpListener;

use crate::engine::{Distribution, Stats};

/// From 5 ms, below which no first audio comes, to 10 s, after which nobody waits.
const FIRST_AUDIO_S: [f64; 12] = [0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0, 10.0];
/// Wall time over audio time: 1 is the edge beyond which playback stutters.
const REAL_TIME_FACTORS: [f64; 12] = [0.01, 0.02, 0.04, 0.06, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 3.0];
const LATE_S: [f64; 8] = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// A label and its value.
type Label = [(&'static str, &'static str); 1];

/// Everything that is counted. Clones count together.
#[derive(Clone)]
pub struct Metrics {
    admitted: Counter,
    refused: Family<Label, Counter>,
    finished: Family<Label, Counter>,
    in_flight: Gauge,
    first_audio: Histogram,
    real_time_factor: Histogram,
    audio_s: Counter<f64, std::sync::atomic::AtomicU64>,
    late: Histogram,
    engines: Engines,
    registry: Arc<Registry>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("mezzavoce");
        let (admitted, refused, finished) = (Counter::default(), Family::default(), Family::default());
        let (first_audio, late) = (Histogram::new(FIRST_AUDIO_S), Histogram::new(LATE_S));
        let (real_time_factor, audio_s) = (Histogram::new(REAL_TIME_FACTORS), Counter::default());
        let (in_flight, engines) = (Gauge::default(), Engines::default());
        registry.register(
            "requests_admitted",
            "Requests to speak that were given a place: those finished and those in flight",
            admitted.clone(),
        );
        registry.register(
            "requests_refused",
            "Calls of any kind that were answered with nothing but a status, by its reason",
            Family::clone(&refused),
        );
        registry.register(
            "requests_finished",
            "Admitted requests that came to an end, by its kind",
            Family::clone(&finished),
        );
        registry.register("requests_in_flight", "Admitted requests that have not ended", in_flight.clone());
        registry.register_with_unit(
            "time_to_first_audio",
            "Time from the arrival of a request to its first samples",
            Unit::Seconds,
            first_audio.clone(),
        );
        registry.register(
            "real_time_factor",
            "Wall time over audio time of finished requests",
            real_time_factor.clone(),
        );
        registry.register_with_unit("audio", "Audio of finished requests", Unit::Seconds, audio_s.clone());
        registry.register_with_unit(
            "chunk_lateness",
            "By how much late chunks came after playback needed them",
            Unit::Seconds,
            late.clone(),
        );
        registry.sub_registry_with_prefix("engine").register_collector(Box::new(engines.clone()));
        Self {
            admitted,
            refused,
            finished,
            in_flight,
            first_audio,
            real_time_factor,
            audio_s,
            late,
            engines,
            registry: Arc::new(registry),
        }
    }

    pub fn request_admitted(&self) {
        self.admitted.inc();
        self.in_flight.inc();
    }

    /// A request was refused at the door, for one of a few fixed reasons.
    pub fn request_refused(&self, reason: &'static str) {
        self.refused.get_or_create(&[("reason", reason)]).inc();
    }

    /// From a request's arrival to its first samples.
    pub fn first_audio(&self, time: Duration) {
        self.first_audio.observe(time.as_secs_f64());
    }

    /// An admitted request ended with one of a few fixed outcomes, `wall` after its arrival and with `audio_s` seconds of
    /// audio.
    pub fn request_finished(&self, outcome: &'static str, audio_s: f64, wall: Duration) {
        self.in_flight.dec();
        self.finished.get_or_create(&[("outcome", outcome)]).inc();
        if audio_s > 0.0 && audio_s.is_finite() {
            self.audio_s.inc_by(audio_s);
            self.real_time_factor.observe(wall.as_secs_f64() / audio_s);
        }
    }

    /// A chunk came `by` after playback had run out.
    pub fn chunk_late(&self, by: Duration) {
        self.late.observe(by.as_secs_f64());
    }

    /// Reports an engine as `name` from now on, in the place of one that had this name.
    pub fn watch_engine(&self, name: &str, stats: Arc<Stats>, slots: usize, cache_bytes: usize) {
        let watched = Watched { stats, slots, cache_bytes };
        self.engines.0.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), watched);
    }

    pub fn forget_engine(&self, name: &str) {
        self.engines.0.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Prometheus' text format 0.0.4.
    pub fn render(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            tracing::error!("the metrics could not be written");
        }
        text
    }
}

/// Answers `GET /metrics` on `listener` until `shutdown`.
pub async fn serve_metrics(
    listener: TcpListener,
    metrics: Metrics,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let answer = move || async move { ([(CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], metrics.render()) };
    let router = Router::new().route("/metrics", get(answer));
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(shutdown).await {
        tracing::error!("metrics are no longer served: {error}");
    }
}

/// The engines that are reported, by name.
#[derive(Debug, Clone, Default)]
struct Engines(Arc<RwLock<BTreeMap<String, Watched>>>);

#[derive(Debug)]
struct Watched {
    stats: Arc<Stats>,
    slots: usize,
    cache_bytes: usize,
}

type Read<T> = fn(&Watched) -> T;
type ReadTimes = for<'a> fn(&'a Watched) -> &'a Distribution;

const COUNTERS: [(&str, &str, Read<u64>); 4] = [
    ("steps", "Decoder steps", |engine| engine.stats.steps.load(Ordering::Relaxed)),
    ("cancels", "Requests whose reader left while their speech was being made", |engine| {
        engine.stats.cancelled.load(Ordering::Relaxed)
    }),
    ("slow_readers", "Requests dropped because their reader took nothing for too long", |engine| {
        engine.stats.slow_readers.load(Ordering::Relaxed)
    }),
    ("sentences_encoded_ahead", "Sentences encoded while the one before was decoded", |engine| {
        engine.stats.encoded_ahead.load(Ordering::Relaxed)
    }),
];

const GAUGES: [(&str, &str, Option<Unit>, Read<f64>); 5] = [
    ("slots", "Requests that can be spoken at once", None, |engine| engine.slots as f64),
    ("active_slots", "Requests whose speech is being made now", None, |engine| {
        engine.stats.active.load(Ordering::Relaxed) as f64
    }),
    ("queued", "Requests that wait for a slot", None, |engine| {
        engine.stats.queued.load(Ordering::Relaxed) as f64
    }),
    ("expected_wait", "What a request that came now would wait for a slot", Some(Unit::Seconds), |engine| {
        engine.stats.expected_wait().as_secs_f64()
    }),
    ("cache", "Memory set aside for the caches", Some(Unit::Bytes), |engine| engine.cache_bytes as f64),
];

const TIMES: [(&str, &str, ReadTimes); 5] = [
    ("step_time", "Time of a decoder step of all active requests", |engine| &engine.stats.step_time),
    ("step_gap", "Time between two decoder steps while there is more to make", |engine| {
        &engine.stats.step_gap
    }),
    ("queue_wait", "Time from the admission of a request to its slot", |engine| &engine.stats.queue_wait),
    ("encode_time", "Time of the encoding of a sentence", |engine| &engine.stats.encode_time),
    ("vocode_time", "Time of the postnet and vocoder of a chunk", |engine| &engine.stats.vocode_time),
];

impl Collector for Engines {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let engines = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if engines.is_empty() {
            return Ok(());
        }
        let each = |mut family: MetricEncoder<'_>,
                    write: &dyn Fn(&Watched, MetricEncoder<'_>) -> fmt::Result| {
            engines.iter().try_for_each(|(name, engine)| {
                write(engine, family.encode_family(&[("voice", name.as_str())])?)
            })
        };
        for (name, help, read) in COUNTERS {
            each(
                encoder.encode_descriptor(name, help, None, MetricType::Counter)?,
                &|engine, mut metric| metric.encode_counter::<NoLabelSet, _, u64>(&read(engine), None),
            )?;
        }
        for (name, help, unit, read) in GAUGES {
            let family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
            each(family, &|engine, mut metric| metric.encode_gauge(&read(engine)))?;
        }
        for (name, help, read) in TIMES {
            let family =
                encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
            each(family, &|engine, mut metric| {
                let times = read(engine);
                let mut below = 0;
                let apart =
                    |(bound, total): (f64, u64)| (bound, total - std::mem::replace(&mut below, total));
                let buckets: Vec<(f64, u64)> = times.cumulative().into_iter().map(apart).collect();
                let count = buckets.iter().map(|(_, count)| count).sum();
                metric.encode_histogram::<NoLabelSet>(times.sum().as_secs_f64(), count, &buckets, None)
            })?;
        }
        Ok(())
    }
}
