//! A command line in, what it means out, once.
//!
//! The only place below `main` that reads the environment. Never does the work.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::engine::{DEFAULT_SEED, EngineOptions};
use crate::error::{Error, Result};
use crate::precision::Precision;
use crate::repertoire::{VoiceOptions, VoiceSource};
use crate::runtime::Accelerator;
use crate::runtime::library::{Clients, Lookup, default_cache_dir};
use crate::serve::ServeOptions;
use crate::telemetry::LogFormat;
use crate::tempo::SPEAKING_RATES;
use crate::text::{Lexicon, MAX_TEXT_BYTES};
use crate::voice::Voice;

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
    /// Speak for clients over gRPC
    Serve(Serve),
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

    /// Let a running server speak; --voice is then one of its names, --speaker one of that voice's
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["explain", "vocoder", "precision", "threads", "lexicon"])]
    pub server: Option<String>,

    #[command(flatten)]
    pub voice: VoiceArgs,

    #[command(flatten)]
    pub lexicon: LexiconArgs,

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
pub struct Serve {
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:50051", value_name = "ADDR")]
    pub listen: SocketAddr,

    /// Let --listen be reachable from other machines: nothing is encrypted, nobody is asked for a key
    #[arg(long)]
    pub insecure: bool,

    /// A voice directory and what clients call it; may be given several times, the first is the default
    /// [default: the voice in this program, as `default`]
    #[arg(long = "voice", value_name = "[NAME=]DIR", value_parser = parse_voice)]
    pub voices: Vec<VoiceSource>,

    #[command(flatten)]
    pub lexicon: LexiconArgs,

    /// 32, 16-mixed, bf16-mixed, fp16-true, bf16-true, fp16-flash or bf16-flash
    #[arg(long, default_value_t, value_name = "MODE")]
    pub precision: Precision,

    /// Threads of each voice [default: the processors there are, 4 at most]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,

    /// Requests that each voice speaks at once
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub max_streams: u16,

    /// Requests that may wait for each voice
    #[arg(long, default_value_t = 64)]
    pub queue: u16,

    /// The longest text of a request
    #[arg(long, default_value_t = MAX_TEXT_BYTES, value_parser = parse_text_bytes, value_name = "BYTES")]
    pub max_text_bytes: usize,

    /// What the caches of each voice may take; fewer requests speak at once where it does not suffice
    #[arg(long, default_value_t = 512, value_name = "MIB")]
    pub kv_cache_mib: u32,

    /// A reader that takes nothing for this long is dropped
    #[arg(long, default_value = "10s", value_parser = parse_duration, value_name = "TIME")]
    pub slow_client_timeout: Duration,

    /// How long accepted requests may take to end after SIGTERM or SIGINT
    #[arg(long, default_value = "30s", value_parser = parse_duration, value_name = "TIME")]
    pub drain_timeout: Duration,

    /// Let clients load and unload voices though --listen is reachable from other machines
    #[arg(long)]
    pub allow_admin: bool,

    /// Where to serve Prometheus metrics over HTTP
    #[arg(long, value_name = "ADDR")]
    pub metrics_addr: Option<SocketAddr>,

    /// human or json
    #[arg(long, default_value = "human", value_parser = parse_log_format, value_name = "FORMAT")]
    pub log_format: LogFormat,

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

impl Serve {
    /// How the server is set up.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when others could reach it and --insecure is not given.
    pub fn options(&self) -> Result<ServeOptions> {
        let addresses = [("--listen", Some(self.listen)), ("--metrics-addr", self.metrics_addr)];
        for (option, address) in
            addresses.into_iter().filter_map(|(option, address)| Some((option, address?)))
        {
            if !address.ip().is_loopback() && !self.insecure {
                return Err(Error::InvalidRequest(format!(
                    "{option} {address} is reachable from other machines, without encryption or keys: add --insecure \
                     if that is meant"
                )));
            }
        }
        let embedded = || vec![VoiceSource { name: Some("default".to_owned()), directory: None }];
        let engine = EngineOptions {
            threads: threads(self.threads)?,
            max_streams: self.max_streams.into(),
            queue: self.queue.into(),
            kv_cache_bytes: (self.kv_cache_mib as usize).saturating_mul(1 << 20),
            slow_client_timeout: self.slow_client_timeout,
        };
        let (precision, accelerator) = (self.precision, self.runtime.device);
        Ok(ServeOptions {
            voices: if self.voices.is_empty() { embedded() } else { self.voices.clone() },
            voice_options: VoiceOptions { precision, accelerator, engine, lexicon: self.lexicon.load()? },
            max_text_bytes: self.max_text_bytes,
            drain_timeout: self.drain_timeout,
            allow_admin: self.allow_admin,
        })
    }
}

/// `DIR`, or `NAME=DIR`; a name has no `/`, so that a directory may hold a `=`.
fn parse_voice(text: &str) -> Result<VoiceSource> {
    let (name, directory) = match text.split_once('=') {
        Some((name, directory)) if !name.contains('/') => (Some(name.to_owned()), directory),
        _ => (None, text),
    };
    if directory.is_empty() || name.as_deref() == Some("") {
        return Err(Error::InvalidRequest(format!("voice `{text}` is not DIR or NAME=DIR")));
    }
    Ok(VoiceSource { name, directory: Some(directory.into()) })
}

fn parse_text_bytes(text: &str) -> Result<usize> {
    let bytes = text.parse().ok().filter(|bytes| (1..=MAX_TEXT_BYTES).contains(bytes));
    bytes.ok_or_else(|| Error::InvalidRequest(format!("`{text}` is not in 1..={MAX_TEXT_BYTES}")))
}

/// A number and `ms`, `s` or `m`.
fn parse_duration(text: &str) -> Result<Duration> {
    let refuse = || Error::InvalidRequest(format!("`{text}` is no time such as 500ms, 10s or 2m"));
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u32 = text.strip_suffix(unit).and_then(|digits| digits.parse().ok()).ok_or_else(refuse)?;
    match unit {
        "ms" => Ok(Duration::from_millis(number.into())),
        "s" => Ok(Duration::from_secs(number.into())),
        "m" => Ok(Duration::from_secs(u64::from(number) * 60)),
        _ => Err(refuse()),
    }
}

fn parse_log_format(text: &str) -> Result<LogFormat> {
    match text {
        "human" => Ok(LogFormat::Human),
        "json" => Ok(LogFormat::Json),
        _ => Err(Error::InvalidRequest(format!("log format `{text}` is not human or json"))),
    }
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
    fn voices_have_names_of_their_own_or_given_ones() {
        let check = |text: &str, name: Option<&str>, directory: &str| {
            let expected = VoiceSource { name: name.map(str::to_owned), directory: Some(directory.into()) };
            assert_eq!(parse_voice(text).unwrap(), expected);
        };
        check("joe=voices/joe", Some("joe"), "voices/joe");
        check("voices/joe", None, "voices/joe");
        check("/a=b/c", None, "/a=b/c");
        check("x=/a=b", Some("x"), "/a=b");
        for text in ["", "joe=", "=dir"] {
            assert!(parse_voice(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        let cases = [("0ms", 0), ("250ms", 250), ("10s", 10_000), ("2m", 120_000)];
        for (text, ms) in cases {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_millis(ms));
        }
        for text in ["", "10", "s", "-1s", "1.5s", "1h", "99999999999s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn others_reach_the_server_only_where_that_is_meant() {
        let options = |arguments: &[&str]| {
            let line = ["mezzavoce", "serve"].into_iter().chain(arguments.iter().copied());
            match Cli::parse_from(line).command {
                Command::Serve(serve) => serve.options(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(options(&[]).unwrap().voices[0].name.as_deref(), Some("default"));
        let refusal = options(&["--listen", "0.0.0.0:1"]).unwrap_err().to_string();
        assert!(refusal.contains("0.0.0.0:1") && refusal.contains("--insecure"), "{refusal}");
        assert!(options(&["--listen", "0.0.0.0:1", "--insecure"]).is_ok());
        assert!(options(&["--metrics-addr", "0.0.0.0:1"]).is_err());
        assert!(options(&["--metrics-addr", "127.0.0.1:1"]).is_ok());
        assert!(options(&["--listen", "[::1]:1"]).is_ok());
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
