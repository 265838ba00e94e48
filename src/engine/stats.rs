//! Events of the engine in, counters and distributions out, for metrics and tests to read.
//!
//! Never locks the thread that counts.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// What the engine counts.
#[derive(Debug, Default)]
pub struct Stats {
    /// Steps of the decoder since the start.
    pub steps: AtomicU64,
    /// Streams that step now.
    pub active: AtomicUsize,
    /// Requests that wait for a row.
    pub queued: AtomicUsize,
    /// Requests whose reader left before their end.
    pub cancelled: AtomicU64,
    pub step_time: Distribution,
    pub queue_wait: Distribution,
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
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
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

    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us.load(Ordering::Relaxed))
    }

    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max_us.load(Ordering::Relaxed))
    }
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
