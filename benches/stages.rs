//! Each stage by itself: encoder, decoder step at growing cache lengths, vocoder per second of audio.
//!
//! Measured are the default voice and a random voice of the stock SpeechT5's size. A decoder step after 2,048
//! others needs a longer position table than either has, so the voices that step are random ones of those
//! sizes with 2,176 positions; time does not depend on the values of weights.

mod support;

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode};
use mezzavoce::decoder::{Decoder, PrenetDropout};
use mezzavoce::encoder::Encoder;
use mezzavoce::engine::ChunkSizes;
use mezzavoce::vocoder::Vocoder;
use mezzavoce::voice::Voice;
use support::{
    PRECISION, THREADS, default_sized_voice, endless_stock_voice, plan, runtime, sentence_ids, speaker,
};

const CACHE_LENGTHS: [usize; 3] = [64, 512, 2048];
/// Steps that are measured before the walk to a cache length begins anew.
const STEPS_AROUND: usize = 128;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(10))
        .measurement_time(Duration::from_millis(100))
        .configure_from_args();
    let positions = CACHE_LENGTHS[CACHE_LENGTHS.len() - 1] + STEPS_AROUND;
    let default = Voice::embedded().unwrap();
    encoder(&mut criterion, "default", &default);
    decoder_step(&mut criterion, "default", &default_sized_voice(positions));
    vocoder(&mut criterion, "default", &default, 4);
    let stock = endless_stock_voice(positions);
    encoder(&mut criterion, "stock", &stock);
    decoder_step(&mut criterion, "stock", &stock);
    vocoder(&mut criterion, "stock", &stock, 2);
    criterion.final_summary();
}

/// One sentence of 12 words, with the threads that a synthesizer of [`THREADS`] gives it.
fn encoder(criterion: &mut Criterion, name: &str, voice: &Voice) {
    let mut encoder = Encoder::load(runtime(), voice, &plan(voice, PRECISION), THREADS).unwrap();
    let (ids, speaker) = (sentence_ids(voice), speaker(voice));
    let mut group = criterion.benchmark_group("encoder");
    group.sampling_mode(SamplingMode::Flat);
    group.bench_function(BenchmarkId::new(name, format!("{}_symbols", ids.len())), |bencher| {
        bencher.iter(|| encoder.encode(&ids, &speaker).unwrap());
    });
}

/// A decoder on its way through a sentence without an end.
struct Walk {
    encoder: Encoder,
    decoder: Decoder,
    dropout: PrenetDropout,
    ids: Vec<i64>,
    speaker: Vec<f32>,
    /// Steps made.
    at: usize,
}

impl Walk {
    fn new(voice: &Voice) -> Self {
        let plan = plan(voice, PRECISION);
        let mut walk = Self {
            encoder: Encoder::load(runtime(), voice, &plan, THREADS).unwrap(),
            decoder: Decoder::load(runtime(), voice, &plan, THREADS - 1, 1).unwrap(),
            dropout: PrenetDropout::new(voice.config.speech_decoder_prenet_dropout, 1, 0),
            ids: sentence_ids(voice),
            speaker: speaker(voice),
            at: 0,
        };
        walk.begin();
        walk
    }

    fn begin(&mut self) {
        self.decoder.leave_last();
        self.decoder.join(self.encoder.encode(&self.ids, &self.speaker).unwrap()).unwrap();
        self.at = 0;
    }

    fn step(&mut self) {
        let dropout = self.dropout;
        self.decoder.step(1, |_, step, layer, mask| dropout.fill(step as u64, layer as u64, mask)).unwrap();
        self.at += 1;
    }

    /// The time of `count` steps, each with a cache of `length` to `length + STEPS_AROUND`.
    fn measure(&mut self, length: usize, count: u64) -> Duration {
        let mut time = Duration::ZERO;
        for _ in 0..count {
            if self.at >= length + STEPS_AROUND {
                self.begin();
            }
            while self.at < length {
                self.step();
            }
            let began = Instant::now();
            self.step();
            time += began.elapsed();
        }
        time
    }
}

fn decoder_step(criterion: &mut Criterion, name: &str, voice: &Voice) {
    let mut walk = Walk::new(voice);
    let mut group = criterion.benchmark_group("decoder_step");
    group.sampling_mode(SamplingMode::Flat);
    for length in CACHE_LENGTHS {
        // Outside what criterion sees, which would take the way there for the time of a step.
        walk.measure(length, 1);
        group.bench_function(BenchmarkId::new(name, format!("cache_{length}")), |bencher| {
            bencher.iter_custom(|count| walk.measure(length, count));
        });
    }
}

/// `seconds` of audio, whole and in the chunks of a stream; the time is that of one second of audio.
fn vocoder(criterion: &mut Criterion, name: &str, voice: &Voice, seconds: u32) {
    let mut vocoder = Vocoder::load(runtime(), voice, &plan(voice, PRECISION), THREADS - 1).unwrap();
    let config = &voice.vocoder_config;
    let frames = (config.sample_rate_hz() * seconds) as usize / config.hop_length();
    let n_mels = voice.config.num_mel_bins;
    let mel: Vec<f32> = (0..frames * n_mels).map(|i| (i as f32).sin()).collect();
    let mut group = criterion.benchmark_group("vocoder_per_second_of_audio");
    group.sampling_mode(SamplingMode::Flat);
    for (how, sizes) in [("whole", ChunkSizes::fixed(frames)), ("streamed", ChunkSizes::default())] {
        group.bench_function(BenchmarkId::new(name, how), |bencher| {
            bencher.iter_custom(|count| {
                let began = Instant::now();
                (0..count).for_each(|_| vocode(&mut vocoder, &mel, n_mels, sizes));
                began.elapsed() / seconds
            });
        });
    }
}

/// Feeds the vocoder as the synthesizer's chunks do.
fn vocode(vocoder: &mut Vocoder, mel: &[f32], n_mels: usize, sizes: ChunkSizes) {
    let mut stream = vocoder.begin();
    let (mut rest, mut chunk) = (mel, sizes.first_frames);
    let mut wanted = chunk + vocoder.look_ahead_frames();
    while !rest.is_empty() {
        let (fed, behind) = rest.split_at(rest.len().min(wanted * n_mels));
        vocoder.push(&mut stream, fed, behind.is_empty()).unwrap();
        chunk = (chunk * 2).min(sizes.max_frames);
        (rest, wanted) = (behind, chunk);
    }
}
