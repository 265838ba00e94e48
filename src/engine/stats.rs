//! Events of the engine in, counters and distributions out, for metrics and tests to read.
//!
//! Never locks the thread that counts.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// What the engine counts.
#[derive(Debug)]
pub struct Stats {
    /// Steps of the decoder since the start.
    pub steps: AtomicU64,
    /// Streams that step now.
    pub active: AtomicUsize,
    /// Requests that wait for a row.
    pub queued: AtomicUsize,
    /// Requests whose reader left before their end.
    pub cancelled: AtomicU64,
    /// Requests whose reader took nothing for too long.
    pub slow_readers: AtomicU64,
    /// Sentences that were encoded while the one before them was still being decoded.
    pub encoded_ahead: AtomicU64,
    pub step_time: Distribution,
    /// From the end of a step to the start of the next, while there is one to make.
    pub step_gap: Distribution,
    /// From a request's admission to its promise of a row.
    pub queue_wait: Distribution,
    /// Per sentence.
    pub encode_time: Distribution,
    /// Per chunk, postnet included.
    pub vocode_time: Distribution,
    /// By the number of streams that stepped together, from 1 on.
    by_rows: Vec<RowTime>,
}

#[derive(Debug, Default)]
struct RowTime {
    steps: AtomicU64,
    us: AtomicU64,
}

impl Stats {
    /// Of an engine that steps `slots` streams at most.
    pub fn new(slots: usize) -> Self {
        Self {
            steps: AtomicU64::new(0),
            active: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            cancelled: AtomicU64::new(0),
            slow_readers: AtomicU64::new(0),
            encoded_ahead: AtomicU64::new(0),
            step_time: Distribution::default(),
            step_gap: Distribution::default(),
            queue_wait: Distribution::default(),
            encode_time: Distribution::default(),
            vocode_time: Distribution::default(),
            by_rows: (0..slots).map(|_| RowTime::default()).collect(),
        }
    }

    /// Counts a step of `rows` streams.
    pub fn stepped(&self, rows: usize, time: Duration) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.step_time.observe(time);
        if let Some(row_time) = rows.checked_sub(1).and_then(|at| self.by_rows.get(at)) {
            row_time.steps.fetch_add(1, Ordering::Relaxed);
            row_time.us.fetch_add(microseconds(time), Ordering::Relaxed);
        }
    }

    /// Steps that `rows` streams have made together, and the time that they took.
    pub fn steps_of(&self, rows: usize) -> (u64, Duration) {
        let row_time = rows.checked_sub(1).and_then(|at| self.by_rows.get(at));
        row_time.map_or((0, Duration::ZERO), |row_time| {
            let us = row_time.us.load(Ordering::Relaxed);
            (row_time.steps.load(Ordering::Relaxed), Duration::from_micros(us))
        })
    }
}

/// Upper bounds of the buckets, in microseconds; the last bucket has none.
const BOUNDS_US: [u64; 14] = [
    250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 125_000, 250_000, 500_000, 1_000_000,
    4_000_000,
];

/// Durations in buckets that grow by about two.
#[derive(Debug, Default)]
pub struct Distribution {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    max_us: AtomicU64,
}

impl Distribution {
    pub fn observe(&self, duration: Duration) {
        let us = microseconds(duration);
        let bucket = BOUNDS_US.partition_point(|&bound| bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
        self.max_us.fetch_max(us, Ordering::Relaxed);
    }

    /// Upper bounds in seconds and how many durations lie at or below each; the last bound is infinite.
    pub fn cumulative(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_US.iter().map(|&us| us as f64 * 1e-6).chain([f64::INFINITY]);
        let mut total = 0;
        let count = |bucket: &AtomicU64| {
            total += bucket.load(Ordering::Relaxed);
            total
        };
        bounds.zip(self.buckets.iter().map(count).collect::<Vec<_>>()).collect()
    }

    /// How many durations there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us.load(Ordering::Relaxed))
    }

    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max_us.load(Ordering::Relaxed))
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_duration_once() {
        let distribution = Distribution::default();
        for ms in [0, 1, 1, 3, 900, 60_000] {
            distribution.observe(Duration::from_millis(ms));
        }
        let at =
            |seconds: f64| distribution.cumulative().iter().find(|(bound, _)| *bound >= seconds).unwrap().1;
        assert_eq!((at(0.001), at(0.004), at(1.0), at(f64::INFINITY)), (3, 4, 5, 6));
        assert_eq!(distribution.max(), Duration::from_secs(60));
    }
}
