//! What `batch` can be told.
//!
//! Never does the work.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use super::values::{
    parse_date_order, parse_duration, parse_markup, parse_speaking_rate, parse_voice, parse_wait,
};
use super::{LexiconArgs, RuntimeArgs};
use crate::codec::Encoding;
use crate::engine::DEFAULT_SEED;
use crate::error::{Error, Excerpt, Result};
use crate::precision::Precision;
use crate::repertoire::VoiceSource;
use crate::text::{DateOrder, Markup};
use crate::transport::client::ServerAddress;

/// Lines of number n with (n - 1) mod `count` = `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    pub index: u64,
    pub count: u64,
}

impl Shard {
    /// Whether line `number`, counted from 1, is of this shard.
    pub fn takes(self, number: u64) -> bool {
        (number - 1) % self.count == self.index
    }
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let shard = parts.filter(|(index, count)| index < count && *count <= 100_000);
        let (index, count) = shard.ok_or_else(|| {
            let text = Excerpt(text);
            Error::InvalidRequest(format!("shard `{text}` is not I/N with I from 0 to N - 1, N to 100000"))
        })?;
        Ok(Self { index, count })
    }
}

/// What says how lines are spoken, and nothing where finished files are joined.
const NOT_FOR_MERGE: [&str; 21] = [
    "shard",
    "allow_unknown",
    "voices",
    "lexicon",
    "server",
    "server_timeout",
    "server_patience",
    "speaker",
    "seed",
    "rate",
    "encoding",
    "sample_rate_hz",
    "markup",
    "date_order",
    "jobs",
    "threads",
    "kv_cache_mib",
    "precision",
    "device",
    "onnxruntime",
    "offline",
];

#[derive(Debug, Args)]
pub struct Batch {
    /// JSONL files, a line for every text; - is stdin, which is read to its end before anything is spoken. With
    /// --merge: output directories of shards
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,

    /// Where audio and manifest.jsonl go
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,

    /// Speak only every N-th line, from the I-th on, counted from 0; the manifest is manifest-I-of-N.jsonl
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,

    /// Join what all shards have written into one directory and one manifest
    #[arg(long, conflicts_with_all = NOT_FOR_MERGE)]
    pub merge: bool,

    /// Take lines with fields that nobody knows
    #[arg(long)]
    pub allow_unknown: bool,

    /// A voice directory and what lines call it; may be given several times, the first is the default
    /// [default: the voice in this program, as `default`]
    #[arg(long = "voice", value_name = "[NAME=]DIR", value_parser = parse_voice)]
    pub voices: Vec<VoiceSource>,

    #[command(flatten)]
    pub lexicon: LexiconArgs,

    /// Let a running server speak; lines name its voices and speakers
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["voices", "lexicon", "threads", "kv_cache_mib", "precision"])]
    pub server: Option<ServerAddress>,

    /// How long the server may take to accept a line
    #[arg(long, default_value = "10s", value_parser = parse_wait, value_name = "TIME", requires = "server")]
    pub server_timeout: Duration,

    /// How long a line is offered again to a server that has too much to do, breaks off or is not there; then the line
    /// fails, or the run ends if the server is gone
    #[arg(long, default_value = "2m", value_parser = parse_duration, value_name = "TIME", requires = "server")]
    pub server_patience: Duration,

    /// A speaker, or a .npy, .safetensors or .json file with a speaker embedding, for lines that name none
    #[arg(long, value_name = "NAME|FILE")]
    pub speaker: Option<String>,

    /// The seed of lines that name none
    #[arg(long, default_value_t = DEFAULT_SEED)]
    pub seed: u64,

    /// How fast, 0.5 to 2, where a line does not say
    #[arg(long, default_value_t = 1.0, value_parser = parse_speaking_rate)]
    pub rate: f32,

    /// wav, s16le, f32le or mulaw, where a line does not say
    #[arg(long, default_value_t = Encoding::WavS16)]
    pub encoding: Encoding,

    /// 8000 to 48000, where a line does not say [default: the voice's own]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(8_000..=48_000))]
    pub sample_rate_hz: Option<u32>,

    /// What becomes of emoji and Markdown, where a line does not say: strip, speak or keep
    #[arg(long, default_value = "strip", value_parser = parse_markup, value_name = "HOW")]
    pub markup: Markup,

    /// Which number of 3/4/2025 is the month, where a line does not say
    #[arg(long, default_value = "month-first", value_parser = parse_date_order, value_name = "ORDER")]
    pub date_order: DateOrder,

    /// Lines that are spoken at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,

    /// Threads of each voice [default: the processors there are, 4 at most]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,

    /// What the caches of each voice may take; fewer lines are spoken at once where it does not suffice
    #[arg(long, default_value_t = 512, value_name = "MIB")]
    pub kv_cache_mib: u32,

    /// 32, 16-mixed, bf16-mixed, fp16-true, bf16-true, fp16-flash or bf16-flash
    #[arg(long, default_value_t, value_name = "MODE")]
    pub precision: Precision,

    /// Say nothing on stderr of a run in which every line succeeded
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub runtime: RuntimeArgs,
}
