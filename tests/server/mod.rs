//! A server for tests, and what its clients do.

#![allow(dead_code, reason = "each test binary uses its own part")]

#[path = "../support/mod.rs"]
pub mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mezzavoce::engine::EngineOptions;
use mezzavoce::error::Result;
use mezzavoce::precision::Precision;
use mezzavoce::repertoire::{VoiceOptions, VoiceSource};
use mezzavoce::runtime::Accelerator;
use mezzavoce::serve::{SERVICE, ServeOptions, run};
use mezzavoce::telemetry::Metrics;
use mezzavoce::transport::feed::FeedLimits;
use mezzavoce::transport::pb;
use pb::speech_client::SpeechClient;
use pb::synthesize_request::Content;
use pb::synthesize_response::Event;
use support::{root, runtime};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::Streaming;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// What no wait of a test should come near to.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub type Client = SpeechClient<Channel>;
pub type Responses = Streaming<pb::SynthesizeResponse>;

pub struct Server {
    pub address: String,
    pub shutdown: oneshot::Sender<()>,
    pub reload: mpsc::Sender<()>,
    pub ended: JoinHandle<Result<()>>,
    pub metrics: Metrics,
}

pub fn options() -> ServeOptions {
    let engine = EngineOptions {
        threads: 2,
        max_streams: 8,
        queue: 8,
        kv_cache_bytes: 1 << 30,
        slow_client_timeout: Duration::from_secs(10),
    };
    let stock = root().join("tests/data/speecht5_tiny");
    ServeOptions {
        voices: vec![
            VoiceSource { name: Some("default".to_owned()), directory: None },
            VoiceSource { name: Some("stock".to_owned()), directory: Some(stock) },
        ],
        voice_options: VoiceOptions {
            precision: Precision::F32,
            accelerator: Accelerator::Cpu,
            engine,
            lexicon: None,
        },
        feed: FeedLimits { max_text_bytes: 10_000, text_timeout: Duration::from_secs(120) },
        drain_timeout: Duration::from_secs(60),
        allow_admin: false,
    }
}

/// Starts a server, which may still be loading.
pub async fn start(options: ServeOptions) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (shutdown, told) = oneshot::channel();
    let (reload, reloads) = mpsc::channel(1);
    let metrics = Metrics::new();
    let counted = metrics.clone();
    let ended = tokio::spawn(run(listener, Arc::clone(runtime()), options, counted, reloads, async {
        let _ = told.await;
    }));
    Server { address, shutdown, reload, ended, metrics }
}

impl Server {
    pub async fn client(&self) -> Client {
        SpeechClient::connect(self.address.clone()).await.unwrap()
    }

    pub async fn health(&self) -> HealthClient<Channel> {
        HealthClient::new(Channel::from_shared(self.address.clone()).unwrap().connect().await.unwrap())
    }

    /// What is counted under `series`; 0 before the first.
    pub fn counted(&self, series: &str) -> f64 {
        let text = self.metrics.render();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Waits until `series` is `value`.
    pub async fn counts(&self, series: &str, value: f64) {
        let began = Instant::now();
        while self.counted(series) != value {
            assert!(began.elapsed() < PATIENCE, "{series} is not {value} in\n{}", self.metrics.render());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until it serves.
    pub async fn serving(self) -> Self {
        watch_for(&mut self.health().await, 1).await;
        self
    }
}

/// Waits for a status of the service.
pub async fn watch_for(health: &mut HealthClient<Channel>, status: i32) {
    let request = HealthCheckRequest { service: SERVICE.to_owned() };
    let mut statuses = health.watch(request).await.unwrap().into_inner();
    while statuses.next().await.unwrap().unwrap().status != status {}
}

pub fn request(text: &str) -> pb::SynthesizeRequest {
    let config = pb::SynthesisConfig { seed: Some(7), ..Default::default() };
    pb::SynthesizeRequest { content: Some(Content::Text(text.to_owned())), config: Some(config) }
}

pub fn with(text: &str, change: impl FnOnce(&mut pb::SynthesisConfig)) -> pb::SynthesizeRequest {
    let mut request = request(text);
    change(request.config.as_mut().unwrap());
    request
}

/// All of a response.
#[derive(Debug, Default)]
pub struct Spoken {
    pub started: pb::Started,
    pub audio: Vec<u8>,
    pub completed: pb::Completed,
}

pub async fn collect(mut responses: Responses) -> Result<Spoken, Status> {
    let mut spoken = Spoken::default();
    while let Some(response) = responses.message().await? {
        match response.event.unwrap() {
            Event::Started(started) => spoken.started = started,
            Event::Audio(bytes) => spoken.audio.extend(bytes),
            Event::Completed(completed) => spoken.completed = completed,
        }
    }
    assert!(spoken.completed.samples > 0, "it ended without a last message");
    Ok(spoken)
}

pub async fn speak(client: &mut Client, request: pb::SynthesizeRequest) -> Result<Spoken, Status> {
    collect(client.synthesize(request).await?.into_inner()).await
}

/// Sends messages one by one.
pub async fn incremental(
    client: &mut Client,
    config: pb::SynthesisConfig,
) -> (mpsc::Sender<pb::SynthesizeIncrementalRequest>, Responses) {
    use pb::synthesize_incremental_request::Content;
    let (sender, receiver) = mpsc::channel(64);
    let message = pb::SynthesizeIncrementalRequest { content: Some(Content::Config(config)) };
    sender.send(message).await.unwrap();
    let responses = client.synthesize_incremental(ReceiverStream::new(receiver)).await.unwrap();
    (sender, responses.into_inner())
}

pub fn piece(text: &str) -> pb::SynthesizeIncrementalRequest {
    use pb::synthesize_incremental_request::Content;
    pb::SynthesizeIncrementalRequest { content: Some(Content::Text(text.to_owned())) }
}

pub const LONG: &str =
    "It was a long day, and it went on, and there was no end to it in sight for anyone who looked. ";
