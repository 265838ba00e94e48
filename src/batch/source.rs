//! The command line in, who speaks the lines and what holds for those that do not say out.
//!
//! Never reads a line, and never speaks one itself.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::line::{Job, Refusal, SpeakerChoice};
use super::record::Spoken;
use super::remote::{Patience, Server};
use super::run::LINES_BESIDE;
use super::settings::{
    Defaults, RemoteJob, Resolved, embedding, file_hash, resolve, resolve_for_server, voice_hash,
};
use super::speak::{Place, Trouble, speak};
use crate::cli::{Batch, threads};
use crate::engine::EngineOptions;
use crate::error::{Error, Excerpt, Result};
use crate::repertoire::{Repertoire, VoiceOptions, VoiceSource};
use crate::runtime::{Accelerator, Runtime, library};
use crate::telemetry::Metrics;
use crate::voice::{embedding_of_file, is_embedding_file};

/// Who speaks the lines of a run.
pub enum Source {
    Voices(Box<Repertoire>),
    Server(Arc<Server>),
}

impl Source {
    /// Decides what `job`, which goes to `output`, leaves open.
    pub fn resolve(&self, job: Job, output: String, defaults: &Defaults) -> Result<Work, Refusal> {
        Ok(match self {
            Self::Voices(voices) => Work::Here(Box::new(resolve(job, output, voices, defaults)?)),
            Self::Server(server) => {
                Work::There(Arc::clone(server), Box::new(resolve_for_server(job, output, defaults)?))
            }
        })
    }
}

/// A job with everything decided that can be decided here, and who speaks it.
pub enum Work {
    Here(Box<Resolved>),
    There(Arc<Server>, Box<RemoteJob>),
}

impl Work {
    pub fn output(&self) -> &str {
        match self {
            Self::Here(job) => &job.output,
            Self::There(_, job) => &job.output,
        }
    }

    pub fn key(&self) -> &str {
        match self {
            Self::Here(job) => &job.key,
            Self::There(_, job) => &job.key,
        }
    }

    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Here(job) => job.script.text().len(),
            Self::There(_, job) => job.request.script.text().len(),
        }
    }

    pub fn speak(&self, place: &Place, stopped: &AtomicBool) -> Result<Spoken, Trouble> {
        match self {
            Self::Here(job) => speak(job, place, stopped),
            Self::There(server, job) => server.speak(job, place, stopped),
        }
    }
}

/// Who speaks, and what holds for lines that do not say.
///
/// # Errors
/// What keeps the voices from being loaded or the server from being asked, and [`Error::InvalidRequest`] for a
/// `--speaker` that no voice takes.
pub fn source(args: &Batch, stopped: &AtomicBool) -> Result<(Source, Defaults)> {
    let defaults = |speaker, run_hash, versions, voice_hashes, remote_voices| Defaults {
        speaker,
        seed: args.seed,
        speaking_rate: args.rate,
        encoding: args.encoding,
        sample_rate_hz: args.sample_rate_hz,
        markup: args.markup,
        date_order: args.date_order,
        run_hash,
        versions,
        voice_hashes,
        remote_voices,
    };
    if let Some(address) = &args.server {
        let patience = Patience { accept: args.server_timeout, line: args.server_patience };
        let server = Server::new(address.clone(), patience);
        let voices = server.voices(stopped)?;
        let voice_hashes = voices.iter().map(|voice| (voice.name.clone(), voice.identity.clone())).collect();
        let speaker = speaker(args, |_| false)?;
        if let SpeakerChoice::Name(name) = &speaker
            && !voices.iter().any(|voice| voice.speakers.contains(name))
        {
            let reason = format!("--speaker: no voice of the server has a speaker `{}`", Excerpt(name));
            return Err(Error::InvalidRequest(reason));
        }
        let defaults = defaults(speaker, format!("server {address}"), Vec::new(), voice_hashes, voices);
        return Ok((Source::Server(Arc::new(server)), defaults));
    }
    let sources = match args.voices.as_slice() {
        [] => vec![VoiceSource { name: Some("default".to_owned()), directory: None }],
        sources => sources.to_vec(),
    };
    let (runtime, repertoire, lexicon_hash) = load(args, &sources)?;
    let loaded = repertoire.voices();
    let speaker =
        speaker(args, |name| loaded.iter().any(|voice| voice.speakers.embeddings.contains_key(name)))?;
    let fits = loaded.iter().map(|voice| embedding(speaker.clone(), &voice.speakers));
    if speaker != SpeakerChoice::Default && fits.clone().all(|fit| fit.is_err()) {
        let why = fits.filter_map(Result::err).next().map_or_else(String::new, |refusal| refusal.message);
        return Err(Error::InvalidRequest(format!("--speaker: {why}")));
    }
    let hashes = loaded.iter().zip(&sources).map(|(voice, source)| {
        Ok((voice.name.clone(), format!("{} {}", voice_hash(source.directory.as_deref())?, voice.plan)))
    });
    let run_hash = format!(
        "{}, ONNX Runtime {}, {:?} {lexicon_hash:?}",
        env!("CARGO_PKG_VERSION"),
        runtime.version(),
        args.runtime.device
    );
    let device = match args.runtime.device {
        Accelerator::Cpu => "cpu",
        Accelerator::Cuda(_) => "cuda",
    };
    let versions = vec![
        ("the program's version", env!("CARGO_PKG_VERSION").to_owned()),
        ("ONNX Runtime", runtime.version().to_string()),
        ("--device", device.to_owned()),
    ];
    let defaults = defaults(speaker, run_hash, versions, hashes.collect::<Result<_>>()?, Vec::new());
    Ok((Source::Voices(Box::new(repertoire)), defaults))
}

/// The voices of `sources` in this process. -> also the runtime that computes them, and the hash of the lexicon
fn load(args: &Batch, sources: &[VoiceSource]) -> Result<(Arc<Runtime>, Repertoire, Option<String>)> {
    let jobs = usize::from(args.jobs);
    let engine = EngineOptions {
        threads: threads(args.threads)?,
        max_streams: jobs,
        queue: jobs + LINES_BESIDE,
        kv_cache_bytes: (args.kv_cache_mib as usize).saturating_mul(1 << 20),
        slow_client_timeout: std::time::Duration::MAX,
    };
    let lexicon_hash = args.lexicon.lexicon.as_deref().map(file_hash).transpose()?;
    let (precision, accelerator) = (args.precision, args.runtime.device);
    let options = VoiceOptions { precision, accelerator, engine, lexicon: args.lexicon.load()? };
    let library = library::locate(&args.runtime.lookup()?)?;
    let runtime = Arc::new(Runtime::load(&library, accelerator)?);
    let repertoire = Repertoire::new(Arc::clone(&runtime), options, Metrics::new());
    repertoire.load(sources)?;
    Ok((runtime, repertoire, lexicon_hash))
}

/// What `--speaker` means: a name that `is_known`, a file, or else a name that only the voice of a line may know.
fn speaker(args: &Batch, is_known: impl Fn(&str) -> bool) -> Result<SpeakerChoice> {
    Ok(match args.speaker.as_deref() {
        Some(path) if !is_known(path) && is_embedding_file(path) => {
            SpeakerChoice::Embedding(embedding_of_file(Path::new(path))?)
        }
        Some(name) => SpeakerChoice::Name(name.to_owned()),
        None => SpeakerChoice::Default,
    })
}
