//! A listener and a choice of voices in, a server that answers until it is told to end out.
//!
//! The caller owns the listener and the signals. Never loses an accepted request before the drain timeout.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;
use tonic_health::server::{HealthReporter, health_reporter};

use crate::cli::Serve;
use crate::error::{Error, Result};
use crate::repertoire::{Repertoire, VoiceOptions, VoiceSource};
use crate::runtime::{Runtime, library};
use crate::say::leave_at_once;
use crate::telemetry::{Metrics, serve_metrics};
use crate::transport::grpc::SpeechService;
use crate::transport::pb;

/// The name that health checks know the service by.
pub const SERVICE: &str = "mezzavoce.v1.Speech";
/// How long connections may take to close once every response has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The first one is the default.
    pub voices: Vec<VoiceSource>,
    pub voice_options: VoiceOptions,
    pub max_text_bytes: usize,
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
            tokio::spawn(serve_metrics(listener, metrics, async {
                let _ = end.await;
            }));
        }
        let (reload, shutdown) = (reload_signals()?, shutdown_signal()?);
        let outcome = run(listener, runtime, options, metrics, reload, shutdown).await;
        let _ = end_metrics.send(());
        outcome
    })
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| Error::io(address.to_string(), error))
}

/// Ends at the first SIGTERM or SIGINT; the second ends the process as is usual for an impatient person.
fn shutdown_signal() -> Result<impl Future<Output = ()>> {
    let mut terminate = catch(SignalKind::terminate())?;
    let mut interrupt = catch(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::warn!("told to end twice: not waiting any longer");
            leave_at_once();
        });
    })
}

/// A message for every SIGHUP.
fn reload_signals() -> Result<mpsc::Receiver<()>> {
    let mut hangup = catch(SignalKind::hangup())?;
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            // One reload that waits is as good as many.
            let _ = sender.try_send(());
        }
    });
    Ok(receiver)
}

fn catch(kind: SignalKind) -> Result<Signal> {
    signal(kind).map_err(|error| Error::Internal(format!("a signal cannot be caught: {error}")))
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
    let onnx_runtime = runtime.build_info().to_owned();
    let repertoire = Arc::new(Repertoire::new(runtime, options.voice_options.clone(), metrics));
    let (halt, halted) = watch::channel(false);
    let (in_flight, mut responses) = watch::channel(0);
    let service = SpeechService {
        repertoire: Arc::clone(&repertoire),
        max_text_bytes: options.max_text_bytes,
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
    let died = |error: tokio::task::JoinError| Err(Error::Internal(error.to_string()));
    let mut shutdown = std::pin::pin!(shutdown);
    let mut loading = load();
    let loaded = tokio::select! {
        loaded = &mut loading => Some(loaded.unwrap_or_else(died)),
        () = &mut shutdown => None,
    };
    match loaded {
        Some(Err(error)) => {
            serving.abort();
            return Err(error);
        }
        Some(Ok(())) => {
            tell(&health, ServingStatus::Serving).await;
            tracing::info!("serving");
            loop {
                tokio::select! {
                    () = &mut shutdown => break,
                    ended = &mut serving => return server_ended(ended),
                    Some(()) = reload.recv() => match load().await.unwrap_or_else(died) {
                        Ok(()) => tracing::info!("voices reloaded"),
                        Err(error) => tracing::error!("voices not reloaded, the old ones stay: {error}"),
                    },
                }
            }
        }
        None => {}
    }

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

async fn tell(health: &HealthReporter, status: ServingStatus) {
    for service in ["", SERVICE] {
        health.set_service_status(service, status).await;
    }
}

fn server_ended(ended: Result<Result<(), tonic::transport::Error>, tokio::task::JoinError>) -> Result<()> {
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::Internal(format!("the server broke: {error}"))),
        Err(error) => Err(Error::Internal(format!("the server died: {error}"))),
    }
}
