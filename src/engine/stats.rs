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
    /// Requests that have been admitted and have not been promised a row yet.
    pub queued: AtomicUsize,
    /// Those of them that have no text to speak yet, and so let others pass.
    pub silent: AtomicUsize,
    /// Requests that hold a row, or are promised one.
    pub seated: AtomicUsize,
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
    slots: usize,
    /// For how long recent requests have held a row, in microseconds, each weighing an eighth of what is left; 0 before
    /// the first.
    held_us: AtomicU64,
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
            silent: AtomicUsize::new(0),
            seated: AtomicUsize::new(0),
            cancelled: AtomicU64::new(0),
            slow_readers: AtomicU64::new(0),
            encoded_ahead: AtomicU64::new(0),
            step_time: Distribution::default(),
            step_gap: Distribution::default(),
            queue_wait: Distribution::default(),
            encode_time: Distribution::default(),
            vocode_time: Distribution::default(),
            slots,
            held_us: AtomicU64::new(0),
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

    /// Counts a request that gives its row back after `held`. For one thread alone.
    pub fn gave_back(&self, held: Duration) {
        const WEIGHT: u64 = 8;
        let (held, mean) = (microseconds(held), self.held_us.load(Ordering::Relaxed));
        let mean = if mean == 0 { held } else { mean - mean / WEIGHT + held / WEIGHT };
        self.held_us.store(mean.max(1), Ordering::Relaxed);
    }

    /// The time between two rows becoming free while all are taken, as recent requests let expect; zero before the
    /// first one has ended.
    pub fn turnover(&self) -> Duration {
        let held = Duration::from_micros(self.held_us.load(Ordering::Relaxed));
        held / u32::try_from(self.slots.max(1)).unwrap_or(u32::MAX)
    }

    /// How long a request that came now would wait for its row, as recent requests let expect. Rows in work are taken
    /// to be half done.
    pub fn expected_wait(&self) -> Duration {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let waiting = load(&self.queued).saturating_sub(load(&self.silent));
        let free = self.slots.saturating_sub(load(&self.seated));
        match (waiting + 1).saturating_sub(free) {
            0 => Duration::ZERO,
            turns => {
                let turnover = self.turnover();
                turnover.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX)).saturating_sub(turnover / 2)
            }
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
    fn expects_a_wait_of_as_many_turns_as_requests_wait() {
        let stats = Stats::new(2);
        let check = |seated: usize, queued: usize, silent: usize, expected_ms: u64| {
            stats.seated.store(seated, Ordering::Relaxed);
            stats.queued.store(queued, Ordering::Relaxed);
            stats.silent.store(silent, Ordering::Relaxed);
            let expected = Duration::from_millis(expected_ms);
            assert_eq!(stats.expected_wait(), expected, "{seated} seated, {queued} queued, {silent} silent");
        };
        check(2, 5, 0, 0);
        stats.gave_back(Duration::from_millis(800));
        // A row becomes free every 400 ms, the first after half of that.
        check(0, 0, 0, 0);
        check(1, 0, 0, 0);
        check(1, 1, 0, 200);
        check(2, 0, 0, 200);
        check(2, 3, 0, 1400);
        check(2, 3, 3, 200);
    }

    #[test]
    fn recent_requests_weigh_more() {
        let stats = Stats::new(1);
        stats.gave_back(Duration::from_millis(80));
        assert_eq!(stats.turnover(), Duration::from_millis(80));
        stats.gave_back(Duration::from_millis(160));
        assert_eq!(stats.turnover(), Duration::from_millis(90));
        (0..100).for_each(|_| stats.gave_back(Duration::from_millis(160)));
        assert!(stats.turnover() > Duration::from_millis(159), "{:?}", stats.turnover());
    }

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
