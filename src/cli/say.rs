//! What `say` can be told.
//!
//! Never does the work.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{parse_date_order, parse_markup, parse_speaking_rate, parse_wait};
use super::{LexiconArgs, RuntimeArgs, VoiceArgs};
use crate::engine::DEFAULT_SEED;
use crate::precision::Precision;
use crate::text::{DateOrder, Markup};
use crate::transport::client::ServerAddress;

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").args(["output", "raw", "explain"]).multiple(true).required(true))]
pub struct Say {
    /// The text; - or nothing reads it from stdin. One that begins with a hyphen comes last, behind --
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

    /// The text is an SSML document
    #[arg(long, conflicts_with = "phonemes")]
    pub ssml: bool,

    /// What becomes of emoji and Markdown: strip, speak (by name) or keep
    #[arg(long, default_value = "strip", value_parser = parse_markup, value_name = "HOW", conflicts_with = "phonemes")]
    pub markup: Markup,

    /// Which number of 3/4/2025 is the month: month-first or day-first
    #[arg(long, default_value = "month-first", value_parser = parse_date_order, value_name = "ORDER", conflicts_with = "phonemes")]
    pub date_order: DateOrder,

    /// Let a running server speak; --voice is then one of its names, --speaker one of that voice's
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["explain", "vocoder", "precision", "threads", "lexicon"])]
    pub server: Option<ServerAddress>,

    /// How long the server may take to accept the request
    #[arg(long, default_value = "10s", value_parser = parse_wait, value_name = "TIME", requires = "server")]
    pub server_timeout: Duration,

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

    /// Say nothing on stderr of a file that was written
    #[arg(short, long)]
    pub quiet: bool,

    /// Print what the precision means on this device, stage by stage, and stop
    #[arg(long)]
    pub explain: bool,

    #[command(flatten)]
    pub runtime: RuntimeArgs,
}
