//! Frames as they come in, windows with enough context around them out.
//!
//! A stack of "same" convolutions makes a frame exact when it sees `context` frames on either side, or the
//! sentence's own edge, where the graph pads as it did in training. Never pads by itself.

/// The frames of one sentence that a convolutional stage still needs.
#[derive(Debug)]
pub struct Window {
    width: usize,
    context: usize,
    /// Row-major [kept frames, width]
    frames: Vec<f32>,
    /// The sentence's frame number of the first kept one.
    start: usize,
    /// How many frames have been taken.
    taken: usize,
}

/// A window to run a stage on, and which of its frames come out exact.
#[derive(Debug, PartialEq)]
pub struct View<'a> {
    /// Row-major [frames, width]
    pub frames: &'a [f32],
    /// Frames of context before the exact ones.
    pub skip: usize,
    /// Frames that are exact.
    pub count: usize,
}

impl Window {
    /// A window over frames of `width` values that need `context` neighbours on either side.
    pub fn new(width: usize, context: usize) -> Self {
        Self { width, context, frames: Vec::new(), start: 0, taken: 0 }
    }

    /// Appends frames, row-major [any, width].
    pub fn push(&mut self, frames: &[f32]) {
        self.frames.extend_from_slice(frames);
    }

    /// How many frames can be taken now; all of them once the sentence has `ended`.
    pub fn ready(&self, ended: bool) -> usize {
        let reach = if ended { 0 } else { self.context };
        self.end().saturating_sub(reach).saturating_sub(self.taken)
    }

    /// The window around the next frames that are ready, `limit` at most, or `None` when there are none. The next
    /// call continues behind them.
    pub fn take(&mut self, ended: bool, limit: usize) -> Option<View<'_>> {
        let count = self.ready(ended).min(limit);
        if count == 0 {
            return None;
        }
        let first = self.taken.saturating_sub(self.context).max(self.start);
        self.frames.drain(..(first - self.start) * self.width);
        self.start = first;
        let skip = self.taken - first;
        self.taken += count;
        let end = (self.taken + self.context).min(self.end());
        Some(View { frames: &self.frames[..(end - first) * self.width], skip, count })
    }

    fn end(&self) -> usize {
        self.start + self.frames.len() / self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds frames 0, 1, 2, … in portions; returns for each window (first frame, last frame, skip, count).
    fn check(context: usize, limit: usize, portions: &[usize]) -> Vec<(usize, usize, usize, usize)> {
        let mut window = Window::new(1, context);
        let (mut next, mut seen) = (0, Vec::new());
        for (i, &portion) in portions.iter().enumerate() {
            let frames: Vec<f32> = (next..next + portion).map(|frame| frame as f32).collect();
            window.push(&frames);
            next += portion;
            if let Some(view) = window.take(i + 1 == portions.len(), limit) {
                let last = view.frames[view.frames.len() - 1] as usize;
                seen.push((view.frames[0] as usize, last, view.skip, view.count));
            }
        }
        seen
    }

    #[test]
    fn waits_for_the_context_on_the_right() {
        assert_eq!(check(2, 9, &[2, 3, 0]), [(0, 4, 0, 3), (1, 4, 2, 2)]);
    }

    #[test]
    fn keeps_the_context_on_the_left() {
        assert_eq!(check(2, 9, &[6, 4, 0]), [(0, 5, 0, 4), (2, 9, 2, 4), (6, 9, 2, 2)]);
    }

    #[test]
    fn sees_the_same_window_however_late_it_is_asked() {
        assert_eq!(check(2, 3, &[5, 4]), check(2, 3, &[7, 2]));
    }

    #[test]
    fn gives_a_whole_sentence_at_once() {
        assert_eq!(check(5, 9, &[7]), [(0, 6, 0, 7)]);
    }

    #[test]
    fn gives_nothing_for_nothing() {
        assert_eq!(check(5, 9, &[0]), []);
    }
}
