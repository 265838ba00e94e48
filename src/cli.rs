//! A command line in, what it means out, once.
//!
//! The only place below `main` that reads the environment. Never does the work.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::engine::DEFAULT_SEED;
use crate::error::{Error, Result};
use crate::precision::Precision;
use crate::runtime::Accelerator;
use crate::runtime::library::{Clients, Lookup, default_cache_dir};
use crate::tempo::SPEAKING_RATES;
use crate::voice::Voice;

/// Low-latency text-to-speech with SpeechT5 voices on ONNX Runtime.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// What to log on stderr: error, warn, info, debug, or a filter such as mezzavoce=debug
    #[arg(long, global = true, default_value = "warn", value_name = "FILTER", env = "MEZZAVOCE_LOG")]
    pub log: String,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Speak one text into a WAV file, or as raw samples to stdout
    Say(Say),
    /// Show what a voice is made of
    Inspect(VoiceArgs),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").args(["output", "raw", "explain"]).multiple(true).required(true))]
pub struct Say {
    /// The text; - reads it from stdin
    #[arg(required_unless_present = "explain")]
    pub text: Option<String>,

    /// Write a WAV file, which appears when it is complete; - is stdout
    #[arg(short, long, value_name = "FILE", conflicts_with = "raw")]
    pub output: Option<PathBuf>,

    /// Write signed 16-bit little-endian samples to stdout as they are produced
    #[arg(long)]
    pub raw: bool,

    /// The text is phonemes in the voice's own symbols
    #[arg(long)]
    pub phonemes: bool,

    #[command(flatten)]
    pub voice: VoiceArgs,

    /// A speaker of the voice, or a .npy, .safetensors or .json file with a speaker embedding
    #[arg(long, value_name = "NAME|FILE")]
    pub speaker: Option<String>,

    /// The same seed gives the same audio
    #[arg(long, default_value_t = DEFAULT_SEED)]
    pub seed: u64,

    /// How fast, 0.5 to 2; 1 is the voice's own pace
    #[arg(long, default_value_t = 1.0, value_parser = parse_speaking_rate)]
    pub rate: f32,

    /// 32, 16-mixed, bf16-mixed, fp16-true, bf16-true, fp16-flash or bf16-flash
    #[arg(long, default_value_t, value_name = "MODE")]
    pub precision: Precision,

    /// Threads in all [default: the processors there are, 4 at most]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    /// Print what the precision means on this device, stage by stage, and stop
    #[arg(long)]
    pub explain: bool,

    #[command(flatten)]
    pub runtime: RuntimeArgs,
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

fn parse_speaking_rate(text: &str) -> Result<f32> {
    let (low, high) = SPEAKING_RATES.into_inner();
    let rate = text.parse().ok().filter(|rate| SPEAKING_RATES.contains(rate));
    rate.ok_or_else(|| Error::InvalidRequest(format!("a speaking rate must be {low} to {high}")))
}

fn parse_device(text: &str) -> Result<Accelerator> {
    let refuse = || Error::InvalidRequest(format!("device `{text}` is not cpu, cuda or cuda:N"));
    match text.split_once(':') {
        None if text == "cpu" => Ok(Accelerator::Cpu),
        None if text == "cuda" => Ok(Accelerator::Cuda(0)),
        Some(("cuda", id)) => id.parse().map(Accelerator::Cuda).map_err(|_| refuse()),
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn devices_are_told_apart() {
        let cases =
            [("cpu", Accelerator::Cpu), ("cuda", Accelerator::Cuda(0)), ("cuda:3", Accelerator::Cuda(3))];
        for (text, expected) in cases {
            assert_eq!(parse_device(text).unwrap(), expected);
        }
        for text in ["", "gpu", "cuda:", "cuda:x", "cpu:0", "CUDA"] {
            assert!(parse_device(text).is_err(), "{text}");
        }
    }
}
