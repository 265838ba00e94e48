//! Every stage against tensors that another implementation computed from the same checkpoints.

mod support;

use std::path::PathBuf;

use mezzavoce::decoder::Decoder;
use mezzavoce::encoder::Encoder;
use mezzavoce::postnet::Postnet;
use mezzavoce::precision::{Plan, Precision};
use mezzavoce::vocoder::Vocoder;
use mezzavoce::voice::Voice;
use support::{Reference, max_abs_difference, plan, root, runtime};

/// The largest differences that are allowed, stage by stage.
struct Bounds {
    encoder: f32,
    mel: f32,
    stop: f32,
    waveform: f32,
}

/// Runs every case of `reference` through `voice` and compares each stage's output.
fn check(voice: &Voice, plan: &Plan, reference: &Reference, speaker: Option<&[f32]>, bounds: &Bounds) {
    let mut encoder = Encoder::load(runtime(), voice, plan, 1).unwrap();
    let mut decoder = Decoder::load(runtime(), voice, plan, 1, 1).unwrap();
    let mut postnet = Postnet::load(runtime(), voice, plan, 1).unwrap();
    let mut vocoder = Vocoder::load(runtime(), voice, plan, 1).unwrap();
    let keep = reference.f32("prenet_keep_mask"); // [steps, layers, units]
    let units = voice.config.speech_decoder_prenet_units;
    let layers = voice.config.speech_decoder_prenet_layers;
    let steps = keep.len() / (units * layers);
    for case in (0..).take_while(|case| reference.has(&format!("case{case}.input_ids"))) {
        let expected = |name: &str| reference.f32(&format!("case{case}.{name}"));
        let speaker = speaker.map_or_else(|| expected("speaker_embedding"), <[f32]>::to_vec);
        let encoded = encoder.encode(&reference.i64(&format!("case{case}.input_ids")), &speaker).unwrap();
        let hidden = max_abs_difference(encoded.hidden.as_f32().unwrap(), &expected("encoder_hidden"));

        decoder.join(encoded).unwrap();
        let (mut raw, mut stop) = (Vec::new(), Vec::new());
        for _ in 0..steps {
            decoder
                .step(1, |_, step, layer, mask| {
                    let from = (step * layers + layer) * units;
                    mask.iter_mut().zip(&keep[from..]).for_each(|(unit, keep)| *unit = 2.0 * keep);
                })
                .unwrap();
            let made = decoder.output(0).unwrap();
            raw.extend_from_slice(made.frames);
            stop.extend(made.stop_logits.iter().map(|logit| 1.0 / (1.0 + (-logit).exp())));
        }
        decoder.leave_last();
        let raw_mel = max_abs_difference(&raw, &expected("mel_before_postnet"));
        let stop = max_abs_difference(&stop, &expected("stop_prob"));

        let mut window = postnet.begin();
        window.push(&raw);
        let mel = postnet.refine(&mut window, true, usize::MAX).unwrap();
        let refined = max_abs_difference(&mel, &expected("mel_after_postnet"));
        let samples = vocoder.push(&mut vocoder.begin(), &mel, true).unwrap();
        let waveform = max_abs_difference(&samples, &expected("waveform"));
        println!(
            "{} {} case {case}: hidden {hidden:.1e} raw mel {raw_mel:.1e} mel {refined:.1e} stop {stop:.1e} waveform {waveform:.1e}",
            voice.name, plan.precision
        );
        assert!(hidden <= bounds.encoder, "encoder hidden states are off by {hidden}");
        assert!(raw_mel <= bounds.mel, "the mel before the postnet is off by {raw_mel}");
        assert!(refined <= bounds.mel, "the mel after the postnet is off by {refined}");
        assert!(stop <= bounds.stop, "stop probabilities are off by {stop}");
        assert!(waveform <= bounds.waveform, "the waveform is off by {waveform}");
    }
}

const F32: Bounds = Bounds { encoder: 1e-4, mel: 1e-3, stop: 1e-4, waveform: 1e-3 };

/// f16 keeps 11 significant bits. Measured over both voices and all f16 modes, weights or activations or both:
/// hidden 2.6e-3, mel 1.0e-2 after the recursion of 24 and 60 steps, stop 8e-4. The bounds are twice that. The
/// vocoder is f32 and follows the mel, but Vocos predicts unwrapped phases, and in near-silent bins a mel step
/// of 1e-2 turns them: single samples moved by 0.11.
const F16: Bounds = Bounds { encoder: 6e-3, mel: 2e-2, stop: 2e-3, waveform: 0.25 };

/// bf16 keeps 8 significant bits, so everything may be eight times as far off as in f16. Measured: hidden
/// 2.6e-2, mel 9.2e-2, stop 1.1e-2, samples 0.16.
const BF16: Bounds = Bounds { encoder: 5e-2, mel: 0.16, stop: 2e-2, waveform: 0.3 };

fn bounds(precision: Precision) -> &'static Bounds {
    match precision {
        Precision::F32 => &F32,
        Precision::F16Mixed | Precision::F16True | Precision::F16Flash => &F16,
        Precision::BF16Mixed | Precision::BF16True | Precision::BF16Flash => &BF16,
    }
}

/// The randomly initialised SpeechT5 of the reference, and its expected tensors.
fn tiny() -> (PathBuf, Reference) {
    let dir = root().join("tests/data/speecht5_tiny");
    let reference = Reference::open(&dir.join("expected.safetensors")).unwrap();
    (dir, reference)
}

#[test]
fn the_tiny_speecht5_agrees_in_every_precision() {
    let (dir, reference) = tiny();
    let voice = Voice::load(&dir, None).unwrap();
    for precision in Precision::ALL {
        check(&voice, &plan(&voice, precision), &reference, None, bounds(precision));
    }
}

#[test]
fn the_tiny_speecht5_agrees_from_a_torch_checkpoint() {
    let (dir, reference) = tiny();
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("vocoder")).unwrap();
    for file in ["config.json", "spm_char.model", "vocoder/config.json", "vocoder/model.safetensors"] {
        std::fs::copy(dir.join(file), copy.path().join(file)).unwrap();
    }
    let weights = root().join("tests/data/speecht5_tiny_bin/pytorch_model.bin");
    std::fs::copy(weights, copy.path().join("pytorch_model.bin")).unwrap();
    let voice = Voice::load(copy.path(), None).unwrap();
    check(&voice, &plan(&voice, Precision::F32), &reference, None, &F32);
}

#[test]
fn the_default_voice_agrees_with_its_f32_original() {
    let reference = root().join("tests/data/default_voice/expected.safetensors");
    let reference = Reference::open(&reference).unwrap();
    let voice = Voice::embedded().unwrap();
    for precision in Precision::ALL {
        // The embedded weights are f16 already.
        let bounds = if precision == Precision::F32 { &F16 } else { bounds(precision) };
        check(&voice, &plan(&voice, precision), &reference, Some(&[1.0; 32]), bounds);
    }
}

#[test]
fn the_default_voice_agrees_in_f32_from_f32_weights() {
    let dir = root().join("../shared/voice");
    let Some(reference) = Reference::open(&dir.join("expected.safetensors")) else { return };
    let voice = Voice::load(&dir, None).unwrap();
    check(&voice, &plan(&voice, Precision::F32), &reference, Some(&[1.0; 32]), &F32);
}

/// What a GPU would be given: half-precision products with casts around the sensitive operations. ONNX Runtime
/// runs such a graph on the CPU too, by widening each operand.
#[test]
fn graphs_with_f16_products_agree() {
    let (dir, reference) = tiny();
    let voice = Voice::load(&dir, None).unwrap();
    let mut plan = plan(&voice, Precision::F16True);
    for stage in [&mut plan.encoder, &mut plan.decoder] {
        stage.executed = stage.requested;
    }
    check(&voice, &plan, &reference, None, &F16);
}
