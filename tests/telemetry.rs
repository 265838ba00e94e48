//! What is counted against what a scrape reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mezzavoce::engine::Stats;
use mezzavoce::telemetry::{LogFormat, Metrics, serve_metrics, start_log};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The samples of a text in Prometheus' format 0.0.4, by series; panics where the text breaks the format.
fn parse(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with('\n'), "the last line is open");
    let (mut types, mut helped, mut samples) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, _) = help.split_once(' ').expect(line);
            assert!(helped.insert(name.to_owned()), "{name} is explained twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect(line);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} has two types");
        } else {
            assert!(!line.starts_with('#'), "{line}");
            let (series, value) = line.rsplit_once(' ').expect(line);
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            let name = series.split('{').next().unwrap();
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            assert!(name.starts_with("mezzavoce_") && name.chars().all(legal), "{line}");
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let family = family.filter(|family| types.contains_key(*family)).unwrap_or(name);
            let kind = types.get(family).unwrap_or_else(|| panic!("{line} has no type"));
            assert!(kind == "histogram" || family == name, "{line}");
            assert!(kind != "counter" || name.ends_with("_total"), "{line}");
            if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                let labels = labels.strip_prefix('{').and_then(|l| l.strip_suffix('}')).expect(line);
                assert!(
                    labels.split(',').all(|label| label.contains("=\"") && label.ends_with('"')),
                    "{line}"
                );
            }
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} appears twice");
        }
    }
    assert_eq!(types.keys().cloned().collect::<BTreeSet<_>>(), helped);
    for (series, count) in samples.iter().filter(|(series, _)| series.contains("_count")) {
        let all = series.replace("_count{", "_bucket{le=\"+Inf\",").replace("_count", "_bucket{le=\"+Inf\"}");
        let all = all.replace("_bucket{le=\"+Inf\"}{", "_bucket{");
        let labels: BTreeSet<&str> = all.split(['{', '}', ',']).collect();
        let same = |other: &str| other.split(['{', '}', ',']).collect::<BTreeSet<_>>() == labels;
        let (_, bucket) = samples.iter().find(|(other, _)| same(other)).unwrap_or_else(|| panic!("no {all}"));
        assert_eq!(bucket, count, "{series}");
    }
    samples
}

#[test]
fn what_is_counted_is_rendered() {
    let metrics = Metrics::new();
    parse(&metrics.render());
    let other_door = metrics.clone();
    metrics.request_admitted();
    other_door.request_admitted();
    metrics.request_refused("overloaded");
    metrics.first_audio(Duration::from_millis(30));
    metrics.request_finished("ok", 4.0, Duration::from_secs(1));
    metrics.request_finished("cancelled", 0.0, Duration::from_secs(1));
    metrics.chunk_late(Duration::from_millis(7));
    let samples = parse(&metrics.render());
    for (series, value) in [
        ("mezzavoce_requests_admitted_total", 2.0),
        ("mezzavoce_requests_in_flight", 0.0),
        ("mezzavoce_requests_refused_total{reason=\"overloaded\"}", 1.0),
        ("mezzavoce_requests_finished_total{outcome=\"ok\"}", 1.0),
        ("mezzavoce_requests_finished_total{outcome=\"cancelled\"}", 1.0),
        ("mezzavoce_time_to_first_audio_seconds_count", 1.0),
        ("mezzavoce_time_to_first_audio_seconds_bucket{le=\"0.02\"}", 0.0),
        ("mezzavoce_time_to_first_audio_seconds_bucket{le=\"0.04\"}", 1.0),
        ("mezzavoce_real_time_factor_sum", 0.25),
        ("mezzavoce_real_time_factor_count", 1.0),
        ("mezzavoce_audio_seconds_total", 4.0),
        ("mezzavoce_chunk_lateness_seconds_count", 1.0),
    ] {
        assert_eq!(samples.get(series), Some(&value), "{series} in\n{}", metrics.render());
    }
}

#[test]
fn an_engine_is_reported_until_it_is_forgotten() {
    let (metrics, stats) = (Metrics::new(), Arc::new(Stats::new(4)));
    metrics.watch_engine("en \"a\"", Arc::clone(&stats), 4, 1 << 20);
    metrics.watch_engine("de", Arc::new(Stats::new(2)), 2, 5);
    stats.stepped(3, Duration::from_millis(3));
    stats.stepped(1, Duration::from_millis(1));
    stats.active.store(3, Ordering::Relaxed);
    stats.queued.store(2, Ordering::Relaxed);
    stats.queue_wait.observe(Duration::from_secs(100));
    let samples = parse(&metrics.render());
    let of = |name: &str| samples.get(&format!("mezzavoce_engine_{name}{{voice=\"en \\\"a\\\"\"}}")).copied();
    for (name, value) in [
        ("steps_total", 2.0),
        ("slots", 4.0),
        ("active_slots", 3.0),
        ("queued", 2.0),
        ("cache_bytes", 1_048_576.0),
        ("cancels_total", 0.0),
        ("step_time_seconds_count", 2.0),
        ("step_time_seconds_sum", 0.004),
        ("queue_wait_seconds_count", 1.0),
        ("queue_wait_seconds_sum", 100.0),
    ] {
        assert_eq!(of(name), Some(value), "{name} in\n{}", metrics.render());
    }
    metrics.forget_engine("en \"a\"");
    assert!(!metrics.render().contains("en \\\"a\\\""));
    assert!(metrics.render().contains("voice=\"de\""));
}

/// The answer to a request for `path`.
async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn metrics_are_served_until_the_shutdown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let metrics = Metrics::new();
    metrics.request_admitted();
    let server = tokio::spawn(serve_metrics(listener, metrics.clone(), async move { _ = stopped.await }));
    let answer = get(address, "/metrics").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert_eq!(parse(body), parse(&metrics.render()));
    assert!(get(address, "/").await.starts_with("HTTP/1.1 404"));
    stop.send(()).unwrap();
    server.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[test]
fn a_log_filter_that_says_nothing_is_refused() {
    for filter in ["loud", "info,quiet", "a=b=c"] {
        assert!(start_log(filter, LogFormat::Json).is_err(), "{filter:?} was accepted");
    }
}
