//! Sizes and a seed in, a voice directory with random weights out.
//!
//! Names and shapes are those that the loader asks for, so every voice that comes from here loads. The same
//! recipe gives the same bytes on every machine: a weight is made of integers, additions and a square root,
//! which no libm may round its own way. Never speaks sense.

use std::io;
use std::path::Path;

use mezzavoce::voice::config::{AcousticConfig, HifiGanConfig, VocoderConfig, VocosConfig};
use mezzavoce::voice::names::{self, Required};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

/// A stop bias with which no sentence ends before its cap.
pub const NEVER_STOPS: f32 = -20.0;

/// What to make.
pub struct RandomVoice<'a> {
    pub config: AcousticConfig,
    pub vocoder: VocoderConfig,
    pub seed: u64,
    /// The bias of every stop logit.
    pub stop_bias: f32,
    /// Name and bytes of the file that says how text is spelled.
    pub spelling: (&'a str, &'a [u8]),
    /// The text of `voice.toml`.
    pub manifest: &'a str,
}

impl RandomVoice<'_> {
    /// Every file of the voice, by its path in the directory.
    pub fn files(&self) -> Vec<(&str, Vec<u8>)> {
        let acoustic = names::acoustic(&self.config);
        let vocoder = names::vocoder(&self.vocoder);
        vec![
            ("config.json", pretty(&acoustic_json(&self.config))),
            ("model.safetensors", self.weights(&acoustic, self.seed)),
            (self.spelling.0, self.spelling.1.to_vec()),
            ("voice.toml", self.manifest.as_bytes().to_vec()),
            ("vocoder/config.json", pretty(&vocoder_json(&self.vocoder))),
            ("vocoder/model.safetensors", self.weights(&vocoder, self.seed + 1)),
        ]
    }

    /// Writes the voice into `dir`, which is made when it is missing.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir.join("vocoder"))?;
        self.files().into_iter().try_for_each(|(file, bytes)| std::fs::write(dir.join(file), bytes))
    }

    fn weights(&self, required: &[Required], seed: u64) -> Vec<u8> {
        let mut random = SplitMix64(seed);
        let tensors: Vec<Vec<u8>> = required.iter().map(|tensor| self.initial(tensor, &mut random)).collect();
        let views = required.iter().zip(&tensors).map(|(tensor, bytes)| {
            (&tensor.name, TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    /// Norms begin as the identity, biases at zero, matrices and filters with the standard deviation
    /// `1 / √fan-in`, so that activations keep their size from layer to layer.
    fn initial(&self, tensor: &Required, random: &mut SplitMix64) -> Vec<u8> {
        let name = tensor.name.as_str();
        let count = tensor.shape.iter().product();
        let constant = |value: f32| value.to_le_bytes().repeat(count);
        let norm_weight = name.ends_with("norm.weight");
        if norm_weight || name.ends_with(names::RUNNING_VAR) || name == names::HIFIGAN_SCALE {
            return constant(1.0);
        }
        if name == names::ENCODER_ALPHA || name == names::DECODER_ALPHA {
            return constant(1.0);
        }
        if name.ends_with(names::CONVNEXT_GAMMA) {
            return constant(0.25);
        }
        if name == names::bias(names::PROB_OUT) {
            return constant(self.stop_bias);
        }
        let [outputs, rest @ ..] = tensor.shape.as_slice() else { return constant(0.0) };
        if rest.is_empty() {
            return constant(0.0);
        }
        // A transposed convolution keeps its inputs first, and each of its samples sees few of its taps.
        let fan_in = if name.starts_with("upsampler") { *outputs } else { rest.iter().product() };
        let deviation = 1.0 / f32::from(u16::try_from(fan_in).unwrap()).sqrt();
        (0..count).flat_map(|_| (deviation * random.bell()).to_le_bytes()).collect()
    }
}

/// The generator of Steele, Lea and Flood, 2014.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A value of mean 0 and variance 1, near enough to normal: the sum of four uniform ones, each of
    /// variance 1/12.
    fn bell(&mut self) -> f32 {
        let bits = self.next();
        let sum: f32 = [0, 16, 32, 48]
            .map(|shift| f32::from(u16::try_from(bits >> shift & 0xffff).unwrap()) / 65536.0 - 0.5)
            .iter()
            .sum();
        sum * 3f32.sqrt()
    }
}

fn pretty(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap();
    bytes.push(b'\n');
    bytes
}

/// The number that is written as `value` is, so that 1e-5 does not become 9.999999747378752e-6.
fn decimal(value: f32) -> f64 {
    value.to_string().parse().unwrap()
}

/// `config.json`; keys are in alphabetical order, as `serde_json` would put them or leave them.
fn acoustic_json(config: &AcousticConfig) -> Value {
    // Named one by one: a field that the loader learns to read has to be written here too.
    let AcousticConfig {
        vocab_size,
        hidden_size,
        encoder_layers,
        encoder_attention_heads,
        encoder_ffn_dim,
        encoder_max_relative_position,
        decoder_layers,
        decoder_attention_heads,
        decoder_ffn_dim,
        layer_norm_eps,
        num_mel_bins,
        reduction_factor,
        speaker_embedding_dim,
        speech_decoder_prenet_layers,
        speech_decoder_prenet_units,
        speech_decoder_prenet_dropout,
        speech_decoder_postnet_layers,
        speech_decoder_postnet_units,
        speech_decoder_postnet_kernel,
        max_text_positions,
        max_speech_positions,
        bos_token_id,
        pad_token_id,
        eos_token_id,
        training: _,
    } = config.clone();
    json!({
        "architectures": ["SpeechT5ForTextToSpeech"],
        "bos_token_id": bos_token_id,
        "decoder_attention_heads": decoder_attention_heads,
        "decoder_ffn_dim": decoder_ffn_dim,
        "decoder_layers": decoder_layers,
        "encoder_attention_heads": encoder_attention_heads,
        "encoder_ffn_dim": encoder_ffn_dim,
        "encoder_layers": encoder_layers,
        "encoder_max_relative_position": encoder_max_relative_position,
        "eos_token_id": eos_token_id,
        "hidden_act": "gelu",
        "hidden_size": hidden_size,
        "layer_norm_eps": decimal(layer_norm_eps),
        "max_speech_positions": max_speech_positions,
        "max_text_positions": max_text_positions,
        "model_type": "speecht5",
        "num_mel_bins": num_mel_bins,
        "pad_token_id": pad_token_id,
        "reduction_factor": reduction_factor,
        "speaker_embedding_dim": speaker_embedding_dim,
        "speech_decoder_postnet_kernel": speech_decoder_postnet_kernel,
        "speech_decoder_postnet_layers": speech_decoder_postnet_layers,
        "speech_decoder_postnet_units": speech_decoder_postnet_units,
        "speech_decoder_prenet_dropout": decimal(speech_decoder_prenet_dropout),
        "speech_decoder_prenet_layers": speech_decoder_prenet_layers,
        "speech_decoder_prenet_units": speech_decoder_prenet_units,
        "vocab_size": vocab_size,
    })
}

fn vocoder_json(config: &VocoderConfig) -> Value {
    match config.clone() {
        VocoderConfig::HifiGan(HifiGanConfig {
            model_in_dim,
            sampling_rate,
            upsample_initial_channel,
            upsample_rates,
            upsample_kernel_sizes,
            resblock_kernel_sizes,
            resblock_dilation_sizes,
            leaky_relu_slope,
            normalize_before,
        }) => json!({
            "leaky_relu_slope": decimal(leaky_relu_slope),
            "model_in_dim": model_in_dim,
            "model_type": "hifigan",
            "normalize_before": normalize_before,
            "resblock_dilation_sizes": resblock_dilation_sizes,
            "resblock_kernel_sizes": resblock_kernel_sizes,
            "sampling_rate": sampling_rate,
            "upsample_initial_channel": upsample_initial_channel,
            "upsample_kernel_sizes": upsample_kernel_sizes,
            "upsample_rates": upsample_rates,
        }),
        VocoderConfig::Vocos(VocosConfig {
            sampling_rate,
            n_fft,
            hop_length,
            win_length,
            padding,
            model_in_dim,
            dim,
            intermediate_dim,
            num_layers,
            kernel_size,
            max_magnitude,
        }) => json!({
            "dim": dim,
            "hop_length": hop_length,
            "intermediate_dim": intermediate_dim,
            "kernel_size": kernel_size,
            "max_magnitude": decimal(max_magnitude),
            "model_in_dim": model_in_dim,
            "model_type": "vocos",
            "n_fft": n_fft,
            "num_layers": num_layers,
            "padding": padding,
            "sampling_rate": sampling_rate,
            "win_length": win_length,
        }),
    }
}
