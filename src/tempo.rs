//! Mel frames at the voice's pace in, mel frames at the speaking rate out, as they come.
//!
//! Output frame k is the sound at input position k · rate, between two frames a mix of both, so that a vocoder
//! gives the same pitch at another pace. Never looks further ahead than the frame it mixes, and never touches a
//! frame at rate 1.

use std::ops::RangeInclusive;

/// The rates that speech stays intelligible at; 1 is the voice's own pace, 2 twice as fast.
pub const SPEAKING_RATES: RangeInclusive<f32> = 0.5..=2.0;

/// The frames of one sentence on their way to another pace.
pub struct Tempo {
    rate: f64,
    n_mels: usize,
    /// Input frames that are still needed, row-major [any, n_mels]
    kept: Vec<f32>,
    /// The sentence's frame number of the first kept one.
    start: usize,
    /// Output frames given so far.
    given: usize,
}

impl Tempo {
    /// A sentence spoken `rate` times as fast as the voice does, `rate` within [`SPEAKING_RATES`].
    pub fn new(rate: f32, n_mels: usize) -> Self {
        Self { rate: f64::from(rate), n_mels, kept: Vec::new(), start: 0, given: 0 }
    }

    /// Takes frames, row-major [any, n_mels]. -> the frames that are final, row-major
    pub fn push(&mut self, mel: &[f32]) -> Vec<f32> {
        self.kept.extend_from_slice(mel);
        self.give(self.ready(0, false))
    }

    /// Ends the sentence. -> the frames that are left: of n frames ⌈n / rate⌉ are made in all, and those behind
    /// the last one equal it
    pub fn finish(&mut self) -> Vec<f32> {
        self.give(self.ready(0, true))
    }

    /// How many frames could be given if `more` frames were pushed; all of them if the sentence had `ended`.
    pub fn ready(&self, more: usize, ended: bool) -> usize {
        let pushed = (self.pushed() + more) as f64;
        // What lies between two frames waits for the second, or for the end.
        let is_final = |k: &usize| match ended {
            true => self.position(*k) < pushed,
            false => self.position(*k) + 1.0 <= pushed,
        };
        (self.given..).take_while(is_final).count()
    }

    /// Where output frame `k` lies, in input frames.
    fn position(&self, k: usize) -> f64 {
        k as f64 * self.rate
    }

    /// Input frames pushed so far.
    fn pushed(&self) -> usize {
        self.start + self.kept.len() / self.n_mels
    }

    fn give(&mut self, count: usize) -> Vec<f32> {
        let mut given = Vec::with_capacity(count * self.n_mels);
        for k in self.given..self.given + count {
            let position = self.position(k);
            let before = position.floor() as usize;
            let share = (position - before as f64) as f32;
            match (self.frame(before), self.frame(before + 1)) {
                (Some(before), Some(after)) if share > 0.0 => {
                    given.extend(before.iter().zip(after).map(|(a, b)| a + share * (b - a)));
                }
                (Some(before), _) => given.extend_from_slice(before),
                // Not reached: a frame is given when the one before its position is there.
                (None, _) => {}
            }
        }
        self.given += count;
        let needed = self.position(self.given).floor() as usize;
        let done = needed.min(self.pushed()).saturating_sub(self.start);
        self.kept.drain(..done * self.n_mels);
        self.start += done;
        given
    }

    /// Input frame `number`, if it has come.
    fn frame(&self, number: usize) -> Option<&[f32]> {
        let at = number.checked_sub(self.start)? * self.n_mels;
        self.kept.get(at..at + self.n_mels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N_MELS: usize = 2;
    const RATES: [f32; 7] = [0.5, 0.7, 0.999, 1.0, 1.3, 1.6, 2.0];

    /// Frames (i, i²) for the numbers i below `count`.
    fn frames(count: usize) -> Vec<f32> {
        (0..count).flat_map(|i| [i as f32, (i * i) as f32]).collect()
    }

    /// What `mel` becomes when it is pushed `portion` frames at a time.
    fn played(mel: &[f32], rate: f32, portion: usize) -> Vec<f32> {
        let mut tempo = Tempo::new(rate, N_MELS);
        let mut played: Vec<f32> = mel.chunks(portion * N_MELS).flat_map(|mel| tempo.push(mel)).collect();
        played.extend(tempo.finish());
        assert!(tempo.finish().is_empty());
        played
    }

    #[test]
    fn a_frame_is_a_mix_of_the_two_around_its_position() {
        let played = played(&frames(4), 0.75, 4);
        let expected: [[f32; 2]; 6] =
            [[0.0, 0.0], [0.75, 0.75], [1.5, 2.5], [2.25, 5.25], [3.0, 9.0], [3.0, 9.0]];
        assert_eq!(played, expected.concat());
    }

    #[test]
    fn the_length_is_that_of_the_input_over_the_rate_rounded_up() {
        for rate in RATES {
            for count in [0, 1, 2, 3, 7, 100, 1001] {
                let expected = (count as f64 / f64::from(rate)).ceil() as usize;
                assert_eq!(played(&frames(count), rate, 1001).len(), expected * N_MELS, "{count} at {rate}");
            }
        }
    }

    #[test]
    fn frames_pass_at_once_and_untouched_at_rate_1() {
        let mut tempo = Tempo::new(1.0, N_MELS);
        let mel = [0.1, f32::MIN_POSITIVE, -0.0, 1e30];
        assert_eq!(tempo.push(&mel).map_bits(), mel.to_vec().map_bits());
        assert!(tempo.finish().is_empty());
    }

    #[test]
    fn portions_of_any_size_give_identical_frames() {
        let mel: Vec<f32> = frames(61).iter().map(|value| (value * 0.7).sin()).collect();
        for rate in RATES {
            let whole = played(&mel, rate, 61).map_bits();
            for portion in [1, 2, 7, 60] {
                assert_eq!(played(&mel, rate, portion).map_bits(), whole, "{portion} at {rate}");
            }
        }
    }

    #[test]
    fn what_will_be_ready_is_foretold() {
        for rate in RATES {
            let mut tempo = Tempo::new(rate, N_MELS);
            for more in [0, 3, 1, 5] {
                let foretold = tempo.ready(more, false);
                let with_the_end = tempo.ready(more, true);
                let given = tempo.push(&frames(more)).len() / N_MELS;
                assert_eq!(given, foretold, "{more} at {rate}");
                assert_eq!(tempo.ready(0, true), with_the_end - given, "{more} at {rate}");
            }
        }
    }

    trait MapBits {
        fn map_bits(self) -> Vec<u32>;
    }

    impl MapBits for Vec<f32> {
        fn map_bits(self) -> Vec<u32> {
            self.into_iter().map(f32::to_bits).collect()
        }
    }
}
