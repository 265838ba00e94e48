//! A configuration in, the name and shape of every tensor it asks for out.
//!
//! The one place where tensor names are spelled: validation and the graphs both read them here. Names and
//! shapes are those of `transformers` 5.24 (`modeling_speecht5.py`) and of the Vocos reference code. Never
//! looks at a checkpoint.

use super::config::{AcousticConfig, HifiGanConfig, VocoderConfig, VocosConfig};

pub const TOKEN_EMBEDDING: &str = "speecht5.encoder.prenet.embed_tokens.weight";
pub const ENCODER_ALPHA: &str = "speecht5.encoder.prenet.encode_positions.alpha";
/// Learned relative positions, `[2 * encoder_max_relative_position, head_dim]`.
pub const RELATIVE_POSITIONS: &str = "speecht5.encoder.wrapped_encoder.embed_positions.pe_k.weight";
pub const ENCODER_NORM: &str = "speecht5.encoder.wrapped_encoder.layer_norm";
pub const DECODER_ALPHA: &str = "speecht5.decoder.prenet.encode_positions.alpha";
pub const PRENET_FINAL: &str = "speecht5.decoder.prenet.final_layer";
/// `[hidden, hidden + speaker_dim]`: the frame comes first, then the speaker embedding.
pub const PRENET_SPEAKER: &str = "speecht5.decoder.prenet.speaker_embeds_layer";
pub const FEAT_OUT: &str = "speech_decoder_postnet.feat_out";
pub const PROB_OUT: &str = "speech_decoder_postnet.prob_out";

/// Below an encoder layer.
pub const ENCODER_ATTENTION: &str = "attention";
pub const ENCODER_ATTENTION_NORM: &str = "layer_norm";
/// Below a decoder layer.
pub const SELF_ATTENTION: &str = "self_attn";
pub const SELF_ATTENTION_NORM: &str = "self_attn_layer_norm";
pub const CROSS_ATTENTION: &str = "encoder_attn";
pub const CROSS_ATTENTION_NORM: &str = "encoder_attn_layer_norm";
/// Below an attention: queries, keys, values, output.
pub const PROJECTIONS: [&str; 4] = ["q_proj", "k_proj", "v_proj", "out_proj"];
/// Below a layer of either stack.
pub const FFN_IN: &str = "feed_forward.intermediate_dense";
pub const FFN_OUT: &str = "feed_forward.output_dense";
pub const FINAL_NORM: &str = "final_layer_norm";
/// Below a postnet layer. The convolution has no bias.
pub const POSTNET_CONV: &str = "conv.weight";
pub const POSTNET_NORM: [&str; 4] =
    ["batch_norm.weight", "batch_norm.bias", "batch_norm.running_mean", RUNNING_VAR];
pub const RUNNING_VAR: &str = "batch_norm.running_var";

pub const HIFIGAN_MEAN: &str = "mean";
pub const HIFIGAN_SCALE: &str = "scale";
pub const HIFIGAN_PRE: &str = "conv_pre";
pub const HIFIGAN_POST: &str = "conv_post";
/// Taps of HiFi-GAN's first and last convolution, which its configuration does not hold.
pub const HIFIGAN_OUTER_KERNEL: usize = 7;

pub const VOCOS_EMBED: &str = "backbone.embed";
pub const VOCOS_NORM: &str = "backbone.norm";
pub const VOCOS_FINAL_NORM: &str = "backbone.final_layer_norm";
pub const VOCOS_HEAD: &str = "head.out";
/// Below a ConvNeXt block.
pub const CONVNEXT_DEPTHWISE: &str = "dwconv";
pub const CONVNEXT_NORM: &str = "norm";
pub const CONVNEXT_IN: &str = "pwconv1";
pub const CONVNEXT_OUT: &str = "pwconv2";
pub const CONVNEXT_GAMMA: &str = "gamma";

pub fn encoder_layer(layer: usize) -> String {
    format!("speecht5.encoder.wrapped_encoder.layers.{layer}")
}

pub fn decoder_layer(layer: usize) -> String {
    format!("speecht5.decoder.wrapped_decoder.layers.{layer}")
}

pub fn prenet_layer(layer: usize) -> String {
    format!("speecht5.decoder.prenet.layers.{layer}")
}

pub fn postnet_layer(layer: usize) -> String {
    format!("speech_decoder_postnet.layers.{layer}")
}

pub fn upsampler(stage: usize) -> String {
    format!("upsampler.{stage}")
}

/// Residual block `block` of all: stage by stage, and in a stage by kernel.
pub fn resblock_conv(block: usize, dilated: bool, index: usize) -> String {
    let convs = if dilated { "convs1" } else { "convs2" };
    format!("resblocks.{block}.{convs}.{index}")
}

pub fn convnext(block: usize) -> String {
    format!("backbone.convnext.{block}")
}

pub fn weight(module: &str) -> String {
    format!("{module}.weight")
}

pub fn bias(module: &str) -> String {
    format!("{module}.bias")
}

/// A tensor that a model cannot do without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Required {
    pub name: String,
    pub shape: Vec<usize>,
}

#[derive(Default)]
struct List(Vec<Required>);

impl List {
    fn push(&mut self, name: impl Into<String>, shape: &[usize]) {
        self.0.push(Required { name: name.into(), shape: shape.to_vec() });
    }

    /// A weight whose bias has `outputs` values.
    fn module(&mut self, module: &str, shape: &[usize], outputs: usize) {
        self.push(weight(module), shape);
        self.push(bias(module), &[outputs]);
    }

    fn linear(&mut self, module: &str, outputs: usize, inputs: usize) {
        self.module(module, &[outputs, inputs], outputs);
    }

    fn norm(&mut self, module: &str, width: usize) {
        self.module(module, &[width], width);
    }

    fn attention(&mut self, module: &str, hidden: usize) {
        for projection in PROJECTIONS {
            self.linear(&format!("{module}.{projection}"), hidden, hidden);
        }
    }

    fn feed_forward(&mut self, layer: &str, hidden: usize, inner: usize) {
        self.linear(&format!("{layer}.{FFN_IN}"), inner, hidden);
        self.linear(&format!("{layer}.{FFN_OUT}"), hidden, inner);
        self.norm(&format!("{layer}.{FINAL_NORM}"), hidden);
    }
}

/// Every tensor of encoder, decoder, prenet and postnet.
pub fn acoustic(config: &AcousticConfig) -> Vec<Required> {
    let mut list = List::default();
    let (hidden, mel) = (config.hidden_size, config.num_mel_bins);
    list.push(TOKEN_EMBEDDING, &[config.vocab_size, hidden]);
    list.push(ENCODER_ALPHA, &[]);
    let head_dim = hidden / config.encoder_attention_heads;
    list.push(RELATIVE_POSITIONS, &[2 * config.encoder_max_relative_position, head_dim]);
    list.norm(ENCODER_NORM, hidden);
    for layer in (0..config.encoder_layers).map(encoder_layer) {
        list.attention(&format!("{layer}.{ENCODER_ATTENTION}"), hidden);
        list.norm(&format!("{layer}.{ENCODER_ATTENTION_NORM}"), hidden);
        list.feed_forward(&layer, hidden, config.encoder_ffn_dim);
    }

    list.push(DECODER_ALPHA, &[]);
    let units = config.speech_decoder_prenet_units;
    for index in 0..config.speech_decoder_prenet_layers {
        list.linear(&prenet_layer(index), units, if index == 0 { mel } else { units });
    }
    list.linear(PRENET_FINAL, hidden, units);
    list.linear(PRENET_SPEAKER, hidden, hidden + config.speaker_embedding_dim);
    for layer in (0..config.decoder_layers).map(decoder_layer) {
        list.attention(&format!("{layer}.{SELF_ATTENTION}"), hidden);
        list.norm(&format!("{layer}.{SELF_ATTENTION_NORM}"), hidden);
        list.attention(&format!("{layer}.{CROSS_ATTENTION}"), hidden);
        list.norm(&format!("{layer}.{CROSS_ATTENTION_NORM}"), hidden);
        list.feed_forward(&layer, hidden, config.decoder_ffn_dim);
    }

    list.linear(FEAT_OUT, mel * config.reduction_factor, hidden);
    list.linear(PROB_OUT, config.reduction_factor, hidden);
    let last = config.speech_decoder_postnet_layers.saturating_sub(1);
    for index in 0..config.speech_decoder_postnet_layers {
        let layer = postnet_layer(index);
        let inputs = if index == 0 { mel } else { config.speech_decoder_postnet_units };
        let outputs = if index == last { mel } else { config.speech_decoder_postnet_units };
        let shape = [outputs, inputs, config.speech_decoder_postnet_kernel];
        list.push(format!("{layer}.{POSTNET_CONV}"), &shape);
        for name in POSTNET_NORM {
            list.push(format!("{layer}.{name}"), &[outputs]);
        }
    }
    list.0
}

/// Every tensor of the vocoder.
pub fn vocoder(config: &VocoderConfig) -> Vec<Required> {
    match config {
        VocoderConfig::HifiGan(config) => hifigan(config),
        VocoderConfig::Vocos(config) => vocos(config),
    }
}

fn hifigan(config: &HifiGanConfig) -> Vec<Required> {
    let mut list = List::default();
    if config.normalize_before {
        list.push(HIFIGAN_MEAN, &[config.model_in_dim]);
        list.push(HIFIGAN_SCALE, &[config.model_in_dim]);
    }
    let mut channels = config.upsample_initial_channel;
    list.module(HIFIGAN_PRE, &[channels, config.model_in_dim, HIFIGAN_OUTER_KERNEL], channels);
    let mut block = 0;
    for (stage, &kernel) in config.upsample_kernel_sizes.iter().enumerate() {
        let inputs = channels;
        channels /= 2;
        // A transposed convolution keeps its inputs first.
        list.module(&upsampler(stage), &[inputs, channels, kernel], channels);
        for (&kernel, dilations) in config.resblock_kernel_sizes.iter().zip(&config.resblock_dilation_sizes) {
            for index in 0..dilations.len() {
                for dilated in [true, false] {
                    let name = resblock_conv(block, dilated, index);
                    list.module(&name, &[channels, channels, kernel], channels);
                }
            }
            block += 1;
        }
    }
    list.module(HIFIGAN_POST, &[1, channels, HIFIGAN_OUTER_KERNEL], 1);
    list.0
}

fn vocos(config: &VocosConfig) -> Vec<Required> {
    let mut list = List::default();
    let (dim, kernel) = (config.dim, config.kernel_size);
    list.module(VOCOS_EMBED, &[dim, config.model_in_dim, kernel], dim);
    list.norm(VOCOS_NORM, dim);
    for block in (0..config.num_layers).map(convnext) {
        list.module(&format!("{block}.{CONVNEXT_DEPTHWISE}"), &[dim, 1, kernel], dim);
        list.norm(&format!("{block}.{CONVNEXT_NORM}"), dim);
        list.linear(&format!("{block}.{CONVNEXT_IN}"), config.intermediate_dim, dim);
        list.linear(&format!("{block}.{CONVNEXT_OUT}"), dim, config.intermediate_dim);
        list.push(format!("{block}.{CONVNEXT_GAMMA}"), &[dim]);
    }
    list.norm(VOCOS_FINAL_NORM, dim);
    list.linear(VOCOS_HEAD, config.n_fft + 2, dim);
    list.0
}
