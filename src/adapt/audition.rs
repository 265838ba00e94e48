//! A voice in training and sentences in, WAV files out: through the engine that serves, so that what is heard is what the
//! voice will say.
//!
//! Never keeps a voice: its weights are others the next time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::{EngineOptions, StreamRequest};
use crate::error::Result;
use crate::finetune::run::Sentence;
use crate::pcm::WavFile;
use crate::precision::Precision;
use crate::repertoire::plan;
use crate::runtime::library::{Lookup, locate};
use crate::runtime::{Accelerator, Runtime};
use crate::synthesizer::{Script, Synthesizer};
use crate::text::Reading;
use crate::voice::Voice;

/// What speaks.
pub struct Audition {
    library: PathBuf,
    /// Loaded when it is first needed: until then a run is as small as its report says.
    runtime: Option<Arc<Runtime>>,
}

impl Audition {
    /// # Errors
    /// Those of the library.
    pub fn new(lookup: &Lookup) -> Result<Self> {
        Ok(Self { library: locate(lookup)?, runtime: None })
    }

    /// Speaks `sentences` with the voice in `directory`.
    ///
    /// # Errors
    /// Those of the engine and of the disk.
    pub fn speak(&mut self, directory: &Path, sentences: &[Sentence]) -> Result<()> {
        let runtime = match &self.runtime {
            Some(runtime) => Arc::clone(runtime),
            None => Arc::new(Runtime::load(&self.library, Accelerator::Cpu)?),
        };
        self.runtime = Some(Arc::clone(&runtime));
        let voice = Voice::load(directory, None)?;
        let plan = plan(&voice, Precision::F32, Accelerator::Cpu)?;
        let synthesizer = Synthesizer::load(&runtime, &voice, &plan, &EngineOptions::solo(1))?;
        for Sentence { text, speaker, wav } in sentences {
            let passage = synthesizer.passage(&Script::Text(text.clone()), &Reading::default())?;
            let speaker = voice.speakers.values(speaker.clone())?;
            let mut file = WavFile::create(wav, synthesizer.sample_rate_hz())?;
            for chunk in synthesizer.speak(passage.segments, StreamRequest::new(speaker))? {
                file.write(&chunk?.samples)?;
            }
            file.finish()?;
        }
        Ok(())
    }
}
