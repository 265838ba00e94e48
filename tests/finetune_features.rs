//! Mels against those of other people's extractors, and against a slow direct transform.
#![cfg(feature = "finetune")]

use mezzavoce::finetune::features::MelExtractor;
use mezzavoce::voice::manifest::{LogBase, Mel, MelPadding, Window};
use support::{Reference, max_abs_difference, root};

mod support;

fn speecht5() -> Mel {
    Mel {
        sample_rate_hz: 16000,
        n_fft: 1024,
        hop_length: 256,
        win_length: 1024,
        window: Window::Hann,
        fmin_hz: 80.0,
        fmax_hz: 7600.0,
        log: LogBase::Log10,
        floor: 1e-10,
        padding: MelPadding::Center,
        shift: 0.0,
        scale: 1.0,
    }
}

fn hifigan() -> Mel {
    Mel {
        sample_rate_hz: 22050,
        fmin_hz: 0.0,
        fmax_hz: 8000.0,
        log: LogBase::Ln,
        floor: 1e-5,
        padding: MelPadding::Same,
        ..speecht5()
    }
}

/// The largest difference is that of f32 against f64 near the floor of a silent bin.
fn check(mel: &Mel, samples: &str, expected: &str, bound: f32) {
    let Some(reference) = Reference::open(&root().join("tests/data/mel.safetensors")) else { panic!() };
    let found = MelExtractor::new(mel, 80).unwrap().mel(&reference.f32(samples)).unwrap();
    let expected = reference.f32(expected);
    assert_eq!(found.len(), expected.len());
    let difference = max_abs_difference(&found, &expected);
    println!("{samples}: {difference:.1e}");
    assert!(difference <= bound, "{difference} of {bound}");
}

#[test]
fn mels_are_those_of_the_references() {
    check(&speecht5(), "audio_16k", "speecht5_log10_mel", 1e-3);
    check(&hifigan(), "audio_22k", "hifigan_ln_mel", 1e-3);
}

/// One frame by the definition of the transform, in f64.
fn direct(mel: &Mel, samples: &[f32], frame: usize) -> Vec<f64> {
    use std::f64::consts::TAU;
    let n = mel.n_fft;
    let padding = (n - mel.hop_length) / 2;
    let at = |index: usize| {
        let position = (frame * mel.hop_length + index) as i64 - padding as i64;
        let last = samples.len() as i64 - 1;
        let reflected = if position < 0 { -position } else { last - (last - position).abs() };
        f64::from(samples[reflected as usize])
    };
    let windowed: Vec<f64> =
        (0..n).map(|i| at(i) * (0.5 - 0.5 * (TAU * i as f64 / n as f64).cos())).collect();
    let magnitude = |bin: usize| {
        let angle = |i: usize| TAU * (bin * i % n) as f64 / n as f64;
        let re: f64 = windowed.iter().enumerate().map(|(i, v)| v * angle(i).cos()).sum();
        let im: f64 = windowed.iter().enumerate().map(|(i, v)| v * angle(i).sin()).sum();
        (re * re + im * im + 1e-9).sqrt()
    };
    (0..=n / 2).map(magnitude).collect()
}

#[test]
fn a_mel_is_what_the_definition_says() {
    // One filter as wide as the spectrum and one frame: the sum can be written down.
    let mel = Mel { n_fft: 64, hop_length: 16, win_length: 64, fmax_hz: 11025.0, ..hifigan() };
    let samples: Vec<f32> =
        (0..400).map(|i| (i as f32 * 0.31).sin() * 0.3 + (i as f32 * 1.7).cos() * 0.1).collect();
    let found = MelExtractor::new(&mel, 1).unwrap().mel(&samples).unwrap();
    let to_mel =
        |hz: f64| if hz < 1000.0 { hz * 3.0 / 200.0 } else { 15.0 + (hz / 1000.0).ln() * 27.0 / 6.4f64.ln() };
    let peak_mel = to_mel(11025.0) / 2.0;
    let peak = 1000.0 * ((peak_mel - 15.0) * 6.4f64.ln() / 27.0).exp();
    for frame in [0, 3, found.len() - 1] {
        let energy: f64 = direct(&mel, &samples, frame)
            .iter()
            .enumerate()
            .map(|(bin, magnitude)| {
                let hz = bin as f64 * 22050.0 / 64.0;
                let weight = (hz / peak).min((11025.0 - hz) / (11025.0 - peak)).max(0.0);
                magnitude * weight * 2.0 / 11025.0
            })
            .sum();
        assert!((f64::from(found[frame]) - energy.max(1e-5).ln()).abs() < 1e-4, "frame {frame}");
    }
}

#[test]
fn what_is_no_spectrum_is_refused() {
    for broken in [Mel { hop_length: 0, ..hifigan() }, Mel { win_length: 2048, ..hifigan() }] {
        assert!(MelExtractor::new(&broken, 80).is_err());
    }
    assert!(MelExtractor::new(&hifigan(), 80).unwrap().mel(&[0.0; 384]).unwrap().is_empty());
    assert_eq!(MelExtractor::new(&hifigan(), 80).unwrap().mel(&[0.0; 1024]).unwrap().len(), 4 * 80);
}
