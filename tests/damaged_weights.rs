//! Weights that are finite and too large: whatever stage they break, the voice is to blame.

mod support;

use std::path::Path;

use mezzavoce::engine::{EngineOptions, StreamRequest};
use mezzavoce::error::Error;
use mezzavoce::precision::Precision;
use mezzavoce::synthesizer::{Script, Synthesizer};
use mezzavoce::text::Reading;
use mezzavoce::voice::Voice;
use safetensors::SafeTensors;
use support::{plan, root, runtime};

/// `models/tiny` with every value of `tensor`, in `file`, set to `value`.
fn damaged(file: &str, tensor: &str, value: f32) -> Voice {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("vocoder")).unwrap();
    for name in [
        "config.json",
        "symbols.json",
        "voice.toml",
        "model.safetensors",
        "vocoder/config.json",
        "vocoder/model.safetensors",
    ] {
        std::fs::copy(root().join("models/tiny").join(name), dir.path().join(name)).unwrap();
    }
    let path = dir.path().join(file);
    let mut bytes = std::fs::read(&path).unwrap();
    let place = {
        let data = SafeTensors::deserialize(&bytes).unwrap().tensor(tensor).unwrap().data().as_ptr_range();
        let start = data.start as usize - bytes.as_ptr() as usize;
        start..start + (data.end as usize - data.start as usize)
    };
    bytes[place].chunks_exact_mut(4).for_each(|bytes| bytes.copy_from_slice(&value.to_le_bytes()));
    std::fs::write(&path, bytes).unwrap();
    Voice::load(dir.path(), None).unwrap()
}

/// Speaking ends with the error that blames the voice and says `output`.
fn check(file: &str, tensor: &str, output: &str) {
    let voice = damaged(file, tensor, 3e38);
    let plan = plan(&voice, Precision::F32);
    let synthesizer = Synthesizer::load(runtime(), &voice, &plan, &EngineOptions::solo(1)).unwrap();
    let segments =
        synthesizer.passage(&Script::Text("A word.".to_owned()), &Reading::default()).unwrap().segments;
    let request = StreamRequest::new(voice.speakers.named(None).unwrap());
    match synthesizer.speak(segments, request).unwrap().find_map(Result::err) {
        Some(Error::InvalidVoice { path, reason }) => {
            assert_eq!(path, Path::new("tiny"), "{reason}");
            for fragment in [output, "not finite", "weights are damaged", "overflow in precision 32"] {
                assert!(reason.contains(fragment), "{tensor}: {reason:?} does not say {fragment:?}");
            }
        }
        other => panic!("{tensor}: {other:?} instead of a complaint about {output}"),
    }
}

#[test]
fn an_encoder_that_overflows_is_the_voices_fault() {
    let file = "model.safetensors";
    check(file, "speecht5.encoder.wrapped_encoder.layer_norm.weight", "the encoder's hidden states");
    check(file, "speecht5.decoder.prenet.speaker_embeds_layer.weight", "the speaker's part");
}

#[test]
fn a_decoder_that_overflows_is_the_voices_fault() {
    let file = "model.safetensors";
    check(file, "speech_decoder_postnet.feat_out.weight", "the decoder's mel frames");
    check(file, "speech_decoder_postnet.prob_out.weight", "the decoder's stop logits");
}

#[test]
fn a_postnet_that_overflows_is_the_voices_fault() {
    check("model.safetensors", "speech_decoder_postnet.layers.1.conv.weight", "the postnet's mel frames");
}

#[test]
fn a_vocoder_that_overflows_is_not_silence() {
    check("vocoder/model.safetensors", "backbone.norm.weight", "the vocoder's samples");
    check("vocoder/model.safetensors", "head.out.weight", "the vocoder's samples");
}
