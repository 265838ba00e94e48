//! Text to audio through a [`Synthesizer`]: time to first audio, and time per second of audio, which is the
//! real-time factor (35 ms are a factor of 0.035).
//!
//! Measured are the default voice and a random voice of the stock SpeechT5's size, which ends each sentence at
//! the pace of ordinary speech. 60 words of that are a minute of work for no other figure: they are left out.

mod support;

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode};
use mezzavoce::engine::{AudioStream, EngineOptions, StreamRequest};
use mezzavoce::synthesizer::{Script, Synthesizer};
use mezzavoce::text::Reading;
use mezzavoce::voice::Voice;
use support::{PRECISION, TEXTS, THREADS, plan, runtime, speaker, stock_voice};

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(10))
        .measurement_time(Duration::from_millis(500))
        .configure_from_args();
    speech(&mut criterion, "default", &Voice::embedded().unwrap(), 20, &TEXTS);
    speech(&mut criterion, "stock", &stock_voice(1876), 10, &TEXTS[..2]);
    criterion.final_summary();
}

fn speech(criterion: &mut Criterion, name: &str, voice: &Voice, samples: usize, texts: &[(&str, &str)]) {
    let synthesizer =
        Synthesizer::load(runtime(), voice, &plan(voice, PRECISION), &EngineOptions::solo(THREADS)).unwrap();
    let speaker = speaker(voice);
    let speak = |text: &str| {
        let segments =
            synthesizer.passage(&Script::Text(text.to_owned()), &Reading::default()).unwrap().segments;
        synthesizer.speak(segments, StreamRequest::new(speaker.clone())).unwrap()
    };

    let mut group = criterion.benchmark_group("first_audio");
    group.sample_size(samples).sampling_mode(SamplingMode::Flat);
    for (length, text) in texts {
        group.bench_function(BenchmarkId::new(name, length), |bencher| {
            bencher.iter_custom(|count| (0..count).map(|_| first_audio(&synthesizer, &speak, text)).sum());
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("time_per_second_of_audio");
    group.sample_size(samples).sampling_mode(SamplingMode::Flat);
    for (length, text) in texts {
        group.bench_function(BenchmarkId::new(name, length), |bencher| {
            bencher.iter_custom(|count| {
                (0..count).map(|_| time_per_second(&speak, synthesizer.sample_rate_hz(), text)).sum()
            });
        });
    }
}

/// From the call to the first samples. Then the rest is cancelled, and waited for, so that every thread is idle
/// when the next call comes.
fn first_audio(synthesizer: &Synthesizer, speak: &impl Fn(&str) -> AudioStream, text: &str) -> Duration {
    let began = Instant::now();
    let mut stream = speak(text);
    stream.next().unwrap().unwrap();
    let time = began.elapsed();
    drop(stream);
    while synthesizer.engine().in_flight() > 0 {
        std::thread::yield_now();
    }
    time
}

fn time_per_second(speak: &impl Fn(&str) -> AudioStream, sample_rate_hz: u32, text: &str) -> Duration {
    let began = Instant::now();
    let samples: usize = speak(text).map(|chunk| chunk.unwrap().samples.len()).sum();
    began.elapsed().mul_f64(f64::from(sample_rate_hz) / samples as f64)
}
