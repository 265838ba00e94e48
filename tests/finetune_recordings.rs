//! Recordings of every coding, whole and in part, against the sound that was written.
#![cfg(feature = "finetune")]

use std::path::{Path, PathBuf};

use hound::{SampleFormat, WavSpec, WavWriter};
use mezzavoce::error::Error;
use mezzavoce::finetune::dataset::Span;
use mezzavoce::finetune::recording::Recording;
use support::{max_abs_difference, root};
use tempfile::TempDir;

mod support;

const RATE_HZ: u32 = 16_000;
const NO_LIMIT: f64 = 3600.0;

/// The sweep that the files in `tests/data/recordings` hold.
fn sweep() -> Vec<f32> {
    let at = |t: f64| 0.4 * (std::f64::consts::TAU * (200.0 * t + 1000.0 / 3.0 * t * t)).sin();
    (0..24_000).map(|index| at(f64::from(index) / f64::from(RATE_HZ)) as f32).collect()
}

fn fixture(name: &str) -> PathBuf {
    root().join("tests/data/recordings").join(name)
}

fn part(offset_seconds: f64, duration_seconds: f64) -> Option<Span> {
    Some(Span { offset_seconds, duration_seconds: Some(duration_seconds) })
}

/// Writes `frames` with samples of `bits`, integers by rounding.
fn wav(path: &Path, channels: u16, bits: u16, format: SampleFormat, samples: &[f32]) {
    let spec = WavSpec { channels, sample_rate: RATE_HZ, bits_per_sample: bits, sample_format: format };
    let mut writer = WavWriter::create(path, spec).unwrap();
    for &sample in samples {
        match format {
            SampleFormat::Float => writer.write_sample(sample).unwrap(),
            SampleFormat::Int => {
                let full = 2f64.powi(i32::from(bits) - 1);
                let value = (f64::from(sample) * full).round().clamp(-full, full - 1.0);
                writer.write_sample(value as i32).unwrap();
            }
        }
    }
    writer.finalize().unwrap();
}

#[test]
fn wav_of_every_width_is_read_to_its_last_bit() {
    let directory = TempDir::new().unwrap();
    let expected = sweep();
    for (bits, format) in [
        (8, SampleFormat::Int),
        (16, SampleFormat::Int),
        (24, SampleFormat::Int),
        (32, SampleFormat::Int),
        (32, SampleFormat::Float),
    ] {
        let path = directory.path().join(format!("{bits}{format:?}.wav"));
        wav(&path, 1, bits, format, &expected);
        let recording = Recording::load(&path, RATE_HZ, None, NO_LIMIT).unwrap();
        let half_step = if format == SampleFormat::Float { 0.0 } else { 0.5_f32.powi(i32::from(bits)) };
        // An f32 has no more than 24 bits: of 32 the last are rounded away.
        let bound = if bits == 32 { 0.5_f32.powi(24) } else { half_step * 1.001 };
        let difference = max_abs_difference(&recording.samples, &expected);
        assert!(difference <= bound, "{bits} {format:?}: {difference:e} of {bound:e}");
        assert_eq!((recording.sample_rate_hz, recording.channels, recording.clipped), (RATE_HZ, 1, 0));
    }
}

#[test]
fn flac_mp3_and_ogg_are_what_was_written() {
    // Coding with losses: the bounds are what libsndfile's own decoder differs by.
    for (name, bound) in [("sweep.flac", 2e-5), ("sweep.mp3", 0.04), ("sweep.ogg", 0.05)] {
        let recording = Recording::load(&fixture(name), RATE_HZ, None, NO_LIMIT).unwrap();
        let expected = sweep();
        assert_eq!(recording.samples.len(), expected.len(), "{name}");
        let (from, to) = (2000, 22_000);
        let difference = max_abs_difference(&recording.samples[from..to], &expected[from..to]);
        println!("{name}: {difference:.1e}");
        assert!(difference <= bound, "{name}: {difference}");
    }
}

#[test]
fn a_part_is_the_same_as_in_the_whole() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("sweep.wav");
    wav(&path, 1, 16, SampleFormat::Int, &sweep());
    for path in [path, fixture("sweep.flac"), fixture("sweep.mp3"), fixture("sweep.ogg")] {
        let whole = Recording::load(&path, RATE_HZ, None, NO_LIMIT).unwrap().samples;
        for (offset, duration) in [(0.0, 0.25), (0.05, 0.1), (0.7, 0.3), (1.2, 0.3)] {
            let found = Recording::load(&path, RATE_HZ, part(offset, duration), NO_LIMIT).unwrap();
            let first = (offset * 16_000.0_f64).round() as usize;
            let length = (duration * 16_000.0_f64).round() as usize;
            let expected = &whole[first..(first + length).min(whole.len())];
            let difference = max_abs_difference(&found.samples, expected);
            assert!(difference < 1e-6, "{} from {offset}: {difference}", path.display());
        }
        let rest = Span { offset_seconds: 1.0, duration_seconds: None };
        let found = Recording::load(&path, RATE_HZ, Some(rest), NO_LIMIT).unwrap();
        assert!(max_abs_difference(&found.samples, &whole[16_000..]) < 1e-6, "{}", path.display());
    }
}

#[test]
fn a_recording_is_read_no_further_than_the_limit() {
    let recording = Recording::load(&fixture("sweep.flac"), RATE_HZ, None, 0.5).unwrap();
    assert_eq!((recording.samples.len(), recording.goes_on), (8000, true));
    let recording = Recording::load(&fixture("sweep.flac"), RATE_HZ, None, 1.5).unwrap();
    assert_eq!((recording.samples.len(), recording.goes_on), (24_000, false));
}

#[test]
fn channels_are_averaged_and_flat_tops_counted() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("two.wav");
    // The left channel stays at full scale for 5 samples, then touches it for 2; the right one is quiet.
    let left =
        |frame: usize| if (100..105).contains(&frame) || (300..302).contains(&frame) { 1.0 } else { 0.2 };
    let frames: Vec<f32> = (0..800).flat_map(|frame| [left(frame), -0.2]).collect();
    for bits in [8, 16, 24] {
        wav(&path, 2, bits, SampleFormat::Int, &frames);
        let recording = Recording::load(&path, RATE_HZ, None, NO_LIMIT).unwrap();
        assert_eq!((recording.channels, recording.clipped), (2, 5), "{bits} bits");
        assert!((recording.samples[0]).abs() < 0.01 && (recording.samples[102] - 0.4).abs() < 0.01);
    }
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let flac = std::fs::read(fixture("sweep.flac")).unwrap();
    let whole = directory.path().join("whole.wav");
    wav(&whole, 1, 16, SampleFormat::Int, &sweep());
    let bytes = std::fs::read(&whole).unwrap();
    let silent = directory.path().join("empty.wav");
    wav(&silent, 1, 16, SampleFormat::Int, &[]);
    let not_finite = directory.path().join("nan.wav");
    wav(&not_finite, 1, 32, SampleFormat::Float, &[0.0, f32::NAN, 0.0]);
    for (path, span, said) in [
        (directory.path().join("absent.wav"), None, "there is no such file"),
        (file("text.wav", b"not a sound"), None, "not WAV"),
        (file("nothing.wav", b""), None, "not WAV"),
        (file("half.wav", &bytes[..bytes.len() / 2]), None, "damaged: unexpected end"),
        (file("half.flac", &flac[..flac.len() / 2]), None, "damaged: unexpected end"),
        (silent, None, "no sample"),
        (not_finite, None, "sample 1 is NaN"),
        (whole.clone(), part(2.0, 0.5), "ends before 2 s"),
        (whole.clone(), part(1.0, 1.0), "0.50 s before the part does"),
    ] {
        match Recording::load(&path, RATE_HZ, span, NO_LIMIT) {
            Err(Error::InvalidRequest(reason)) => assert!(reason.contains(said), "{reason}"),
            other => panic!("{}: {other:?}", path.display()),
        }
    }
    let rounded = Recording::load(&whole, RATE_HZ, part(0.5, 1.05), NO_LIMIT).unwrap();
    assert_eq!(rounded.samples.len(), 16_000);
}
