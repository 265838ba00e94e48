//! Stop logits and a step number in, whether the sentence has ended out.
//!
//! Never lets a sentence run past its cap, and never hides that the cap ended it.

/// Why a sentence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The model said so.
    Stop,
    /// The cap from the text's length, or the position table, cut it.
    Cap,
}

/// The stop rule of Hugging Face's SpeechT5: the sum of a step's sigmoid stop values reaches the threshold.
#[derive(Debug, Clone, Copy)]
pub struct StopRule {
    threshold: f32,
    max_steps: usize,
}

impl StopRule {
    /// A rule that caps the sentence at `max_steps` steps.
    pub fn new(threshold: f32, max_steps: usize) -> Self {
        Self { threshold, max_steps }
    }

    /// The cap of a sentence of `tokens` symbols: `max_frames_per_symbol` mel frames a symbol, and no more
    /// steps than the position table holds.
    pub fn cap(
        tokens: usize,
        max_frames_per_symbol: f32,
        reduction_factor: usize,
        positions: usize,
    ) -> usize {
        let frames = tokens as f32 * max_frames_per_symbol;
        ((frames / reduction_factor as f32).ceil() as usize).clamp(1, positions)
    }

    /// Judges the sentence after its step number `steps` (the first is 1) gave `stop_logits`.
    pub fn after(&self, steps: usize, stop_logits: &[f32]) -> Option<End> {
        let sum: f32 = stop_logits.iter().map(|logit| 1.0 / (1.0 + (-logit).exp())).sum();
        if sum >= self.threshold {
            return Some(End::Stop);
        }
        (steps >= self.max_steps).then_some(End::Cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_when_the_values_of_one_step_add_up() {
        let rule = StopRule::new(0.5, 100);
        // sigmoid(-1.2) = 0.2315: two of them stay below one half, three reach it.
        assert_eq!(rule.after(1, &[-1.2, -1.2]), None);
        assert_eq!(rule.after(1, &[-1.2, -1.2, -1.2]), Some(End::Stop));
    }

    #[test]
    fn says_when_the_cap_ended_it() {
        let rule = StopRule::new(0.5, 3);
        assert_eq!(rule.after(2, &[-9.0]), None);
        assert_eq!(rule.after(3, &[-9.0]), Some(End::Cap));
        assert_eq!(rule.after(3, &[9.0]), Some(End::Stop));
    }

    #[test]
    fn caps_by_the_text_and_by_the_position_table() {
        assert_eq!(StopRule::cap(30, 20.0, 3, 1200), 200);
        assert_eq!(StopRule::cap(600, 20.0, 3, 1200), 1200);
        assert_eq!(StopRule::cap(1, 0.1, 3, 1200), 1);
    }

    #[test]
    fn a_logit_that_is_not_a_number_ends_at_the_cap() {
        assert_eq!(StopRule::new(0.5, 2).after(2, &[f32::NAN]), Some(End::Cap));
    }
}
