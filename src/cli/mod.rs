//! A command line in, what it means out, once.
//!
//! The only place below `main` that reads the environment. Never does the work.

mod batch;
#[cfg(feature = "finetune")]
mod finetune;
mod say;
mod serve;
mod values;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};

pub use batch::{Batch, Shard};
#[cfg(feature = "finetune")]
pub use finetune::Finetune;
pub use say::Say;
pub use serve::Serve;

use crate::error::{Error, Result};
use crate::runtime::Accelerator;
use crate::runtime::library::{Clients, Lookup, default_cache_dir};
use crate::text::Lexicon;
use crate::voice::Voice;
use values::parse_device;

/// Low-latency text-to-speech with SpeechT5 voices on ONNX Runtime.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// What to log on stderr: error, warn, info, debug, or a filter such as mezzavoce=debug [default: warn, and info
    /// for serve]
    #[arg(long, global = true, value_name = "FILTER", env = "MEZZAVOCE_LOG")]
    pub log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Speak one text into a WAV file, or as raw samples to stdout
    Say(Say),
    /// Speak every line of JSONL files into files of their own
    Batch(Box<Batch>),
    /// Speak for clients over gRPC
    Serve(Serve),
    /// Adapt a voice to recordings
    #[cfg(feature = "finetune")]
    Finetune(Box<Finetune>),
    /// Show what a voice is made of
    Inspect(VoiceArgs),
}

#[derive(Debug, Args)]
pub struct VoiceArgs {
    /// A voice directory in the Hugging Face SpeechT5 layout [default: the voice in this program]
    #[arg(long, value_name = "DIR")]
    pub voice: Option<PathBuf>,

    /// The voice's vocoder, where it is not in DIR/vocoder
    #[arg(long, value_name = "DIR", requires = "voice")]
    pub vocoder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct LexiconArgs {
    /// How words sound: a TSV file of words and IPA, or a PLS file
    #[arg(long, value_name = "FILE")]
    pub lexicon: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct RuntimeArgs {
    /// cpu, cuda or cuda:N
    #[arg(long, default_value = "cpu", value_parser = parse_device)]
    pub device: Accelerator,

    /// The ONNX Runtime library, or a directory that holds it [env: ORT_DYLIB_PATH] [default: fetched once]
    #[arg(long, value_name = "PATH")]
    pub onnxruntime: Option<PathBuf>,

    /// Never fetch the ONNX Runtime library
    #[arg(long)]
    pub offline: bool,
}

impl VoiceArgs {
    /// Loads the voice that is meant.
    pub fn load(&self) -> Result<Voice> {
        match &self.voice {
            Some(dir) => Voice::load(dir, self.vocoder.as_deref()),
            None => Voice::embedded(),
        }
    }
}

impl LexiconArgs {
    /// Loads the lexicon that is meant, if one is.
    pub fn load(&self) -> Result<Option<Arc<Lexicon>>> {
        let Some(path) = &self.lexicon else { return Ok(None) };
        let lexicon = Lexicon::load(path)?;
        tracing::info!("{} entries from {}", lexicon.len(), path.display());
        lexicon.notices().iter().for_each(|notice| tracing::warn!("{notice}"));
        Ok(Some(Arc::new(lexicon)))
    }
}

impl RuntimeArgs {
    /// Where to look for the library.
    pub fn lookup(&self) -> Result<Lookup> {
        let named = || std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
        let explicit = self.onnxruntime.clone().or_else(named);
        // A machine without a home needs no cache if it names its library.
        let cache_dir = match explicit {
            Some(_) => PathBuf::new(),
            None => default_cache_dir(|name| std::env::var_os(name))?,
        };
        Ok(Lookup { explicit, cache_dir, offline: self.offline, clients: Clients::default() })
    }
}

/// How many threads are meant by `--threads`, or by its absence.
///
/// # Errors
/// [`Error::InvalidRequest`] for more than four a processor: a thread pool that the system does not let grow hangs.
pub fn threads(requested: Option<u16>) -> Result<usize> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let Some(requested) = requested.map(usize::from) else { return Ok(processors.min(4)) };
    let most = 4 * processors;
    if requested > most {
        let reason = format!("{requested} threads on {processors} processors: {most} at most");
        return Err(Error::InvalidRequest(reason));
    }
    Ok(requested)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
