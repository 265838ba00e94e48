//! A [`Script`] in, a stream of audio out: one voice's text front-end before its engine.
//!
//! Never shortens, drops or clamps anything without saying so in the stream.

use std::sync::Arc;
use std::thread;

use crate::engine::{AudioStream, Engine, EngineOptions, StreamRequest, TextInlet};
use crate::error::{Error, Result};
use crate::precision::Plan;
use crate::runtime::Runtime;
use crate::text::{Frontend, Lexicon, Passage, Pause, Reading, Segment};
use crate::voice::Voice;

/// What to speak.
#[derive(Debug, Clone)]
pub enum Script {
    /// Text as a person would write it.
    Text(String),
    /// Phonemes in the voice's own symbols.
    Phonemes(String),
    /// An SSML document.
    Ssml(String),
}

/// One voice, ready to speak.
pub struct Synthesizer {
    frontend: Frontend,
    engine: Engine,
    sample_rate_hz: u32,
}

impl Script {
    /// As it was sent.
    pub fn text(&self) -> &str {
        let (Self::Text(text) | Self::Phonemes(text) | Self::Ssml(text)) = self;
        text
    }
}

impl Synthesizer {
    /// Loads the text front-end of `voice` and starts its engine, beside each other.
    pub fn load(runtime: &Runtime, voice: &Voice, plan: &Plan, options: &EngineOptions) -> Result<Self> {
        let (frontend, engine) = thread::scope(|scope| {
            let frontend = thread::Builder::new().spawn_scoped(scope, || Frontend::load(voice));
            let engine = Engine::start(runtime, voice, plan, options);
            let died = |_| Error::Internal("the text front-end died while it was loaded".to_owned());
            // Without a second thread there is still this one.
            let frontend =
                frontend.map_or_else(|_| Frontend::load(voice), |thread| thread.join().map_err(died)?);
            (frontend, engine)
        });
        Ok(Self {
            frontend: frontend?,
            engine: engine?,
            sample_rate_hz: voice.vocoder_config.sample_rate_hz(),
        })
    }

    /// Lets `lexicon`, if there is one, say how its words sound in every text.
    pub fn with_lexicon(mut self, lexicon: Option<Arc<Lexicon>>) -> Self {
        if let Some(lexicon) = lexicon {
            self.frontend = self.frontend.with_lexicon(lexicon);
        }
        self
    }

    /// Samples a second of every chunk.
    pub fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn frontend(&self) -> &Frontend {
        &self.frontend
    }

    /// What `script` says, read as `reading` says; behind the last segment there is no pause but one that is asked for.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when there is nothing to speak.
    pub fn passage(&self, script: &Script, reading: &Reading) -> Result<Passage> {
        let of = |segments| Passage { segments, ..Passage::default() };
        let mut passage = match script {
            Script::Text(text) => of(self.frontend.segments(text, reading)?),
            Script::Phonemes(phonemes) => of(self.frontend.phonemes(phonemes)?),
            Script::Ssml(ssml) => self.frontend.ssml(ssml, reading)?,
        };
        let nothing = || Error::InvalidRequest("there is nothing to speak".to_owned());
        let last = passage.segments.last_mut().ok_or_else(nothing)?;
        if !matches!(last.pause, Pause::Break(_)) {
            last.pause = Pause::None;
        }
        Ok(passage)
    }

    /// Speaks `segments`.
    ///
    /// # Errors
    /// [`Error::Overloaded`] when no stream and no place in the queue is free.
    pub fn speak(&self, segments: Vec<Segment>, request: StreamRequest) -> Result<AudioStream> {
        let (inlet, stream) = self.open(request)?;
        segments.into_iter().try_for_each(|segment| inlet.push(segment))?;
        Ok(stream)
    }

    /// Opens a stream whose segments come later.
    ///
    /// # Errors
    /// As [`Self::speak`].
    pub fn open(&self, request: StreamRequest) -> Result<(TextInlet, AudioStream)> {
        self.engine.open(request)
    }
}
