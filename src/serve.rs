//! A listener and a choice of voices in, a server that answers until it is told to end out.
//!
//! The caller owns the listener and the signals. Never loses an accepted request before the drain timeout.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};

use crate::cli::Serve;
use crate::error::{Error, Result};
use crate::repertoire::{Repertoire, VoiceOptions, VoiceSource};
use crate::runtime::{Runtime, library};
use crate::signals;
use crate::telemetry::{Metrics, serve_metrics};
use crate::transport::feed::FeedLimits;
use crate::transport::grpc::SpeechService;
use crate::transport::pb;

/// The name that health checks know the service by.
pub const SERVICE: &str = "mezzavoce.v1.Speech";
/// How long connections may take to close once every response has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a client may send ahead on one stream, HTTP/2's own default: 8192 messages of a byte each, which are 8 bytes.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// What it may send ahead in all. The HTTP/2 library closes a connection once the frames that wait lack this much, halved,
/// of 256 bytes each: enough for four streams that send as many small messages as their windows hold.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The first one is the default.
    pub voices: Vec<VoiceSource>,
    pub voice_options: VoiceOptions,
    pub feed: FeedLimits,
    /// How long accepted requests may take to end once the server shuts down.
    pub drain_timeout: Duration,
    /// Clients may load and unload voices, from wherever they are.
    pub allow_admin: bool,
}

/// Serves as `args` say, until the process is told to end.
pub fn serve(args: &Serve) -> Result<()> {
    let options = args.options()?;
    let library = library::locate(&args.runtime.lookup()?)?;
    tracing::info!("ONNX Runtime from {}", library.display());
    let runtime = Arc::new(Runtime::load(&library, args.runtime.device)?);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let tokio = tokio.map_err(|error| Error::Internal(format!("no thread for the network: {error}")))?;
    tokio.block_on(async {
        let metrics = Metrics::new();
        let listener = bind(args.listen).await?;
        let (end_metrics, end) = oneshot::channel::<()>();
        if let Some(address) = args.metrics_addr {
            let (listener, metrics) = (bind(address).await?, metrics.clone());
            if let Ok(address) = listener.local_addr() {
                tracing::info!("metrics on http://{address}/metrics");
            }
            tokio::spawn(serve_metrics(listener, metrics, async {
                let _ = end.await;
            }));
        }
        let (reload, shutdown) = (signals::reload()?, signals::shutdown()?);
        let outcome = run(listener, runtime, options, metrics, reload, shutdown).await;
        let _ = end_metrics.send(());
        outcome
    })
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| Error::io(address.to_string(), error))
}

/// Serves on `listener` until `shutdown`, then lets what was accepted end. Every message of `reload` loads the
/// voices of `options` anew.
///
/// # Errors
/// Those of a voice that cannot be loaded at the start, and [`Error::Internal`] when the server breaks.
pub async fn run(
    listener: TcpListener,
    runtime: Arc<Runtime>,
    options: ServeOptions,
    metrics: Metrics,
    mut reload: mpsc::Receiver<()>,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let fault = |what: &str, error: &dyn std::error::Error| Error::Internal(format!("{what}: {error}"));
    let address = listener.local_addr().map_err(|error| fault("the listener's address", &error))?;
    let onnx_runtime = format!("{}, {}", runtime.version(), runtime.build_info());
    let repertoire = Arc::new(Repertoire::new(runtime, options.voice_options.clone(), metrics));
    let (halt, halted) = watch::channel(false);
    let (in_flight, mut responses) = watch::channel(0);
    let service = SpeechService {
        repertoire: Arc::clone(&repertoire),
        feed: options.feed,
        admin: options.allow_admin || address.ip().is_loopback(),
        onnx_runtime,
        halted,
        in_flight: Arc::new(in_flight),
    };
    let (mut health, health_service) = health_reporter();
    tell(&health, ServingStatus::NotServing).await;
    let describe = || {
        let descriptors = tonic_reflection::server::Builder::configure();
        descriptors
            .register_encoded_file_descriptor_set(pb::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let reflection = describe().build_v1().map_err(|error| fault("reflection", &error))?;
    let old_reflection = describe().build_v1alpha().map_err(|error| fault("reflection", &error))?;
    let (close, closed) = oneshot::channel::<()>();
    let router = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .add_service(health_service)
        .add_service(reflection)
        .add_service(old_reflection)
        .add_service(service.into_server());
    // Without, a small chunk waits for the client's delayed acknowledgement: 30 ms of first audio.
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let serving = router.serve_with_incoming_shutdown(incoming, async {
        let _ = closed.await;
    });
    let mut serving = tokio::spawn(serving);
    tracing::info!("listening on {address}");

    let voices = options.voices;
    let load = || {
        let (repertoire, voices) = (Arc::clone(&repertoire), voices.clone());
        tokio::task::spawn_blocking(move || repertoire.load(&voices))
    };
    let died = |error: JoinError| Err(Error::Internal(error.to_string()));
    let mut shutdown = std::pin::pin!(shutdown);
    let mut loading = load();
    let loaded = tokio::select! {
        loaded = &mut loading => Some(loaded.unwrap_or_else(died)),
        () = &mut shutdown => None,
    };
    if let Some(Err(error)) = loaded {
        serving.abort();
        return Err(error);
    }
    let telling = tokio::spawn(tell_of_voices(health.clone(), repertoire.count()));
    if loaded.is_some() {
        tracing::info!("serving");
        let mut reloading = None;
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                ended = &mut serving => return server_ended(ended),
                Some(()) = reload.recv(), if reloading.is_none() => reloading = Some(load()),
                reloaded = join(&mut reloading) => {
                    reloading = None;
                    match reloaded.unwrap_or_else(died) {
                        Ok(()) => tracing::info!("voices reloaded"),
                        Err(error) => tracing::error!("voices not reloaded, the old ones stay: {error}"),
                    }
                }
            }
        }
    }
    telling.abort();
    let _ = telling.await;

    tracing::info!("draining");
    tell(&health, ServingStatus::NotServing).await;
    repertoire.drain();
    if tokio::time::timeout(options.drain_timeout, responses.wait_for(|count| *count == 0)).await.is_err() {
        let reason = format!("the server has shut down after {:?}", options.drain_timeout);
        tracing::warn!("requests are still in work: {reason}");
        repertoire.voices().iter().for_each(|voice| voice.synthesizer.engine().cancel_all(&reason));
        if tokio::time::timeout(FAREWELL, responses.wait_for(|count| *count == 0)).await.is_err() {
            let _ = halt.send(true);
        }
    }
    let _ = close.send(());
    for service in ["", SERVICE] {
        // Ends the streams of those that watch.
        health.clear_service_status(service).await;
    }
    match tokio::time::timeout(FAREWELL, &mut serving).await {
        Ok(ended) => server_ended(ended),
        // Connections that their clients keep open go with the runtime.
        Err(_) => {
            serving.abort();
            Ok(())
        }
    }
}

/// Tells that requests can be served while there are voices.
async fn tell_of_voices(health: HealthReporter, mut count: watch::Receiver<usize>) {
    loop {
        let none = *count.borrow_and_update() == 0;
        tell(&health, if none { ServingStatus::NotServing } else { ServingStatus::Serving }).await;
        if count.changed().await.is_err() {
            return;
        }
    }
}

/// The end of `task`; never, where there is none.
async fn join<T>(task: &mut Option<JoinHandle<T>>) -> Result<T, JoinError> {
    match task {
        Some(task) => task.await,
        None => std::future::pending().await,
    }
}

async fn tell(health: &HealthReporter, status: ServingStatus) {
    for service in ["", SERVICE] {
        health.set_service_status(service, status).await;
    }
}

fn server_ended(ended: Result<Result<(), tonic::transport::Error>, JoinError>) -> Result<()> {
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::Internal(format!("the server broke: {error}"))),
        Err(error) => Err(Error::Internal(format!("the server died: {error}"))),
    }
}
