//! What `serve` can be told, and how that sets up a server.
//!
//! Never lets others reach a server without being told to.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::values::{parse_duration, parse_log_format, parse_text_bytes, parse_voice, parse_wait};
use super::{LexiconArgs, RuntimeArgs, threads};
use crate::engine::EngineOptions;
use crate::error::{Error, Result};
use crate::precision::Precision;
use crate::repertoire::{VoiceOptions, VoiceSource};
use crate::serve::ServeOptions;
use crate::telemetry::LogFormat;
use crate::text::MAX_TEXT_BYTES;
use crate::transport::feed::FeedLimits;

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
    #[arg(long, default_value = "10s", value_parser = parse_wait, value_name = "TIME")]
    pub slow_client_timeout: Duration,

    /// A text that is still being written is given up when nothing of it comes for this long
    #[arg(long, default_value = "2m", value_parser = parse_wait, value_name = "TIME")]
    pub text_timeout: Duration,

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
            feed: FeedLimits { max_text_bytes: self.max_text_bytes, text_timeout: self.text_timeout },
            drain_timeout: self.drain_timeout,
            allow_admin: self.allow_admin,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::{Cli, Command};

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
}
