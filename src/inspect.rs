//! A voice in, a description of what it is made of out.
//!
//! Never loads ONNX Runtime: everything here is in the voice's own files.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::decoder::cache_bytes_per_stream;
use crate::graph::postnet;
use crate::precision::Dtype;
use crate::vocoder::look_ahead_frames;
use crate::voice::checkpoint::Checkpoint;
use crate::voice::config::VocoderConfig;
use crate::voice::{SymbolTable, Voice};

/// Stages, parameters, bytes by dtype, frames a step and look-ahead of `voice`, for a person to read.
pub fn inspect(voice: &Voice) -> String {
    let mut lines = Lines(String::new());
    lines.add("voice", &format!("{}, {}", voice.name, voice.language));
    if let Some(licence) = &voice.licence {
        lines.add("licence", licence);
    }
    let symbols = match &voice.symbols {
        SymbolTable::Ipa(table) => format!("{} IPA characters", table.len()),
        SymbolTable::Characters(_) => format!("{} SentencePiece characters", voice.config.vocab_size),
    };
    lines.add("symbols", &format!("{symbols}, {} in one sentence at most", voice.segment_symbols));
    let speakers: Vec<&str> = voice.speakers.embeddings.keys().map(String::as_str).collect();
    let named = if speakers.is_empty() { "none of its own".to_owned() } else { speakers.join(", ") };
    let default =
        voice.speakers.default.as_ref().map_or("no default".to_owned(), |name| format!("default {name}"));
    lines.add(
        "speakers",
        &format!("{named}; {default}; embeddings of {} values", voice.config.speaker_embedding_dim),
    );

    let config = &voice.config;
    let sizes = |layers, heads, ffn| {
        format!("{layers} layers of {}, {heads} heads, feed-forward {ffn}", config.hidden_size)
    };
    let (layers, heads) = (config.encoder_layers, config.encoder_attention_heads);
    lines.add("encoder", &sizes(layers, heads, config.encoder_ffn_dim));
    let (layers, heads) = (config.decoder_layers, config.decoder_attention_heads);
    lines.add("decoder", &sizes(layers, heads, config.decoder_ffn_dim));
    lines.add(
        "postnet",
        &format!(
            "{} convolutions of {}",
            config.speech_decoder_postnet_layers, config.speech_decoder_postnet_units
        ),
    );
    lines.add("vocoder", &vocoder(&voice.vocoder_config));

    lines.add("acoustic", &weights(&voice.acoustic));
    lines.add("", &format!("vocoder: {}", weights(&voice.vocoder)));
    timing(&mut lines, voice);
    lines.0
}

fn vocoder(config: &VocoderConfig) -> String {
    match config {
        VocoderConfig::HifiGan(c) => {
            format!("HiFi-GAN, {} channels, upsampling by {:?}", c.upsample_initial_channel, c.upsample_rates)
        }
        VocoderConfig::Vocos(c) => {
            format!("Vocos, {} ConvNeXt blocks of {}, n_fft {}", c.num_layers, c.dim, c.n_fft)
        }
    }
}

/// Parameters, and bytes by dtype.
fn weights(checkpoint: &Checkpoint) -> String {
    let mut bytes: BTreeMap<String, usize> = BTreeMap::new();
    let mut parameters = 0;
    for name in checkpoint.names() {
        let Ok(tensor) = checkpoint.tensor(name) else { continue };
        *bytes.entry(tensor.dtype.to_string()).or_default() += tensor.data.len();
        parameters += tensor.shape.iter().product::<usize>();
    }
    let by_dtype: Vec<String> =
        bytes.iter().map(|(dtype, bytes)| format!("{bytes} bytes in {dtype}")).collect();
    format!("{parameters} parameters, {}", by_dtype.join(", "))
}

/// Sample rate, frames a step, look-ahead, cache.
fn timing(lines: &mut Lines, voice: &Voice) {
    let (config, vocoder) = (&voice.config, &voice.vocoder_config);
    let (rate, hop) = (vocoder.sample_rate_hz(), vocoder.hop_length());
    let ms = |frames: usize| (frames * hop) as f64 * 1000.0 / f64::from(rate);
    lines.add("audio", &format!("{rate} Hz, hop length {hop}, {} mel bins", config.num_mel_bins));
    let r = config.reduction_factor;
    lines.add(
        "step",
        &format!("{r} frames, {:.1} ms of audio; {} steps at most", ms(r), config.max_speech_positions),
    );
    let frames = postnet::context_frames(config) + look_ahead_frames(vocoder);
    lines.add("look-ahead", &format!("{frames} frames, {:.0} ms of audio", ms(frames)));
    let bytes = cache_bytes_per_stream(voice, Dtype::F32);
    lines.add("KV cache", &format!("{bytes} bytes a stream in f32"));
}

struct Lines(String);

impl Lines {
    fn add(&mut self, label: &str, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{label:<11}{text}");
    }
}
