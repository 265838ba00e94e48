//! Raw mel frames of the decoder in, refined mel frames out, a context of frames later.
//!
//! Never holds a sentence: what it still needs of one lies in the [`Window`] that the caller keeps.

use crate::error::Result;
use crate::graph::postnet as graph;
use crate::precision::Plan;
use crate::runtime::{Runtime, Session, Tensor};
use crate::voice::Voice;
use crate::window::Window;

/// The postnet of one voice.
pub struct Postnet {
    session: Session,
    n_mels: usize,
    context_frames: usize,
}

impl Postnet {
    /// Builds the postnet graph of `voice` in the dtypes of `plan` and loads it.
    pub fn load(runtime: &Runtime, voice: &Voice, plan: &Plan, threads: usize) -> Result<Self> {
        let model = graph::postnet(voice, plan.decoder)?;
        Ok(Self {
            session: runtime.session("postnet", &model, threads)?,
            n_mels: voice.config.num_mel_bins,
            context_frames: graph::context_frames(&voice.config),
        })
    }

    pub fn n_mels(&self) -> usize {
        self.n_mels
    }

    /// The state of a new sentence.
    pub fn begin(&self) -> Window {
        Window::new(self.n_mels, self.context_frames)
    }

    /// Refines the next frames that are ready, `limit` at most. -> [frames, n_mels]
    pub fn refine(&mut self, window: &mut Window, ended: bool, limit: usize) -> Result<Vec<f32>> {
        let Some(view) = window.take(ended, limit) else { return Ok(Vec::new()) };
        let raw = Tensor::f32(&[1, view.frames.len() / self.n_mels, self.n_mels], view.frames)?;
        let (from, count) = (view.skip * self.n_mels, view.count * self.n_mels);
        let mel = self.session.run(&[(graph::RAW_MEL, &raw)], &[graph::MEL])?;
        Ok(mel[0].as_f32()?[from..from + count].to_vec())
    }
}
