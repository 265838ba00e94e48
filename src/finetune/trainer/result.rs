//! A trainer in, its weights with all the bits that are known of them, and what they say, out.
//!
//! Never takes a step.

use super::Trainer;
use crate::error::Result;
use crate::finetune::loss::Losses;
use crate::finetune::network::{Batch, Dropout, LEARNED_SPEAKERS};
use crate::finetune::optimizer::{Values, coarse_step};
use crate::precision::MasterWeights;

impl Trainer {
    /// Why the weights that learn may not move at the highest learning rate, and how many of them; `None` where all do.
    ///
    /// # Errors
    /// [`Error::Internal`] when a tensor cannot be read.
    pub fn coarse_weights(&self, master: MasterWeights) -> Result<Option<String>> {
        let mut coarse = Vec::new();
        for name in self.learners.keys() {
            let weights = self.parameters.host(name)?;
            let largest = weights.to_f32().iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            let why = coarse_step(largest, weights.dtype(), master, self.recipe.schedule.peak);
            coarse.extend(why.map(|why| format!("{name}: {why}")));
        }
        let (count, all) = (coarse.len(), self.learners.len());
        Ok(coarse.into_iter().next().map(|first| {
            format!("{count} of {all} tensors may lose a part of their way at this learning rate, the first {first}")
        }))
    }

    /// What `look` makes of the network as it will speak: with the averages in the place of the weights, where they are
    /// kept.
    ///
    /// # Errors
    /// Those of `look`; the weights are back in their place then.
    pub fn as_it_will_speak<T>(&mut self, look: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let mut weights = Vec::new();
        for (name, average) in &self.averages {
            let values = self.parameters.host(name)?;
            self.parameters.update(name, Values::from_f32(average.values(), values.dtype()));
            weights.push((name.clone(), values));
        }
        let seen = look(self);
        for (name, values) in weights {
            self.parameters.update(&name, values);
        }
        seen
    }

    /// The loss of `batch`, nothing dropped.
    pub fn validate(&self, batches: &[Batch]) -> Losses {
        let mut losses = Losses::default();
        for batch in batches {
            losses.add_mean(Losses::of(&self.loss(batch, &mut Dropout::none())), batches.len());
        }
        losses
    }

    /// All the bits that are known of a tensor.
    ///
    /// # Errors
    /// [`Error::Internal`] when there is no such tensor.
    pub fn master(&self, name: &str) -> Result<Vec<f32>> {
        let weights = self.parameters.host(name)?;
        match self.learners.get(name) {
            Some(learner) => learner.master(&weights),
            None => Ok(weights.to_f32()),
        }
    }

    /// What a voice is given of a tensor: its average where one is kept, else all the bits that are known of it.
    ///
    /// # Errors
    /// As [`Self::master`].
    pub fn result(&self, name: &str) -> Result<Vec<f32>> {
        match self.averages.get(name) {
            Some(average) => Ok(average.values().to_vec()),
            None => self.master(name),
        }
    }

    /// The speakers that learn and what a voice is given of them.
    ///
    /// # Errors
    /// As [`Self::master`].
    pub fn learned_speakers(&self) -> Result<Vec<(String, Vec<f32>)>> {
        let names =
            self.learners.keys().filter_map(|name| Some((name, name.strip_prefix(LEARNED_SPEAKERS)?)));
        names.map(|(tensor, name)| Ok((name.to_owned(), self.result(tensor)?))).collect()
    }
}
