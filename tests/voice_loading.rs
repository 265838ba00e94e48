//! A voice directory: what loads, and the reason of everything that does not.

use std::collections::BTreeMap;
use std::path::Path;

use mezzavoce::error::Error;
use mezzavoce::precision::Dtype;
use mezzavoce::voice::checkpoint::Checkpoint;
use mezzavoce::voice::config::VocoderConfig;
use mezzavoce::voice::manifest::{LogBase, MelPadding};
use mezzavoce::voice::{MIN_SEGMENT_SYMBOLS, SymbolTable, Voice, names};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype as Stored, TensorView};
use serde_json::{Value, json};

macro_rules! tiny {
    ($file:literal) => {
        ($file, include_bytes!(concat!("data/speecht5_tiny/", $file)).as_slice())
    };
}

const EMBEDDING: &str = "speecht5.encoder.prenet.embed_tokens.weight";
const ALPHA: &str = "speecht5.decoder.prenet.encode_positions.alpha";

/// The files of a voice, to be altered; leaked, as those in a binary live as long as the process.
#[derive(Clone)]
struct Files(BTreeMap<&'static str, &'static [u8]>);

impl Files {
    fn tiny() -> Self {
        Self(BTreeMap::from([
            tiny!("config.json"),
            tiny!("model.safetensors"),
            tiny!("spm_char.model"),
            tiny!("vocoder/config.json"),
            tiny!("vocoder/model.safetensors"),
        ]))
    }

    fn with(mut self, file: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.insert(file, Vec::leak(bytes.into()));
        self
    }

    fn without(mut self, file: &str) -> Self {
        self.0.remove(file).unwrap();
        self
    }

    fn json(self, file: &'static str, alter: impl FnOnce(&mut serde_json::Map<String, Value>)) -> Self {
        let mut value: Value = serde_json::from_slice(self.0[file]).unwrap();
        alter(value.as_object_mut().unwrap());
        self.with(file, value.to_string())
    }

    fn config(self, field: &str, value: Value) -> Self {
        self.json("config.json", |config| drop(config.insert(field.into(), value)))
    }

    fn vocoder(self, field: &str, value: Value) -> Self {
        self.json("vocoder/config.json", |config| drop(config.insert(field.into(), value)))
    }

    fn tensors(self, file: &'static str, alter: impl FnOnce(&mut Tensors)) -> Self {
        let parsed = SafeTensors::deserialize(self.0[file]).unwrap();
        let tensor = |view: TensorView| (view.dtype(), view.shape().to_vec(), view.data().to_vec());
        let mut tensors = parsed.tensors().into_iter().map(|(name, view)| (name, tensor(view))).collect();
        alter(&mut tensors);
        self.with(file, serialized(&tensors))
    }

    /// An IPA voice with one speaker.
    fn ipa() -> Self {
        Self::tiny()
            .without("spm_char.model")
            .with("symbols.json", r#"{"^": 0, "_": 1, "$": 2, "a": 3, "ː": 4}"#)
            .with(
                "voice.toml",
                "[speaker]\ndefault = \"one\"\n[speakers]\none = [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]\n",
            )
    }

    /// As a directory, which is made.
    fn write(&self, dir: &Path) {
        std::fs::create_dir_all(dir.join("vocoder")).unwrap();
        for (file, bytes) in &self.0 {
            std::fs::write(dir.join(file), bytes).unwrap();
        }
    }

    fn load(&self) -> Result<Voice, Error> {
        Voice::from_files("tiny", &self.0.iter().map(|(name, bytes)| (*name, *bytes)).collect::<Vec<_>>())
    }

    /// Refused, in `file`, by a reason that has all the fragments.
    fn refused(&self, file: &str, fragments: &[&str]) {
        match self.load() {
            Err(Error::InvalidVoice { path, reason }) => {
                assert_eq!(path, Path::new("tiny").join(file), "{reason}");
                for fragment in fragments {
                    assert!(reason.contains(fragment), "{reason:?} does not say {fragment:?}");
                }
            }
            other => panic!("expected a refusal that says {fragments:?}, got {other:?}"),
        }
    }
}

type Tensors = BTreeMap<String, (Stored, Vec<usize>, Vec<u8>)>;

fn serialized(tensors: &Tensors) -> Vec<u8> {
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, data))| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

fn le_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn invalid_request(result: mezzavoce::error::Result<Vec<f32>>, fragments: &[&str]) {
    match result {
        Err(Error::InvalidRequest(reason)) => {
            for fragment in fragments {
                assert!(reason.contains(fragment), "{reason:?} does not say {fragment:?}");
            }
        }
        other => panic!("expected a refusal that says {fragments:?}, got {other:?}"),
    }
}

#[test]
fn a_stock_directory_loads() {
    let voice = Files::tiny().load().unwrap();
    assert_eq!((voice.name.as_str(), voice.language.as_str()), ("tiny", "en"));
    assert_eq!((voice.config.vocab_size, voice.config.hidden_size), (40, 64));
    assert_eq!((voice.stop_threshold, voice.max_frames_per_symbol, voice.segment_symbols), (0.5, 20.0, 128));
    assert!(matches!(voice.symbols, SymbolTable::Characters(ref bytes) if bytes.len() == 240_491));
    assert!(voice.speakers.default.is_none() && voice.speakers.embeddings.is_empty());
    assert_eq!((voice.vocoder_config.sample_rate_hz(), voice.vocoder_config.hop_length()), (16_000, 256));
    let mel = voice.mel.unwrap();
    assert_eq!(
        (mel.log, mel.padding, mel.fmin_hz, mel.fmax_hz),
        (LogBase::Log10, MelPadding::Center, 80.0, 7600.0)
    );
    assert_eq!(voice.acoustic.stored_dtype(), Dtype::F32);
    assert_eq!(voice.acoustic.tensor(EMBEDDING).unwrap().shape, [40, 64]);
}

#[test]
fn the_feature_extractor_of_a_stock_directory_is_its_mel() {
    let extractor = |json: &str| Files::tiny().with("preprocessor_config.json", json);
    let reference = include_str!("data/speecht5_tiny/preprocessor_config.json");
    assert_eq!(extractor(reference).load().unwrap().mel, Files::tiny().load().unwrap().mel);
    let narrow = extractor(r#"{"win_length": 50, "fmin": 20, "fmax": 8000}"#).load().unwrap().mel.unwrap();
    assert_eq!((narrow.win_length, narrow.n_fft, narrow.fmin_hz, narrow.fmax_hz), (800, 1024, 20.0, 8000.0));
    assert!(extractor(r#"{"hop_length": 10}"#).load().unwrap().mel.is_none());
    for (json, fragment) in [
        (r#"{"win_function": "hamming_window"}"#, "hamming_window"),
        (r#"{"win_length": -1}"#, "-1"),
        ("[", "EOF"),
    ] {
        extractor(json).refused("preprocessor_config.json", &[fragment]);
    }
}

#[test]
fn every_tensor_of_the_reference_but_counters_is_asked_for() {
    let voice = Files::tiny().load().unwrap();
    let mut asked: Vec<String> =
        names::acoustic(&voice.config).into_iter().map(|tensor| tensor.name).collect();
    asked.sort();
    let stored = voice.acoustic.names().filter(|name| !name.ends_with("num_batches_tracked"));
    assert!(stored.eq(asked.iter().map(String::as_str)));
    let mut asked: Vec<String> =
        names::vocoder(&voice.vocoder_config).into_iter().map(|tensor| tensor.name).collect();
    asked.sort();
    assert!(voice.vocoder.names().eq(asked.iter().map(String::as_str)));
}

#[test]
fn an_absent_field_has_the_default_of_transformers() {
    let files = Files::tiny().json("config.json", |config| {
        for field in [
            "layer_norm_eps",
            "num_mel_bins",
            "reduction_factor",
            "speech_decoder_prenet_layers",
            "speech_decoder_prenet_dropout",
            "speech_decoder_postnet_kernel",
            "bos_token_id",
            "pad_token_id",
            "eos_token_id",
            "architectures",
            "hidden_act",
            "scale_embedding",
        ] {
            config.remove(field).unwrap();
        }
    });
    let files = files.json("vocoder/config.json", |config| {
        config.retain(|field, _| {
            ["model_type", "upsample_initial_channel", "resblock_kernel_sizes", "resblock_dilation_sizes"]
                .contains(&field.as_str())
        });
    });
    let (given, absent) = (Files::tiny().load().unwrap(), files.load().unwrap());
    assert_eq!(format!("{:?}", given.config), format!("{:?}", absent.config));
    assert_eq!(format!("{:?}", given.vocoder_config), format!("{:?}", absent.vocoder_config));

    let stock = Files::tiny().with("config.json", r#"{"model_type": "speecht5"}"#);
    stock.refused("model.safetensors", &[EMBEDDING, "[40, 64]", "[81, 768]"]);
}

#[test]
fn another_vocabulary_size_than_the_stock_one_loads() {
    let files = Files::tiny().config("vocab_size", json!(87)).tensors("model.safetensors", |tensors| {
        tensors.insert(EMBEDDING.into(), (Stored::F32, vec![87, 64], le_bytes(&[0.5; 87 * 64])));
    });
    assert_eq!(files.load().unwrap().acoustic.tensor(EMBEDDING).unwrap().shape, [87, 64]);
}

#[test]
fn a_torch_checkpoint_loads_in_place_of_safetensors() {
    let bytes = include_bytes!("data/speecht5_tiny_bin/pytorch_model.bin");
    let files = Files::tiny().without("model.safetensors").with("pytorch_model.bin", *bytes);
    let voice = files.load().unwrap();
    assert_eq!(voice.acoustic.tensor(EMBEDDING).unwrap().shape, [40, 64]);
}

#[test]
fn a_foreign_model_is_refused() {
    let tiny = Files::tiny;
    tiny().config("model_type", json!("bert")).refused("config.json", &["`bert`", "speecht5"]);
    tiny()
        .json("config.json", |config| drop(config.remove("model_type")))
        .refused("config.json", &["model_type"]);
    tiny()
        .config("architectures", json!(["SpeechT5ForSpeechToText"]))
        .refused("config.json", &["SpeechT5ForSpeechToText", "SpeechT5ForTextToSpeech"]);
    tiny().vocoder("model_type", json!("bigvgan")).refused("vocoder/config.json", &["bigvgan"]);
    tiny().with("config.json", "5").refused("config.json", &["invalid type"]);
    tiny().with("config.json", "{").refused("config.json", &["EOF"]);
    tiny().with("config.json", b"\xff").refused("config.json", &["line 1"]);
}

#[test]
fn sizes_that_no_model_has_are_refused() {
    let cases = [
        ("vocab_size", json!(0)),
        ("vocab_size", json!(1_u64 << 40)),
        ("hidden_size", json!(0)),
        ("hidden_size", json!(u64::MAX)),
        ("encoder_layers", json!(0)),
        ("decoder_layers", json!(10_000)),
        ("encoder_attention_heads", json!(0)),
        ("encoder_attention_heads", json!(3)),
        ("decoder_attention_heads", json!(128)),
        ("encoder_ffn_dim", json!(0)),
        ("num_mel_bins", json!(0)),
        ("reduction_factor", json!(0)),
        ("speaker_embedding_dim", json!(0)),
        ("speech_decoder_prenet_layers", json!(0)),
        ("speech_decoder_prenet_dropout", json!(1.0)),
        ("speech_decoder_prenet_dropout", json!(-0.1)),
        ("speech_decoder_postnet_kernel", json!(4)),
        ("speech_decoder_postnet_kernel", json!(0)),
        ("max_text_positions", json!(0)),
        ("max_text_positions", json!(1_u64 << 21)),
        ("max_speech_positions", json!(1_u64 << 60)),
        ("encoder_max_relative_position", json!(0)),
        ("layer_norm_eps", json!(0.0)),
        ("eos_token_id", json!(40)),
        ("bos_token_id", json!(-1)),
        ("hidden_act", json!("relu")),
        ("scale_embedding", json!(true)),
    ];
    for (field, value) in cases {
        Files::tiny().config(field, value).refused("config.json", &[field]);
    }
    let odd = Files::tiny().config("hidden_size", json!(65)).config("encoder_attention_heads", json!(5));
    odd.config("decoder_attention_heads", json!(5)).refused("config.json", &["hidden_size 65 is odd"]);
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_its_field_and_place() {
    for (field, value, found) in [
        ("hidden_size", json!(-1), "`-1`"),
        ("hidden_size", json!("64"), "\"64\""),
        ("max_speech_positions", json!(1e30), "floating point `1e+30`"),
        ("layer_norm_eps", json!([]), "sequence"),
        ("model_type", json!(5), "`5`"),
        ("architectures", json!("SpeechT5ForTextToSpeech"), "string"),
    ] {
        let place = format!("{field}: invalid");
        Files::tiny().config(field, value).refused("config.json", &[&place, found, "line 1 column"]);
    }
    for (field, value, found) in [
        ("sampling_rate", json!(-1), "sampling_rate: invalid"),
        ("resblock_dilation_sizes", json!([[1, 3], ["5"]]), "resblock_dilation_sizes[1][0]: invalid"),
        ("model_type", json!(["vocos"]), "model_type: invalid"),
    ] {
        Files::tiny().vocoder(field, value).refused("vocoder/config.json", &[found, "line 1 column"]);
    }
    Files::tiny()
        .json("vocoder/config.json", |config| drop(config.remove("model_type")))
        .refused("vocoder/config.json", &["model_type is missing", "vocos"]);
    vocos()
        .json("vocoder/config.json", |config| drop(config.remove("n_fft")))
        .refused("vocoder/config.json", &["n_fft", "line 1 column"]);
    Files::tiny()
        .with("preprocessor_config.json", r#"{"fmin": "80"}"#)
        .refused("preprocessor_config.json", &["fmin: invalid", "line 1 column 13"]);
    Files::tiny()
        .with("voice.toml", "[voice]\nname = \"x\"\n[decoder]\nstop_threshold = \"high\"\n")
        .refused("voice.toml", &["decoder.stop_threshold: invalid", "\"high\"", "line 4 column 18"]);
    Files::ipa()
        .with("symbols.json", r#"{"^": 0, "$": "2"}"#)
        .refused("symbols.json", &["$: invalid", "line 1 column"]);
}

#[test]
fn a_long_line_is_not_repeated_in_the_reason() {
    let long = "x".repeat(100_000);
    for files in [
        Files::tiny().config("hidden_size", json!(long)),
        Files::tiny().config("model_type", json!(long)),
        Files::tiny().vocoder("model_type", json!(long)),
        Files::tiny().with("voice.toml", format!("[decoder]\nstop_threshold = \"{long}\"")),
        Files::tiny().with("voice.toml", format!("{long} {long}")),
        Files::tiny().with("voice.toml", format!("[voice]\n{long} = 1")),
        Files::ipa().with("symbols.json", format!("{{\"{long}\": 1}}")),
    ] {
        let refused = files.load().unwrap_err().to_string();
        assert!(refused.len() < 450, "{} bytes: {}", refused.len(), &refused[..1000]);
    }
}

#[test]
fn what_a_voice_would_take_is_bounded() {
    let tiny = Files::tiny;
    // hidden 64, 2 decoder layers, 4 heads: 1,048,576 positions are 256 MiB of table and 1 GiB of cache.
    let speech = |positions: usize| tiny().config("max_speech_positions", json!(positions));
    speech(1 << 20).refused("config.json", &["max_speech_positions 1048576", "KV cache", "1073741824"]);
    speech((1 << 20) - 128).load().unwrap();
    let wide = speech(1 << 20).config("hidden_size", json!(128));
    wide.refused("config.json", &["max_speech_positions 1048576", "position table", "268435456"]);

    let text = tiny().config("max_text_positions", json!(20_000));
    text.refused("config.json", &["max_text_positions 20000", "attention", "1073741824", "segment_symbols"]);
    let segments =
        |symbols: usize| text.clone().with("voice.toml", format!("[text]\nsegment_symbols = {symbols}"));
    segments(18_000).refused("voice.toml", &["segment_symbols 18000", "4 encoder_attention_heads"]);
    assert_eq!(segments(4_000).load().unwrap().segment_symbols, 4_000);
    let reach = tiny().config("encoder_max_relative_position", json!(1 << 20));
    reach.refused("config.json", &["encoder_max_relative_position 1048576", "1073741824"]);

    // The sizes of the stock voice, and of a configuration that leaves them out, are only short of weights.
    for positions in ["", r#", "max_speech_positions": 1876, "max_text_positions": 600"#] {
        let stock = tiny().with("config.json", format!(r#"{{"model_type": "speecht5"{positions}}}"#));
        stock.refused("model.safetensors", &["[81, 768]"]);
    }
}

#[test]
fn a_segment_has_room_for_a_character_however_it_is_spelled() {
    let tiny = Files::tiny;
    let least = MIN_SEGMENT_SYMBOLS;
    tiny().config("max_text_positions", json!(least)).load().unwrap();
    let short = tiny().config("max_text_positions", json!(least - 1));
    short.refused("config.json", &["max_text_positions 23", "24..="]);
    let segments = |symbols: usize| tiny().with("voice.toml", format!("[text]\nsegment_symbols = {symbols}"));
    segments(least).load().unwrap();
    segments(least - 1).refused("voice.toml", &["segment_symbols 23", "24..=128"]);
}

#[test]
fn a_configuration_of_megabytes_is_refused_unread() {
    let dir = tempfile::tempdir().unwrap();
    for (file, limit) in [("config.json", 1 << 20), ("voice.toml", 1 << 20), ("spm_char.model", 8 << 20)] {
        let voice = dir.path().join(file);
        Files::tiny().with(file, vec![b' '; limit + 1]).write(&voice);
        let refused = Voice::load(&voice, None).unwrap_err().to_string();
        assert!(refused.contains(&format!("larger than the limit of {limit} bytes")), "{refused}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_not_taken_for_an_absent_file() {
    use std::os::unix::fs::symlink;
    for (link, to) in [
        ("voice.toml", "gone"),
        ("voice.toml", "voice.toml"),
        ("preprocessor_config.json", "gone/preprocessor_config.json"),
        ("model.safetensors", "../../blobs/1234"),
        ("vocoder", "gone"),
        ("vocoder", "vocoder"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        Files::tiny().write(dir.path());
        let link = dir.path().join(link);
        if link.is_dir() {
            std::fs::remove_dir_all(&link).unwrap();
        } else if link.exists() {
            std::fs::remove_file(&link).unwrap();
        }
        symlink(to, &link).unwrap();
        match Voice::load(dir.path(), None) {
            Err(Error::InvalidVoice { path, reason }) => {
                assert_eq!(path, link, "{reason}");
                assert!(reason.contains("a link that leads nowhere"), "{reason}");
            }
            other => panic!("{} -> {to}: {other:?}", link.display()),
        }
    }
    // A link to what is there is what the Hugging Face cache is made of.
    let dir = tempfile::tempdir().unwrap();
    Files::tiny().write(dir.path());
    std::fs::rename(dir.path().join("config.json"), dir.path().join("blob")).unwrap();
    symlink("blob", dir.path().join("config.json")).unwrap();
    Voice::load(dir.path(), None).unwrap();
}

#[test]
fn the_scale_of_a_speaker_does_not_matter() {
    let direction: Vec<f64> = (1..=16).map(|value| f64::from(value) - 8.25).collect();
    let norm = direction.iter().map(|value| value * value).sum::<f64>().sqrt();
    let voice = Files::tiny().load().unwrap();
    let check = |found: Vec<f32>, how: &str| {
        for (found, value) in found.iter().zip(&direction) {
            // Values of 1e-38 / 8 are subnormal in f32 and keep 20 bits.
            assert!((f64::from(*found) - value / norm).abs() < 1e-6, "{how}: {found} for {}", value / norm);
        }
    };
    for scale in [1e20, 1e37, 1.0, 1e-20, 1e-38] {
        let values = direction.iter().map(|value| (value * scale).to_string().parse().unwrap()).collect();
        check(voice.speakers.values(values).unwrap(), &format!("values times {scale}"));
    }
    let dir = tempfile::tempdir().unwrap();
    for scale in [1e300, 1e20, 1.0, 1e-38, 1e-300] {
        let values: Vec<f64> = direction.iter().map(|value| value * scale).collect();
        let how = format!("times {scale}");
        let (toml, doubles) = (format!("[speakers]\na = {values:?}"), Stored::F64);
        let named = Files::tiny().with("voice.toml", toml).load().unwrap();
        check(named.speakers.named(Some("a")).unwrap(), &how);

        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (16,), }\n";
        let tensors = Tensors::from([("x".into(), (doubles, vec![16], bytes.clone()))]);
        for (file, bytes) in [
            ("a.json", format!("{values:?}").into_bytes()),
            ("a.npy", npy(1, header, &bytes)),
            ("a.safetensors", serialized(&tensors)),
        ] {
            let path = dir.path().join(file);
            std::fs::write(&path, bytes).unwrap();
            check(voice.speaker(path.to_str()).unwrap(), &format!("{file} {how}"));
        }
    }
}

#[test]
fn vocoder_sizes_that_cannot_work_are_refused() {
    let cases = [
        ("model_in_dim", json!(79), "num_mel_bins 80"),
        ("sampling_rate", json!(0), "sampling_rate 0"),
        ("upsample_initial_channel", json!(24), "halved 4 times"),
        ("upsample_rates", json!([]), "upsample_rates 0"),
        ("upsample_rates", json!([4, 4, 4]), "3 entries"),
        ("upsample_rates", json!([4, 4, 4, 3]), "odd number"),
        ("upsample_rates", json!([4, 4, 4, 0]), "rate 0"),
        ("upsample_kernel_sizes", json!([8, 8, 8, 2]), "kernel size 2"),
        ("upsample_kernel_sizes", json!([8, 8, 8, 7]), "odd number"),
        ("resblock_kernel_sizes", json!([3, 8]), "even"),
        ("resblock_kernel_sizes", json!([3]), "1 entries"),
        ("resblock_dilation_sizes", json!([[1, 3, 5], []]), "dilations"),
        ("resblock_dilation_sizes", json!([[1, 3, 5], [0]]), "dilation 0"),
        ("leaky_relu_slope", json!(-0.1), "leaky_relu_slope"),
    ];
    for (field, value, fragment) in cases {
        Files::tiny().vocoder(field, value).refused("vocoder/config.json", &[fragment]);
    }
    let wide = Files::tiny().vocoder("upsample_rates", json!([512, 512, 512, 512]));
    wide.vocoder("upsample_kernel_sizes", json!([512, 512, 512, 512]))
        .refused("vocoder/config.json", &["product of upsample_rates"]);
}

#[test]
fn a_tensor_that_does_not_fit_is_refused_by_name() {
    let altered = |alter: fn(&mut Tensors)| Files::tiny().tensors("model.safetensors", alter);
    altered(|tensors| drop(tensors.remove(EMBEDDING)))
        .refused("model.safetensors", &[EMBEDDING, "[40, 64]", "missing"]);
    altered(|tensors| tensors.get_mut(EMBEDDING).unwrap().1 = vec![64, 40])
        .refused("model.safetensors", &[EMBEDDING, "[64, 40]", "[40, 64]"]);
    altered(|tensors| tensors.get_mut(EMBEDDING).unwrap().0 = Stored::I32)
        .refused("model.safetensors", &[EMBEDDING, "I32"]);
    altered(|tensors| tensors.get_mut(EMBEDDING).unwrap().0 = Stored::U32)
        .refused("model.safetensors", &[EMBEDDING, "U32", "unsupported dtype"]);
    altered(|tensors| {
        tensors.get_mut(EMBEDDING).unwrap().2[4 * 7..4 * 8].copy_from_slice(&f32::NAN.to_le_bytes())
    })
    .refused("model.safetensors", &[EMBEDDING, "NaN at index 7"]);
    altered(|tensors| tensors.get_mut(ALPHA).unwrap().2 = f32::NEG_INFINITY.to_le_bytes().to_vec())
        .refused("model.safetensors", &[ALPHA, "-inf at index 0"]);
    let variance = "speech_decoder_postnet.layers.0.batch_norm.running_var";
    altered(|tensors| {
        let variance = "speech_decoder_postnet.layers.0.batch_norm.running_var";
        tensors.get_mut(variance).unwrap().2[4..8].copy_from_slice(&(-0.5_f32).to_le_bytes());
    })
    .refused("model.safetensors", &[variance, "-0.5 at index 1"]);

    let vocoder = |alter: fn(&mut Tensors)| Files::tiny().tensors("vocoder/model.safetensors", alter);
    vocoder(|tensors| drop(tensors.remove("upsampler.3.bias")))
        .refused("vocoder/model.safetensors", &["upsampler.3.bias", "[2]", "missing"]);
    vocoder(|tensors| tensors.get_mut("scale").unwrap().2[8..12].fill(0)).refused("vocoder/", &["index 2"]);
}

#[test]
fn tensors_beyond_those_needed_are_nobodys_concern() {
    let files = Files::tiny().tensors("model.safetensors", |tensors| {
        let name = "speecht5.encoder.prenet.encode_positions.pe";
        tensors.insert(name.into(), (Stored::F32, vec![1, 1, 1], le_bytes(&[f32::NAN])));
    });
    files.load().unwrap();
}

#[test]
fn half_precision_weights_load_as_they_are() {
    let files = Files::tiny().tensors("model.safetensors", |tensors| {
        for (dtype, _, data) in tensors.values_mut().filter(|(dtype, ..)| *dtype == Stored::F32) {
            *dtype = Stored::BF16;
            *data = data.chunks_exact(4).flat_map(|bytes| [bytes[2], bytes[3]]).collect();
        }
    });
    let (halved, whole) = (files.load().unwrap(), Files::tiny().load().unwrap());
    assert_eq!(halved.acoustic.stored_dtype(), Dtype::BF16);
    let cut = whole
        .acoustic
        .f32(EMBEDDING)
        .unwrap()
        .iter()
        .map(|x| f32::from_bits(x.to_bits() & 0xffff_0000))
        .collect::<Vec<_>>();
    assert_eq!(halved.acoustic.f32(EMBEDDING).unwrap(), cut);
}

#[test]
fn weight_norm_pairs_are_folded() {
    let whole = Files::tiny().load().unwrap();
    for (gain, direction) in
        [("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1")]
    {
        let files = Files::tiny().tensors("vocoder/model.safetensors", |tensors| {
            for module in ["conv_pre", "upsampler.1"] {
                let (dtype, shape, data) = tensors.remove(&format!("{module}.weight")).unwrap();
                let values: Vec<f32> =
                    data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
                let norms: Vec<f32> = values
                    .chunks_exact(values.len() / shape[0])
                    .map(|row| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32)
                    .collect();
                let direction_values: Vec<f32> = values.iter().map(|x| x * 5.0).collect();
                tensors.insert(format!("{module}.{gain}"), (dtype, vec![shape[0], 1, 1], le_bytes(&norms)));
                tensors.insert(format!("{module}.{direction}"), (dtype, shape, le_bytes(&direction_values)));
            }
        });
        let folded = files.load().unwrap();
        for name in ["conv_pre.weight", "upsampler.1.weight"] {
            let (one, other) = (folded.vocoder.f32(name).unwrap(), whole.vocoder.f32(name).unwrap());
            assert_eq!(folded.vocoder.tensor(name).unwrap().shape, whole.vocoder.tensor(name).unwrap().shape);
            for (one, other) in one.iter().zip(&other) {
                // A sum of up to 560 f32 squares, a root, a division and a product.
                assert!((one - other).abs() <= 2e-6 * other.abs(), "{name}: {one} for {other}");
            }
        }
        let broken = files.clone().tensors("vocoder/model.safetensors", |tensors| {
            tensors.get_mut(&format!("conv_pre.{direction}")).unwrap().2[..80 * 7 * 4].fill(0);
        });
        broken.refused("vocoder/model.safetensors", &["conv_pre", direction, "zero norm in row 0"]);
        let broken = files.tensors("vocoder/model.safetensors", |tensors| {
            tensors.insert(format!("conv_pre.{gain}"), (Stored::F32, vec![1], le_bytes(&[1.0])));
        });
        broken.refused("vocoder/model.safetensors", &["conv_pre", gain, "does not fit"]);
    }
}

#[test]
fn a_weight_norm_of_any_scale_is_folded() {
    let whole = Files::tiny().load().unwrap();
    // Squares of 1e-30 and of 1e25 do not fit into f32.
    for scale in [1e-30_f32, 1e25] {
        let folded = Files::tiny()
            .tensors("vocoder/model.safetensors", |tensors| {
                let (dtype, shape, data) = tensors.remove("conv_pre.weight").unwrap();
                let values: Vec<f32> =
                    data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
                let norms: Vec<f32> = values
                    .chunks_exact(values.len() / shape[0])
                    .map(|row| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32)
                    .collect();
                let scaled: Vec<f32> = values.iter().map(|x| x * scale).collect();
                tensors.insert("conv_pre.weight_g".into(), (dtype, vec![shape[0], 1, 1], le_bytes(&norms)));
                tensors.insert("conv_pre.weight_v".into(), (dtype, shape, le_bytes(&scaled)));
            })
            .load()
            .unwrap();
        let (one, other) = (folded.vocoder.f32("conv_pre.weight"), whole.vocoder.f32("conv_pre.weight"));
        for (one, other) in one.unwrap().iter().zip(&other.unwrap()) {
            // The scaled value, the gain and the result are each rounded to f32.
            assert!((one - other).abs() <= 4e-7 * other.abs(), "times {scale}: {one} for {other}");
        }
    }
}

/// A Vocos of one block: 80 mel bins, 4 channels, inner 6, n_fft 8.
fn vocos() -> Files {
    let shapes: [(&str, &[usize]); 17] = [
        ("backbone.embed.weight", &[4, 80, 3]),
        ("backbone.embed.bias", &[4]),
        ("backbone.norm.weight", &[4]),
        ("backbone.norm.bias", &[4]),
        ("backbone.convnext.0.dwconv.weight", &[4, 1, 3]),
        ("backbone.convnext.0.dwconv.bias", &[4]),
        ("backbone.convnext.0.norm.weight", &[4]),
        ("backbone.convnext.0.norm.bias", &[4]),
        ("backbone.convnext.0.pwconv1.weight", &[6, 4]),
        ("backbone.convnext.0.pwconv1.bias", &[6]),
        ("backbone.convnext.0.pwconv2.weight", &[4, 6]),
        ("backbone.convnext.0.pwconv2.bias", &[4]),
        ("backbone.convnext.0.gamma", &[4]),
        ("backbone.final_layer_norm.weight", &[4]),
        ("backbone.final_layer_norm.bias", &[4]),
        ("head.out.weight", &[10, 4]),
        ("head.out.bias", &[10]),
    ];
    let tensors = shapes
        .map(|(name, shape)| {
            let values = vec![0.25; shape.iter().product()];
            (name.to_string(), (Stored::F32, shape.to_vec(), le_bytes(&values)))
        })
        .into();
    let config = json!({
        "model_type": "vocos", "sampling_rate": 22050, "n_fft": 8, "hop_length": 2, "win_length": 8,
        "padding": "same", "model_in_dim": 80, "dim": 4, "intermediate_dim": 6, "num_layers": 1,
        "kernel_size": 3, "max_magnitude": 100.0
    });
    Files::tiny()
        .with("vocoder/config.json", config.to_string())
        .with("vocoder/model.safetensors", serialized(&tensors))
}

#[test]
fn a_vocos_vocoder_loads_and_says_its_rate() {
    let voice = vocos().load().unwrap();
    assert!(matches!(voice.vocoder_config, VocoderConfig::Vocos(_)));
    assert_eq!((voice.vocoder_config.sample_rate_hz(), voice.vocoder_config.hop_length()), (22_050, 2));
    // The stock extractor is for 16 kHz, so nothing is known of this voice's mel.
    assert!(voice.mel.is_none());
    for (field, value, fragment) in [
        ("padding", json!("center"), "`center`"),
        ("n_fft", json!(10), "n_fft 10"),
        ("n_fft", json!(0), "n_fft 0"),
        ("hop_length", json!(8), "hop_length 8"),
        ("hop_length", json!(0), "hop_length 0"),
        ("hop_length", json!(3), "odd number"),
        ("kernel_size", json!(2), "even"),
        ("num_layers", json!(0), "num_layers 0"),
        ("max_magnitude", json!(0.0), "max_magnitude"),
        ("dim", Value::Null, "null"),
    ] {
        vocos().vocoder(field, value).refused("vocoder/config.json", &[fragment]);
    }
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let tiny = Files::tiny;
    tiny().without("config.json").refused("", &["`config.json` is missing"]);
    tiny().without("model.safetensors").refused("", &["model.safetensors", "pytorch_model.bin"]);
    tiny()
        .without("model.safetensors")
        .with("model.safetensors.index.json", "{}")
        .refused("", &["split", "model.safetensors.index.json"]);
    tiny().without("spm_char.model").refused("", &["spm_char.model", "symbols.json"]);
    let asked = tiny().without("spm_char.model").with("voice.toml", "[text]\nfrontend = \"ipa\"");
    asked.refused("", &["`symbols.json` is missing"]);
    assert!(!asked.load().unwrap_err().to_string().contains("spm_char.model"));
    tiny()
        .without("vocoder/config.json")
        .refused("", &["microsoft/speecht5_hifigan", "`vocoder/`", "--vocoder"]);
    tiny().without("vocoder/model.safetensors").refused("vocoder/", &["model.safetensors", "--vocoder"]);
    tiny().with("spm_char.model", "version https://git-lfs").refused("spm_char.model", &["SentencePiece"]);
}

/// A safetensors file of this header and so many zero bytes.
fn safetensors_of(header: &str, data_bytes: usize) -> Vec<u8> {
    let length = u64::try_from(header.len()).unwrap().to_le_bytes();
    [length.as_slice(), header.as_bytes(), &vec![0; data_bytes]].concat()
}

#[test]
fn a_safetensors_file_that_contradicts_itself_is_refused() {
    let tensor = |name: &str, dtype: &str, shape: &str, start: u64, end: u64| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#)
    };
    let one = tensor("a", "F32", "[2]", 0, 8);
    let cases = [
        (safetensors_of(&format!("{{{one}}}"), 7), "truncated"),
        (safetensors_of(&format!("{{{one}}}"), 9), "bytes to spare"),
        (safetensors_of(&format!("{{{one},{}}}", tensor("b", "F32", "[2]", 4, 12)), 12), "`b`"),
        (safetensors_of(&format!("{{{one},{}}}", tensor("b", "F32", "[2]", 12, 20)), 20), "`b`"),
        (safetensors_of(&format!("{{{}}}", tensor("a", "F32", "[2]", 8, 0)), 8), "`a`"),
        (safetensors_of(&format!("{{{}}}", tensor("a", "F32", "[3]", 0, 8)), 8), "shape"),
        (safetensors_of(&format!("{{{}}}", tensor("a", "F33", "[2]", 0, 8)), 8), "F33"),
        (
            safetensors_of(&format!("{{{}}}", tensor("a", "F32", "[4294967296,4294967296]", 0, 8)), 8),
            "overflow",
        ),
        (safetensors_of(&format!("{{{}}}", tensor("a", "F32", "[-2]", 0, 8)), 8), "-2"),
        (safetensors_of("{", 0), "JSON"),
        (safetensors_of("[1]", 0), "JSON"),
        ([u64::MAX.to_le_bytes().as_slice(), b"{}"].concat(), "limit"),
        ([(5_u64 << 20).to_le_bytes().as_slice(), b"{}"].concat(), "limit"),
        ([64_u64.to_le_bytes().as_slice(), b"{}"].concat(), "truncated"),
        (b"\x02\0\0\0".to_vec(), "header"),
        (safetensors_of("{}", 0), "is missing"),
    ];
    for (bytes, fragment) in cases {
        Files::tiny().with("model.safetensors", bytes).refused("model.safetensors", &[fragment]);
    }
}

#[test]
fn a_symbol_table_that_cannot_spell_is_refused() {
    let voice = Files::ipa().load().unwrap();
    let SymbolTable::Ipa(table) = voice.symbols else { panic!("{:?}", voice.symbols) };
    assert_eq!(table[&'ː'], 4);
    for (symbols, fragment) in [
        (r#"{"^": 0, "$": 2, "ab": 3}"#, "\"ab\" is not one character"),
        (r#"{"^": 0, "$": 2, "": 3}"#, "\"\" is not one character"),
        (r#"{"^": 0, "$": 2, "a": 40}"#, "outside the vocabulary of 40"),
        (r#"{"^": 0, "$": 2, "a": -1}"#, "outside the vocabulary"),
        (r#"{"^": 0, "$": 2, "a": 2}"#, "another symbol's too"),
        (r#"{"^": 0, "$": 2, "a": 3, "a": 4}"#, "occurs twice"),
        (r#"{"^": 1, "$": 2}"#, "bos_token_id"),
        (r#"{"^": 0, "$": 3}"#, "eos_token_id"),
        (r#"{"$": 2}"#, "`^`"),
        (r#"["^", "$"]"#, "character to id"),
        (r#"{"^": "0"}"#, "line 1"),
    ] {
        Files::ipa().with("symbols.json", symbols).refused("symbols.json", &[fragment]);
    }
}

#[test]
fn voice_toml_says_what_the_layout_does_not() {
    let ones = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]";
    let toml = format!(
        r#"
        [voice]
        name = "nora"
        language = "nb"
        licence = "CC0-1.0"
        description = "a test"
        [text]
        frontend = "ipa"
        symbols = "text/ipa.json"
        segment_symbols = 100
        [mel]
        sample_rate_hz = 16000
        n_fft = 1024
        hop_length = 256
        win_length = 800
        fmin_hz = 0
        fmax_hz = 8000
        log = "ln"
        floor = 1e-5
        padding = "same"
        shift = -6.1
        scale = 2.7
        [decoder]
        stop_threshold = 0.25
        max_frames_per_symbol = 12
        [speaker]
        default = "b"
        [speakers]
        a = {ones}
        b = "speakers/b.json"
        "#
    );
    let files = Files::tiny()
        .with("voice.toml", toml)
        .with("text/ipa.json", r#"{"^": 0, "$": 2}"#)
        .with("speakers/b.json", "[[0.5,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]]");
    let voice = files.load().unwrap();
    assert_eq!((voice.name.as_str(), voice.language.as_str()), ("nora", "nb"));
    assert_eq!((voice.licence.as_deref(), voice.description.as_deref()), (Some("CC0-1.0"), Some("a test")));
    assert_eq!((voice.stop_threshold, voice.max_frames_per_symbol, voice.segment_symbols), (0.25, 12.0, 100));
    assert!(matches!(&voice.symbols, SymbolTable::Ipa(table) if table.len() == 2));
    let b = voice.speakers.named(None).unwrap();
    assert!((b[1] / b[0] - 2.0).abs() < 1e-6, "{b:?}");
    assert_eq!(voice.speakers.named(Some("a")).unwrap(), [0.25; 16]);
    let mel = voice.mel.unwrap();
    assert_eq!((mel.win_length, mel.log, mel.padding), (800, LogBase::Ln, MelPadding::Same));
    assert_eq!((mel.shift, mel.scale), (-6.1, 2.7));
}

#[test]
fn a_voice_toml_that_does_not_hold_is_refused() {
    let mel = "[mel]\nsample_rate_hz = 16000\nn_fft = 1024\nhop_length = 256\nwin_length = 1024\nfmin_hz = 80\n\
               fmax_hz = 7600\nlog = \"log10\"\nfloor = 1e-10\npadding = \"center\"\n";
    Files::tiny().with("voice.toml", mel).load().unwrap();
    let cases: Vec<(String, &str)> = [
        ("[voice]\nnam = \"x\"", "nam"),
        ("[voices]", "voices"),
        ("[text]\nfrontend = \"phonemes\"", "phonemes"),
        ("[text]\nsegment_symbols = 129", "segment_symbols 129"),
        ("[text]\nsegment_symbols = 0", "segment_symbols 0"),
        ("[text]\nsymbols = \"../symbols.json\"", "not a path inside the voice"),
        ("[text]\nsymbols = \"/etc/passwd\"", "not a path inside the voice"),
        ("[decoder]\nstop_threshold = 0", "stop_threshold"),
        ("[decoder]\nstop_threshold = 2.0", "between 0 and 2"),
        ("[decoder]\nstop_threshold = nan", "stop_threshold"),
        ("[decoder]\nmax_frames_per_symbol = inf", "max_frames_per_symbol"),
        ("[speaker]\ndefault = \"x\"", "`x`"),
        ("[speakers]\na = [1.0, 2.0]", "has 2 values, the voice takes 16"),
        ("[speakers]\na = [1,1,1,nan,1,1,1,1,1,1,1,1,1,1,1,1]", "NaN at index 3"),
        ("[speakers]\na = [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]", "norm 0"),
        ("[speakers]\na = \"speakers/../../a.npy\"", "not a path inside the voice"),
        ("[speakers]\na = \"C:\\\\a.npy\"", "not a path inside the voice"),
        ("[speakers]\na = 5", "an array of numbers or the name of a file"),
        ("= 5", "line 1"),
    ]
    .map(|(toml, fragment)| (toml.to_string(), fragment))
    .into_iter()
    .chain([
        (mel.replace("16000", "22050"), "the vocoder's 16000"),
        (mel.replace("hop_length = 256", "hop_length = 200"), "the vocoder's 256"),
        (mel.replace("win_length = 1024", "win_length = 2048"), "win_length 2048"),
        (mel.replace("7600", "8001"), "fmax_hz 8001"),
        (mel.replace("7600", "60"), "fmax_hz 60"),
        (mel.replace("1e-10", "0"), "floor 0"),
        (format!("{mel}scale = 0"), "scale 0"),
        (format!("{mel}shift = inf"), "shift inf"),
    ])
    .collect();
    for (toml, fragment) in cases {
        Files::tiny().with("voice.toml", toml).refused("voice.toml", &[fragment]);
    }
    Files::tiny().with("voice.toml", "[speakers]\na = \"a.npy\"").refused("", &["`a.npy` is missing"]);
    Files::tiny().with("voice.toml", b"\xff").refused("voice.toml", &["utf-8"]);
}

#[test]
fn a_voice_without_a_default_speaker_says_what_it_needs() {
    let stock = Files::tiny().load().unwrap();
    invalid_request(stock.speaker(None), &["16 values", ".npy", ".safetensors", ".json"]);
    invalid_request(stock.speaker(Some("nora")), &["no speaker `nora`"]);
    let ipa = Files::ipa().load().unwrap();
    assert_eq!(ipa.speaker(None).unwrap(), [0.25; 16]);
    assert_eq!(ipa.speaker(Some("one")).unwrap(), [0.25; 16]);
    invalid_request(ipa.speaker(Some("two")), &["`two`", "(one)"]);
    invalid_request(ipa.speakers.values(vec![1.0; 15]), &["15 values", "takes 16"]);
    invalid_request(
        ipa.speakers.values([vec![1.0; 3], vec![f32::INFINITY; 13]].concat()),
        &["inf at index 3"],
    );
    invalid_request(ipa.speakers.values(vec![0.0; 16]), &["norm 0"]);
    assert_eq!(ipa.speakers.values(vec![1e-30; 16]).unwrap(), [0.25; 16]);
}

fn npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(header.len()).unwrap().to_le_bytes();
    let length = if version == 1 { &length[..2] } else { &length };
    [b"\x93NUMPY", [version, 0].as_slice(), length, header.as_bytes(), data].concat()
}

#[test]
fn a_speaker_embedding_is_read_from_a_file() {
    let voice = Files::tiny().load().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let speaker = |file: &str, bytes: &[u8]| {
        let path = dir.path().join(file);
        std::fs::write(&path, bytes).unwrap();
        voice.speaker(Some(path.to_str().unwrap()))
    };
    let values: Vec<f32> = (1_u8..=16).map(f32::from).collect();
    let floats = le_bytes(&values);
    let doubles: Vec<u8> = values.iter().flat_map(|value| f64::from(*value).to_le_bytes()).collect();
    let header = |descr: &str, shape: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}          \n")
    };
    let tensor =
        |shape: Vec<usize>| serialized(&Tensors::from([("x".into(), (Stored::F32, shape, floats.clone()))]));
    for (file, bytes) in [
        ("a.npy", npy(1, &header("<f4", "(16,)"), &floats)),
        ("b.npy", npy(1, &header("<f8", "(1, 16)"), &doubles)),
        ("c.npy", npy(2, &header("<f4", "(16,)"), &floats)),
        ("d.safetensors", tensor(vec![16])),
        ("e.safetensors", tensor(vec![1, 16])),
        ("f.json", b"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16.0]".to_vec()),
    ] {
        assert_eq!(speaker(file, &bytes).unwrap(), voice.speakers.values(values.clone()).unwrap(), "{file}");
    }

    let two = Tensors::from(["x", "y"].map(|name| (name.into(), (Stored::F32, vec![16], floats.clone()))));
    let whole_numbers = Tensors::from([("x".into(), (Stored::I32, vec![16], floats.clone()))]);
    for (file, bytes, fragment) in [
        ("a.npy", npy(1, &header(">f4", "(16,)"), &floats), "`>f4`"),
        ("a.npy", npy(1, &header("|O", "(16,)"), &floats), "`|O`"),
        ("a.npy", npy(1, &header("<f4", "(16,)"), &floats[1..]), "63 bytes"),
        ("a.npy", npy(1, &header("<f4", "(4, 4)"), &floats), "[4, 4]"),
        ("a.npy", npy(1, &header("<f4", "()"), &floats), "[]"),
        ("a.npy", npy(1, &header("<f4", "(99999999999999999999,)"), &floats), "not one"),
        ("a.npy", npy(1, &header("<f4", "(9223372036854775807,)"), &floats), "64 bytes"),
        ("a.npy", npy(1, &header("<f4", "(15,)"), &floats[4..]), "15 values, the voice takes 16"),
        ("a.npy", npy(1, "{}", &floats), "`descr`"),
        ("a.npy", npy(9, &header("<f4", "(16,)"), &floats), "version 9.0"),
        ("a.npy", b"\x93NUMPY\x01\0\xff\xff{".to_vec(), "cut short"),
        ("a.npy", b"PK".to_vec(), "not a .npy file"),
        ("b.safetensors", tensor(vec![4, 4]), "[4, 4]"),
        ("b.safetensors", serialized(&two), "2 tensors"),
        ("b.safetensors", serialized(&whole_numbers), "I32"),
        ("c.json", b"{\"x\": 1}".to_vec(), "array of numbers"),
        ("c.json", format!("[{:?}, {:?}]", values, values).into_bytes(), "shape [2, 16]"),
        ("c.json", format!("[[{values:?}]]").into_bytes(), "shape [1, 1, 16]"),
        ("c.json", b"[1,2,NaN,4]".to_vec(), "holds NaN"),
        ("c.json", b"[1,2,-Infinity,4]".to_vec(), "holds Infinity"),
        ("c.json", b"[1,2,null,4]".to_vec(), "holds null at index 2"),
        ("c.json", b"[[1,\"2\"]]".to_vec(), "holds \"2\" at index 1"),
        ("c.json", b"[1,2".to_vec(), "EOF"),
    ] {
        invalid_request(speaker(file, &bytes), &[file, fragment]);
    }
    invalid_request(voice.speaker(Some("/nowhere/x.npy")), &["/nowhere/x.npy", "no such file"]);
    // A name is all that a client may send.
    invalid_request(voice.speakers.named(dir.path().join("f.json").to_str()), &["no speaker"]);
}

#[test]
fn a_directory_loads_with_its_own_or_another_vocoder() {
    let dir = tempfile::tempdir().unwrap();
    let voice = dir.path().join("nora");
    Files::tiny().write(&voice);
    assert_eq!(Voice::load(&voice, None).unwrap().name, "nora");
    let elsewhere = dir.path().join("hifigan");
    std::fs::rename(voice.join("vocoder"), &elsewhere).unwrap();
    let refused = Voice::load(&voice, None).unwrap_err().to_string();
    assert!(refused.contains("--vocoder") && refused.contains("speecht5_hifigan"), "{refused}");
    assert_eq!(Voice::load(&voice, Some(&elsewhere)).unwrap().vocoder.names().count(), 110);

    std::fs::remove_file(voice.join("spm_char.model")).unwrap();
    std::fs::create_dir(voice.join("spm_char.model")).unwrap();
    let refused = Voice::load(&voice, Some(&elsewhere)).unwrap_err().to_string();
    assert!(refused.contains("spm_char.model: not a regular file"), "{refused}");
    let refused = Voice::load(&dir.path().join("nobody"), None).unwrap_err().to_string();
    assert!(refused.contains("nobody: not a directory"), "{refused}");
}

#[test]
fn the_default_voice_says_all_that_a_voice_can() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default");
    let weights = [models.clone(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/voice")]
        .into_iter()
        .find(|dir| dir.join("model.safetensors").exists() && dir.join("vocoder/model.safetensors").exists());
    let Some(weights) = weights else {
        println!("skipped: the weights of the default voice are not there");
        return;
    };
    let mut files = Vec::new();
    for (dir, file) in [
        (&models, "config.json"),
        (&models, "symbols.json"),
        (&models, "voice.toml"),
        (&models, "vocoder/config.json"),
        (&weights, "model.safetensors"),
        (&weights, "vocoder/model.safetensors"),
    ] {
        files.push((file, &*Vec::leak(std::fs::read(dir.join(file)).unwrap())));
    }
    let voice = Voice::from_files("default", &files).unwrap();
    assert_eq!((voice.name.as_str(), voice.language.as_str()), ("joe", "en-US"));
    assert_eq!(voice.speakers.named(None).unwrap(), [0.176_776_69; 32]);
    assert_eq!((voice.vocoder_config.sample_rate_hz(), voice.vocoder_config.hop_length()), (22_050, 256));
    assert!(matches!(&voice.symbols, SymbolTable::Ipa(table) if table[&'ˈ'] == 58));
    assert_eq!(voice.mel.unwrap().shift, -6.1);
    assert!(voice.licence.is_some() && voice.description.is_some());
}

/// Steele, Lea and Flood's SplitMix64.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((z ^ (z >> 31)) >> 1).unwrap()
}

fn mutated(bytes: &[u8], state: &mut u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=next(state) % 4 {
        let at = next(state) % bytes.len();
        bytes[at] = u8::try_from(next(state) % 256).unwrap();
    }
    if next(state).is_multiple_of(8) {
        bytes.truncate(next(state) % bytes.len());
    }
    bytes
}

#[test]
fn mutations_of_a_safetensors_file_are_read_or_refused() {
    let tensors = Tensors::from([
        ("a".into(), (Stored::F32, vec![2, 2], vec![0; 16])),
        ("b".into(), (Stored::F16, vec![3], vec![0; 6])),
        ("c".into(), (Stored::F64, vec![], vec![0; 8])),
    ]);
    let (file, mut state, mut read) = (serialized(&tensors), 1, 0);
    for _ in 0..2_000 {
        match Checkpoint::parse(Path::new("x.safetensors"), mutated(&file, &mut state).into()) {
            Ok(checkpoint) => {
                read += 1;
                for name in checkpoint.names() {
                    drop(checkpoint.f32(name));
                }
            }
            Err(Error::InvalidVoice { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!((1..1_900).contains(&read), "{read} read");
}

#[test]
fn mutations_of_the_small_files_are_read_or_refused() {
    let ones = le_bytes(&[1.0; 16]);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (16,), }\n";
    let whole = Files::ipa()
        .with(
            "voice.toml",
            "[text]\nsegment_symbols = 90\n[speaker]\ndefault = \"a\"\n[speakers]\na = \"a.npy\"\n",
        )
        .with("a.npy", npy(1, header, &ones));
    whole.load().unwrap();
    let (mut state, mut read) = (1, 0);
    for file in ["config.json", "vocoder/config.json", "voice.toml", "symbols.json", "a.npy"] {
        for _ in 0..400 {
            let bytes = mutated(whole.0[file], &mut state);
            match whole.clone().with(file, bytes).load() {
                Ok(_) => read += 1,
                Err(Error::InvalidVoice { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!((1..1_900).contains(&read), "{read} read");
}
