//! How many clips there are and a seed in, which of them each step hears out.
//!
//! An epoch is a shuffle by (seed, epoch); in windows of it clips are put beside others of their length, and the batches
//! that gives are shuffled again. What a step hears follows from its number alone, so that a run that was interrupted
//! needs to remember nothing else. Never holds a clip.

use crate::split_mix::{GOLDEN, mix};

/// Batches that are made of one window of an epoch.
const WINDOW_BATCHES: usize = 16;

/// The order in which clips are heard.
#[derive(Debug, Clone)]
pub struct Order {
    seed: u64,
    batch_size: usize,
    /// How long each clip is, frames.
    lengths: Vec<usize>,
    /// The epoch that was asked for last, and its batches.
    epoch: Option<(u64, Vec<Vec<usize>>)>,
}

impl Order {
    /// For clips of `lengths`, `batch_size` of them at a time; an epoch's last batch may be smaller.
    pub fn new(seed: u64, batch_size: usize, lengths: Vec<usize>) -> Self {
        Self { seed, batch_size: batch_size.max(1), lengths, epoch: None }
    }

    /// Batches of one epoch, 1 at least.
    pub fn batches_per_epoch(&self) -> u64 {
        (self.lengths.len().div_ceil(self.batch_size) as u64).max(1)
    }

    /// The clips of batch `number` of the run, the first being 0; none where there are no clips.
    pub fn batch(&mut self, number: u64) -> &[usize] {
        let epoch = number / self.batches_per_epoch();
        let index = (number % self.batches_per_epoch()) as usize;
        if self.epoch.as_ref().is_none_or(|(held, _)| *held != epoch) {
            self.epoch = Some((epoch, self.batches(epoch)));
        }
        let batches = self.epoch.as_ref().map(|(_, batches)| batches.as_slice()).unwrap_or_default();
        batches.get(index).map(Vec::as_slice).unwrap_or_default()
    }

    fn batches(&self, epoch: u64) -> Vec<Vec<usize>> {
        let seed = mix(self.seed ^ mix(epoch));
        let mut clips: Vec<usize> = (0..self.lengths.len()).collect();
        shuffle(&mut clips, seed);
        let mut batches = Vec::new();
        for window in clips.chunks_mut(self.batch_size * WINDOW_BATCHES) {
            window.sort_by_key(|clip| self.lengths.get(*clip));
            batches.extend(window.chunks(self.batch_size).map(<[usize]>::to_vec));
        }
        shuffle(&mut batches, mix(seed));
        batches
    }
}

/// Clips for training and, of the others, how many validate.
pub fn split(clips: usize, validating: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<usize> = (0..clips).collect();
    shuffle(&mut order, mix(!seed));
    let mut validation = order.split_off(clips - validating.min(clips));
    order.sort_unstable();
    validation.sort_unstable();
    (order, validation)
}

/// Fisher and Yates, drawn by a counter.
fn shuffle<T>(items: &mut [T], seed: u64) {
    for at in (1..items.len()).rev() {
        let drawn = mix(seed.wrapping_add((at as u64).wrapping_mul(GOLDEN)));
        items.swap(at, (drawn % (at as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths() -> Vec<usize> {
        (0..50).map(|clip| 100 + clip * 37 % 50).collect()
    }

    #[test]
    fn an_epoch_hears_every_clip_once() {
        let mut order = Order::new(7, 4, lengths());
        assert_eq!(order.batches_per_epoch(), 13);
        let epochs = [0, 1].map(|epoch| {
            let batches = (0..13).map(|at| order.batch(epoch * 13 + at).to_vec());
            batches.collect::<Vec<_>>()
        });
        for epoch in &epochs {
            let mut clips = epoch.concat();
            clips.sort_unstable();
            assert_eq!(clips, (0..50).collect::<Vec<_>>());
        }
        assert_ne!(epochs[0], epochs[1]);
        assert_eq!(order.batch(5), epochs[0][5], "a step hears what it heard");
        assert_ne!(Order::new(8, 4, lengths()).batch(0), epochs[0][0]);
    }

    #[test]
    fn clips_of_a_batch_are_about_as_long() {
        let mut order = Order::new(7, 4, lengths());
        let apart = |batch: &[usize]| {
            let of = batch.iter().map(|clip| lengths()[*clip]);
            of.clone().max().unwrap() - of.min().unwrap()
        };
        assert!((0..13).map(|at| apart(order.batch(at))).max().unwrap() <= 8);
    }

    #[test]
    fn validation_is_kept_apart_and_the_same_for_a_seed() {
        let (training, validation) = split(20, 3, 7);
        assert_eq!((training.len(), validation.len()), (17, 3));
        assert!(validation.iter().all(|clip| !training.contains(clip)));
        assert_eq!(split(20, 3, 7).1, validation);
        assert!((0..5).any(|seed| split(20, 3, seed).1 != validation));
        assert_eq!(split(2, 9, 7).0, Vec::<usize>::new());
        assert!(Order::new(7, 4, vec![]).batch(3).is_empty());
    }
}
