//! A run in, what can be heard and seen of it out: validation, pictures, spoken clips, the voice as it is.
//!
//! Never moves a weight.

use std::fs;
use std::path::Path;

use super::{Door, Run, Sentence};
use crate::error::{Error, Result};
use crate::finetune::export;
use crate::finetune::network::Speaker;
use crate::finetune::{atomic_file, observation};

/// Clips of which every speaking speaks.
const SPOKEN: usize = 3;
/// Where the voice lies while it speaks.
const SPEAKING: &str = "speaking";

impl Run<'_> {
    /// Hears the validation clips, draws one, and writes the voice when it has never been better.
    pub(super) fn validate(&mut self) -> Result<Option<f32>> {
        let Some(first) = self.validation.first() else { return Ok(None) };
        let taken = self.trainer.progress().taken;
        let (validation, observed) = (&self.validation, first);
        let (loss, seen) = self.trainer.as_it_will_speak(|trainer| {
            Ok((trainer.validate(validation).total(), trainer.observe(observed)?))
        })?;
        let observation::Observation { attention, mel } = seen;
        for (name, picture) in [("attention", attention), ("mel", mel)] {
            let path = self.home.pictures().join(format!("step-{taken:06}-{name}.png"));
            atomic_file::write(&path, &picture.png)?;
            self.events.image(taken, name, picture.size, picture.png)?;
        }
        self.events.scalars(taken, &[("loss/validation", loss)])?;
        if self.course.validated(loss, taken) {
            self.export()?;
        }
        Ok(Some(loss))
    }

    /// Writes the voice as it is now.
    pub(super) fn export(&mut self) -> Result<()> {
        if !self.laid_out {
            export::lay_out(self.origin, self.home.voice())?;
            self.laid_out = true;
        }
        self.write_voice(self.home.voice())
    }

    fn write_voice(&self, directory: &Path) -> Result<()> {
        export::write_weights(&self.trainer, self.voice, directory)?;
        let speakers = [self.added.clone(), self.trainer.learned_speakers()?].concat();
        let name = self.home.voice().file_name().map_or("fine-tuned".into(), |name| name.to_string_lossy());
        let names = (self.voice.name.as_str(), &*name);
        export::write_manifest(directory, names, &speakers, self.default_speaker.as_deref())
    }

    /// Speaks some of the validation clips, or of the others where there are none. What goes wrong there is told and
    /// ends no run.
    pub(super) fn speak(&mut self, door: &mut Door) -> Result<()> {
        let directory = self.home.run().join(format!("{}{SPEAKING}", atomic_file::PREFIX));
        let heard = if self.validating.is_empty() { &self.training } else { &self.validating };
        let taken = self.trainer.progress().taken;
        let mut sentences = Vec::new();
        for (number, clip) in heard.iter().take(SPOKEN).enumerate() {
            let Some((utterance, speaker)) = self.clips.get(*clip) else { continue };
            let speaker = match speaker {
                Speaker::Given(embedding) => embedding.clone(),
                Speaker::Learned(name) => {
                    let mut learned = self.trainer.learned_speakers()?.into_iter();
                    learned
                        .find(|(other, _)| other == name)
                        .map(|(_, embedding)| embedding)
                        .unwrap_or_default()
                }
            };
            let wav = self.home.samples().join(format!("step-{taken:06}-{}.wav", number + 1));
            sentences.push(Sentence { text: utterance.text.clone(), speaker, wav });
        }
        export::lay_out(self.origin, &directory)?;
        self.write_voice(&directory)?;
        if let Err(error) = (door.speak)(&directory, &sentences) {
            tracing::warn!("step {taken} was not spoken: {error}");
        }
        fs::remove_dir_all(&directory).map_err(|e| Error::io(&directory, e))
    }
}
