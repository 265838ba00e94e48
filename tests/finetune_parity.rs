//! The training network against a teacher-forced batch of `transformers` (`data/speecht5_tiny/train.safetensors`, the
//! `train.` tensors of the reference), every dropout off.
#![cfg(feature = "finetune")]

use std::collections::BTreeMap;

use burn::tensor::Device;
use mezzavoce::finetune::loss::Loss;
use mezzavoce::finetune::network::{Arithmetic, Batch, Dropout, Network, Parameters, Speaker};
use mezzavoce::precision::{Dtype, Precision};
use mezzavoce::voice::Voice;
use support::{Reference, max_abs_difference, root};

mod support;

fn reference() -> Reference {
    Reference::open(&root().join("tests/data/speecht5_tiny/train.safetensors")).unwrap()
}

fn batch(reference: &Reference) -> Batch {
    let ids = reference.i64("train.input_ids");
    let attended = reference.i64("train.attention_mask");
    let rows = 2;
    let tokens = ids.len() / rows;
    let ids = ids.chunks(tokens).zip(attended.chunks(tokens));
    let labels = reference.f32("train.labels");
    let padded = |row: &[f32]| row.iter().copied().take_while(|value| *value != -100.0).collect::<Vec<_>>();
    Batch {
        ids: ids.map(|(ids, mask)| ids[..mask.iter().sum::<i64>() as usize].to_vec()).collect(),
        mels: labels.chunks(labels.len() / rows).map(padded).collect(),
        speakers: reference
            .f32("train.speaker_embedding")
            .chunks(16)
            .map(|row| Speaker::Given(row.to_vec()))
            .collect(),
    }
}

struct Found {
    loss: f32,
    after_postnet: Vec<f32>,
    gradients: BTreeMap<String, Vec<f32>>,
}

fn found(precision: Precision) -> Found {
    let voice = Voice::load(&root().join("tests/data/speecht5_tiny"), None).unwrap();
    let reference = reference();
    let batch = batch(&reference);
    let device = Device::flex().autodiff();
    let weights = if precision.narrows_weights() { precision.half().unwrap() } else { Dtype::F32 };
    let parameters = Parameters::of_voice(&voice, weights, |_| true, &device).unwrap();
    let network =
        Network { config: &voice.config, arithmetic: Arithmetic::new(precision), device: device.clone() };
    let outputs = network.forward(&parameters, &batch, &mut Dropout::none());
    let after_postnet = outputs.after_postnet.clone().into_data_as::<f32>().try_into_vec().unwrap();
    let loss = Loss::new(outputs, &batch, &voice.config, &device).total();
    let mut gradients = loss.backward();
    let take = |name: String| {
        let gradient = parameters.take_gradient(&name, &mut gradients).unwrap();
        gradient.map(|gradient| (name, gradient.to_f32()))
    };
    let gradients = parameters.trained().into_iter().filter_map(take).collect();
    Found { loss: loss.into_scalar(), after_postnet, gradients }
}

/// Differences relative to the largest value of each tensor: of the loss, and the largest of all gradients.
fn check(precision: Precision, loss_bound: f32, gradient_bound: f32) {
    let (reference, found) = (reference(), found(precision));
    let expected = reference.f32("train.loss")[0];
    let loss = (found.loss - expected).abs() / expected;
    let mel = max_abs_difference(&found.after_postnet, &reference.f32("train.spectrogram_after_postnet"));
    let mut worst = (0.0_f32, String::new());
    let mut compared = 0;
    for (name, gradient) in &found.gradients {
        let expected = reference.f32(&format!("train.grad.{name}"));
        // The bias of a key is zero but for rounding and has no scale of its own: it is measured by the query's.
        let scale = reference.f32(&format!("train.grad.{}", name.replace("k_proj.bias", "q_proj.bias")));
        let largest = scale.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
        let difference = max_abs_difference(gradient, &expected) / largest;
        compared += 1;
        if difference > worst.0 {
            worst = (difference, name.clone());
        }
    }
    println!(
        "{precision}: loss {loss:.1e}, mel {mel:.1e}, {compared} gradients, worst {:.1e} of {}",
        worst.0, worst.1
    );
    assert_eq!(compared, 111, "every gradient of the reference is compared");
    assert!(loss <= loss_bound, "{precision}: loss {} against {expected}", found.loss);
    assert!(worst.0 <= gradient_bound, "{precision}: {} differs by {}", worst.1, worst.0);
}

#[test]
fn loss_and_gradients_are_those_of_the_reference() {
    check(Precision::F32, 1e-5, 1e-4);
}
