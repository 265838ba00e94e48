//! A server over loopback, by its clients' clocks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mezzavoce::engine::EngineOptions;
use mezzavoce::repertoire::{VoiceOptions, VoiceSource};
use mezzavoce::runtime::Accelerator;
use mezzavoce::serve::{ServeOptions, run};
use mezzavoce::telemetry::Metrics;
use mezzavoce::transport::feed::FeedLimits;
use mezzavoce::transport::pb::{self, speech_client::SpeechClient};
use pb::synthesize_request::Content;
use pb::synthesize_response::Event;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::Status;
use tonic::transport::Channel;

use super::support::{PRECISION, THREADS, runtime};
use super::{Heard, ROUNDS, quantile, text};

/// One text through the server at `address`, by the client's clock.
async fn hear_over_grpc(mut client: SpeechClient<Channel>, text: String) -> Result<Heard, Status> {
    let config = pb::SynthesisConfig { encoding: pb::AudioEncoding::PcmF32le.into(), ..Default::default() };
    let content = Some(Content::Text(text));
    let began = Instant::now();
    let request = pb::SynthesizeRequest { content, config: Some(config) };
    let mut responses = client.synthesize(request).await?.into_inner();
    let (mut chunks, mut rate) = (Vec::new(), 1.0);
    while let Some(response) = responses.message().await? {
        match response.event {
            Some(Event::Started(started)) => {
                rate = started.format.map_or(rate, |format| f64::from(format.sample_rate_hz));
            }
            Some(Event::Audio(bytes)) if !bytes.is_empty() => {
                chunks.push((began.elapsed(), (bytes.len() / size_of::<f32>()) as f64 / rate));
            }
            _ => {}
        }
    }
    Ok(Heard { chunks, wall: began.elapsed() })
}

/// The default voice behind a server of its own on a free port.
pub fn measure() {
    let engine = EngineOptions {
        threads: THREADS,
        max_streams: 32,
        queue: 0,
        kv_cache_bytes: 4 << 30,
        slow_client_timeout: Duration::from_secs(10),
    };
    let options = ServeOptions {
        voices: vec![VoiceSource { name: None, directory: None }],
        voice_options: VoiceOptions {
            precision: PRECISION,
            accelerator: Accelerator::Cpu,
            engine,
            lexicon: None,
        },
        feed: FeedLimits { max_text_bytes: 1 << 20, text_timeout: Duration::from_secs(10) },
        drain_timeout: Duration::from_secs(10),
        allow_admin: false,
    };
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let measured = async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (_reload, reloads) = mpsc::channel(1);
        let forever = std::future::pending();
        tokio::spawn(run(listener, Arc::clone(runtime()), options, Metrics::new(), reloads, forever));
        let client = SpeechClient::connect(address).await.unwrap();
        while hear_over_grpc(client.clone(), text(0)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!(
            "\nover gRPC, by the clients' clocks: streams, first audio p50 and p99 ms, late %, latest ms"
        );
        for streams in [1, 8, 32] {
            let (mut first, mut late) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let speak = |stream| tokio::spawn(hear_over_grpc(client.clone(), text(stream)));
                let speaking: Vec<_> = (0..streams).map(speak).collect();
                for heard in speaking {
                    let heard = heard.await.unwrap().unwrap();
                    first.push(heard.first().as_secs_f64() * 1e3);
                    late.extend(heard.lateness().into_iter().map(|late| late.as_secs_f64() * 1e3));
                }
            }
            let late_share = late.iter().filter(|&&late| late > 0.0).count() as f64 / late.len() as f64;
            let [p50, p99] = [0.5, 0.99].map(|q| quantile(&first, q));
            let latest = quantile(&late, 1.0);
            println!("{streams:>7}  {p50:>8.1} {p99:>8.1} {:>7.2} {latest:>8.1}", late_share * 100.0);
        }
    };
    tokio.block_on(measured);
    tokio.shutdown_background();
}
