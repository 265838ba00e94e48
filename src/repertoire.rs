//! Names and directories in, voices that are warm and ready to speak out.
//!
//! A voice comes in whole or not at all, and one that is taken away lives until its last stream has ended. Never
//! opens a directory that it was not told of by the command line or by an administrator.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::engine::{AudioStream, EngineOptions, StreamRequest};
use crate::error::{Error, Excerpt, Result};
use crate::precision::{Device, Plan, Precision, Purpose, resolve};
use crate::runtime::{Accelerator, Runtime};
use crate::synthesizer::{Script, Synthesizer};
use crate::telemetry::Metrics;
use crate::text::{Lexicon, Reading};
use crate::voice::{Speakers, SymbolTable, Voice};

/// Streams that warm the decoder up together.
const WARM_UP_STREAMS: usize = 8;

/// Where a voice comes from and what it is called here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceSource {
    /// What clients call it; `None` is the voice's own name.
    pub name: Option<String>,
    /// `None` is the voice in this program.
    pub directory: Option<PathBuf>,
}

/// How every voice is loaded.
#[derive(Debug, Clone)]
pub struct VoiceOptions {
    pub precision: Precision,
    pub accelerator: Accelerator,
    pub engine: EngineOptions,
    pub lexicon: Option<Arc<Lexicon>>,
}

/// A voice that can be asked to speak.
pub struct ServedVoice {
    pub name: String,
    pub language: String,
    pub licence: Option<String>,
    pub description: Option<String>,
    pub speakers: Speakers,
    /// It spells in IPA, and so takes phonemes.
    pub spells_ipa: bool,
    pub plan: Plan,
    pub synthesizer: Synthesizer,
    cache_bytes: usize,
    /// The shortest time that any request has had to wait for its first audio, in microseconds.
    quickest_us: AtomicU64,
}

/// The plan of `precision` for `voice` on `accelerator`.
pub fn plan(voice: &Voice, precision: Precision, accelerator: Accelerator) -> Result<Plan> {
    let device = match accelerator {
        Accelerator::Cpu => Device::this_cpu(),
        // The oldest GPU that the provider still runs on: nothing is promised that it might not do.
        Accelerator::Cuda(id) => Device::cuda(format!("CUDA device {id}"), (7, 5)),
    };
    let plan = resolve(Purpose::Inference, precision, voice.acoustic.stored_dtype(), &device)?;
    Ok(plan.with_vocoder_stored(voice.vocoder.stored_dtype()))
}

impl ServedVoice {
    fn load(runtime: &Runtime, source: &VoiceSource, options: &VoiceOptions) -> Result<Self> {
        let voice = match &source.directory {
            Some(directory) => Voice::load(directory, None)?,
            None => Voice::embedded()?,
        };
        let plan = plan(&voice, options.precision, options.accelerator)?;
        let name = source.name.clone().unwrap_or_else(|| voice.name.clone());
        tracing::info!(voice = name, "{}", plan.summary());
        let synthesizer = Synthesizer::load(runtime, &voice, &plan, &options.engine)?;
        let synthesizer = synthesizer.with_lexicon(options.lexicon.clone());
        let cache_bytes = synthesizer.engine().cache_bytes();
        let served = Self {
            speakers: Speakers { voice: name.clone(), ..voice.speakers },
            name,
            language: voice.language,
            licence: voice.licence,
            description: voice.description,
            spells_ipa: matches!(voice.symbols, SymbolTable::Ipa(_)),
            plan,
            synthesizer,
            cache_bytes,
            quickest_us: AtomicU64::new(u64::MAX),
        };
        served.warm_up()?;
        Ok(served)
    }

    /// Speaks alone and in company, so that no client pays for first runs.
    fn warm_up(&self) -> Result<()> {
        let began = Instant::now();
        drain(self.try_out()?, |_| self.spoke_after(began.elapsed()))?;
        let together = self.synthesizer.engine().slots().min(WARM_UP_STREAMS);
        let streams: Vec<AudioStream> = (0..together).map(|_| self.try_out()).collect::<Result<_>>()?;
        streams.into_iter().try_for_each(|stream| drain(stream, |_| ()))?;
        tracing::info!(voice = self.name, "warm after {:.0?}", began.elapsed());
        Ok(())
    }

    fn try_out(&self) -> Result<AudioStream> {
        let speaker = match &self.speakers.default {
            Some(name) => self.speakers.named(Some(name))?,
            None => vec![1.0; self.speakers.dimensions],
        };
        let segments = self
            .synthesizer
            .passage(&Script::Text("a ready voice".to_owned()), &Reading::default())?
            .segments;
        let request = StreamRequest::new(speaker);
        self.synthesizer.speak(segments, request)
    }

    /// The shortest time that any request has had to wait for its first audio.
    pub fn quickest(&self) -> Duration {
        Duration::from_micros(self.quickest_us.load(Ordering::Relaxed))
    }

    /// Notes how long a request has waited for its first audio.
    pub fn spoke_after(&self, wait: Duration) {
        let us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.quickest_us.fetch_min(us, Ordering::Relaxed);
    }
}

fn drain(stream: AudioStream, mut each: impl FnMut(usize)) -> Result<()> {
    for chunk in stream {
        each(chunk?.samples.len());
    }
    Ok(())
}

/// The voices of one server, the first of them the default.
pub struct Repertoire {
    runtime: Arc<Runtime>,
    options: VoiceOptions,
    metrics: Metrics,
    voices: RwLock<Vec<Arc<ServedVoice>>>,
    /// Held while voices come or go, so that two changes do not undo each other.
    changing: Mutex<()>,
    draining: AtomicBool,
    /// The first voices have not been loaded yet.
    loading: AtomicBool,
    /// How many voices there are, for whoever wants to hear of it.
    count: watch::Sender<usize>,
}

impl Repertoire {
    /// Without a voice yet.
    pub fn new(runtime: Arc<Runtime>, options: VoiceOptions, metrics: Metrics) -> Self {
        Self {
            runtime,
            options,
            metrics,
            voices: RwLock::default(),
            changing: Mutex::default(),
            draining: AtomicBool::new(false),
            loading: AtomicBool::new(true),
            count: watch::Sender::new(0),
        }
    }

    /// How many voices there are, as they come and go.
    pub fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Whether the first voices are still to come.
    pub fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    pub fn options(&self) -> &VoiceOptions {
        &self.options
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub fn voices(&self) -> Vec<Arc<ServedVoice>> {
        self.voices.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first voice, then the others by name.
    pub fn by_name(&self) -> Vec<Arc<ServedVoice>> {
        let mut voices = self.voices();
        if let Some((_, others)) = voices.split_first_mut() {
            others.sort_by(|a, b| a.name.cmp(&b.name));
        }
        voices
    }

    /// The voice called `name`; the first one when `name` is empty.
    pub fn find(&self, name: &str) -> Option<Arc<ServedVoice>> {
        let voices = self.voices.read().unwrap_or_else(PoisonError::into_inner);
        voices.iter().find(|voice| name.is_empty() || voice.name == name).cloned()
    }

    /// Loads every one of `sources`, then lets them all take the place of those of their names, in front of all others
    /// and in their own order. Blocks.
    ///
    /// # Errors
    /// Those of the first source that cannot be loaded, and [`Error::InvalidRequest`] for a name that comes twice;
    /// then nothing has changed.
    pub fn load(&self, sources: &[VoiceSource]) -> Result<()> {
        let _changing = self.change()?;
        let mut loaded: Vec<Arc<ServedVoice>> = Vec::new();
        for source in sources {
            let voice = ServedVoice::load(&self.runtime, source, &self.options)?;
            if loaded.iter().any(|other| other.name == voice.name) {
                let name = Excerpt(&voice.name);
                return Err(Error::InvalidRequest(format!(
                    "two voices are called `{name}`: name them apart"
                )));
            }
            loaded.push(Arc::new(voice));
        }
        let mut voices = self.voices.write().unwrap_or_else(PoisonError::into_inner);
        loaded.iter().for_each(|voice| self.put_to_work(voice));
        let is_replaced = |other: &Arc<ServedVoice>| loaded.iter().any(|voice| voice.name == other.name);
        let (replaced, others): (Vec<_>, Vec<_>) = voices.drain(..).partition(is_replaced);
        *voices = [loaded, others].concat();
        self.loading.store(false, Ordering::Release);
        self.tell_count(&voices);
        drop(voices);
        // Their threads end, which nobody who looks for a voice should wait for.
        drop(replaced);
        Ok(())
    }

    /// Loads a voice behind the others, or in the place of the one of its name. Blocks.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn add(&self, source: &VoiceSource) -> Result<Arc<ServedVoice>> {
        let _changing = self.change()?;
        let voice = Arc::new(ServedVoice::load(&self.runtime, source, &self.options)?);
        let mut voices = self.voices.write().unwrap_or_else(PoisonError::into_inner);
        self.put_to_work(&voice);
        let replaced = match voices.iter_mut().find(|other| other.name == voice.name) {
            Some(place) => Some(std::mem::replace(place, Arc::clone(&voice))),
            None => {
                voices.push(Arc::clone(&voice));
                None
            }
        };
        self.tell_count(&voices);
        drop(voices);
        drop(replaced);
        Ok(voice)
    }

    fn put_to_work(&self, voice: &ServedVoice) {
        let engine = voice.synthesizer.engine();
        let slots = engine.slots();
        self.metrics.watch_engine(&voice.name, Arc::clone(engine.stats()), slots, voice.cache_bytes);
        if self.draining.load(Ordering::Acquire) {
            engine.drain();
        }
    }

    fn tell_count(&self, voices: &RwLockWriteGuard<'_, Vec<Arc<ServedVoice>>>) {
        self.count.send_replace(voices.len());
    }

    /// Takes the voice called `name` away. -> whether there was one
    pub fn unload(&self, name: &str) -> Result<bool> {
        let _changing = self.change()?;
        let mut voices = self.voices.write().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = voices.iter().position(|voice| voice.name == name) else { return Ok(false) };
        let voice = voices.remove(at);
        self.metrics.forget_engine(name);
        self.tell_count(&voices);
        drop(voices);
        drop(voice);
        Ok(true)
    }

    /// Refuses new requests and new voices from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        self.voices().iter().for_each(|voice| voice.synthesizer.engine().drain());
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    fn change(&self) -> Result<MutexGuard<'_, ()>> {
        if self.is_draining() {
            return Err(Error::Unavailable("the server is shutting down".to_owned()));
        }
        Ok(self.changing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
