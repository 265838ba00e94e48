//! The text encoder as a graph: symbol ids in, hidden states and every decoder layer's cross-attention keys
//! and values out. The speaker's share of the decoder prenet, which no step changes, is computed here too.
//!
//! Never masks: it runs one sentence at a time, at its own length.

use super::layers::{sinusoids, transposed};
use super::{Attribute, Builder, Dim, Value};
use crate::error::Result;
use crate::precision::{Dtype, StagePlan};
use crate::voice::config::AcousticConfig;
use crate::voice::{Voice, names};

/// i64 [1, tokens]
pub const INPUT_IDS: &str = "input_ids";
/// f32 [1, speaker_embedding_dim], before its L2 normalisation
pub const SPEAKER_EMBEDDING: &str = "speaker_embedding";
/// f32 [1, tokens, hidden]
pub const HIDDEN: &str = "hidden";
/// f32 [1, hidden]: what the speaker adds inside the decoder prenet
pub const SPEAKER_BIAS: &str = "speaker_bias";

/// KV dtype [1, heads, tokens, head_dim]
pub fn cross_key(layer: usize) -> String {
    format!("cross_key.{layer}")
}

/// KV dtype [1, heads, tokens, head_dim]
pub fn cross_value(layer: usize) -> String {
    format!("cross_value.{layer}")
}

/// Builds the encoder of `voice` as `plan` says, for sentences of `segment_symbols` at most.
pub fn encoder(voice: &Voice, plan: StagePlan) -> Result<Vec<u8>> {
    let config = &voice.config;
    let hidden = config.hidden_size;
    let mut builder = Builder::new("encoder", &voice.acoustic, plan);
    let b = &mut builder;
    let ids = b.input(INPUT_IDS, Dtype::I64, &[Dim::Fixed(1), Dim::Free("tokens")])?;
    let speaker =
        b.input(SPEAKER_EMBEDDING, Dtype::F32, &[Dim::Fixed(1), Dim::Fixed(config.speaker_embedding_dim)])?;

    let mut x = embeddings(b, voice, &ids)?;
    x = b.layer_norm(&x, names::ENCODER_NORM, hidden, config.layer_norm_eps)?;
    let offsets = relative_offsets(b, config, &ids)?;
    for layer in 0..config.encoder_layers {
        x = encoder_layer(b, config, &x, &offsets, layer)?;
    }
    b.output(HIDDEN, &x, Dtype::F32, &[Dim::Fixed(1), Dim::Free("tokens"), Dim::Fixed(hidden)])?;

    let heads = config.decoder_attention_heads;
    let cache = [Dim::Fixed(1), Dim::Fixed(heads), Dim::Free("tokens"), Dim::Fixed(hidden / heads)];
    let x = b.narrowed(&x)?;
    for layer in 0..config.decoder_layers {
        let attention = format!("{}.{}", names::decoder_layer(layer), names::CROSS_ATTENTION);
        for (projection, name) in [("k_proj", cross_key(layer)), ("v_proj", cross_value(layer))] {
            let y = b.linear(&x, &format!("{attention}.{projection}"), [hidden, hidden])?;
            let y = split_heads(b, &y, heads, hidden)?;
            let y = b.cached(&y)?;
            b.output(&name, &y, b.kv_cache(), &cache)?;
        }
    }
    let bias = speaker_bias(b, config, &speaker)?;
    b.output(SPEAKER_BIAS, &bias, Dtype::F32, &[Dim::Fixed(1), Dim::Fixed(hidden)])?;
    Ok(builder.finish())
}

/// Symbol embeddings plus scaled sinusoidal positions. -> f32 [1, tokens, hidden]
fn embeddings(b: &mut Builder, voice: &Voice, ids: &Value) -> Result<Value> {
    let (config, most) = (&voice.config, voice.segment_symbols);
    let hidden = config.hidden_size;
    let table = b.values(names::TOKEN_EMBEDDING)?;
    let table = b.weight(&table, &[config.vocab_size, hidden])?;
    let x = b.op("Gather", &[&table, ids], &[]);
    let x = b.widened(&x)?;
    let alpha = b.values(names::ENCODER_ALPHA)?[0];
    let positions = b.constant(&sinusoids(most, hidden, alpha), &[most, hidden])?;
    let zero = b.integers(&[0], &[1])?;
    let tokens = token_count(b, ids);
    let positions = b.op("Slice", &[&positions, &zero, &tokens], &[]);
    Ok(b.op("Add", &[&x, &positions], &[]))
}

/// The sentence's length. -> i64 [1]
fn token_count(b: &mut Builder, ids: &Value) -> Value {
    b.op("Shape", &[ids], &[("start", Attribute::Int(1))])
}

/// For every query and key, the row of the relative position table: `clamp(query − key, −M, M − 1) + M`.
/// -> i64 [1, heads, tokens, tokens]
fn relative_offsets(b: &mut Builder, config: &AcousticConfig, ids: &Value) -> Result<Value> {
    let max = config.encoder_max_relative_position as i64;
    let scalar = |b: &mut Builder, value: i64| b.integers(&[value], &[]);
    let (zero, one) = (scalar(b, 0)?, scalar(b, 1)?);
    let tokens = token_count(b, ids);
    let axis = b.integers(&[0], &[1])?;
    let length = b.op("Squeeze", &[&tokens, &axis], &[]);
    let keys = b.op("Range", &[&zero, &length, &one], &[]);
    let last = b.integers(&[1], &[1])?;
    let queries = b.op("Unsqueeze", &[&keys, &last], &[]);
    let offsets = b.op("Sub", &[&queries, &keys], &[]);
    let (low, high) = (scalar(b, -max)?, scalar(b, max - 1)?);
    let offsets = b.op("Clip", &[&offsets, &low, &high], &[]);
    let shift = scalar(b, max)?;
    let offsets = b.op("Add", &[&offsets, &shift], &[]);
    let leading = b.integers(&[1, config.encoder_attention_heads as i64], &[2])?;
    let shape = b.op("Concat", &[&leading, &tokens, &tokens], &[("axis", Attribute::Int(0))]);
    Ok(b.op("Expand", &[&offsets, &shape], &[]))
}

/// One post-norm layer: self-attention with relative positions, then the feed-forward block.
fn encoder_layer(
    b: &mut Builder,
    config: &AcousticConfig,
    x: &Value,
    offsets: &Value,
    layer: usize,
) -> Result<Value> {
    let (hidden, eps) = (config.hidden_size, config.layer_norm_eps);
    let prefix = names::encoder_layer(layer);
    let attention = format!("{prefix}.{}", names::ENCODER_ATTENTION);
    let y = self_attention(b, config, x, offsets, &attention)?;
    let norm = format!("{prefix}.{}", names::ENCODER_ATTENTION_NORM);
    let x = b.residual_norm(&y, x, &format!("{attention}.out_proj"), &norm, hidden, eps)?;
    b.feed_forward(&x, &prefix, hidden, config.encoder_ffn_dim, eps)
}

/// `softmax(q·kᵀ + q·r(query − key)) · v` and the output projection without its bias.
fn self_attention(
    b: &mut Builder,
    config: &AcousticConfig,
    x: &Value,
    offsets: &Value,
    prefix: &str,
) -> Result<Value> {
    let (hidden, heads) = (config.hidden_size, config.encoder_attention_heads);
    let head_dim = hidden / heads;
    let x = b.narrowed(x)?;
    let query = scaled_query(b, &x, prefix, hidden, head_dim)?;
    let key = b.linear(&x, &format!("{prefix}.k_proj"), [hidden, hidden])?;
    let value = b.linear(&x, &format!("{prefix}.v_proj"), [hidden, hidden])?;

    let rows = 2 * config.encoder_max_relative_position;
    let table = b.values(names::RELATIVE_POSITIONS)?;
    let table = b.weight(&transposed(&table, [rows, head_dim]), &[head_dim, rows])?;
    let per_head = split_heads(b, &query, heads, hidden)?;
    let scores = b.op("MatMul", &[&per_head, &table], &[]); // [1, heads, tokens, rows]
    let bias = b.op("GatherElements", &[&scores, offsets], &[("axis", Attribute::Int(3))]);

    let none = Value::none();
    let attributes = [("num_heads", Attribute::Int(heads as i64)), ("scale", Attribute::Float(1.0))];
    let inputs = [&query, &key, &value, &none, &none, &bias];
    let y = b.fused("MultiHeadAttention", &inputs, &attributes, 1).remove(0);
    b.linear_without_bias(&y, &format!("{prefix}.out_proj"), [hidden, hidden])
}

/// The query projection with `1/√head_dim` folded into its weights: the relative positions need it scaled too.
fn scaled_query(b: &mut Builder, x: &Value, prefix: &str, hidden: usize, head_dim: usize) -> Result<Value> {
    let scale = (head_dim as f32).powf(-0.5);
    let query = format!("{prefix}.q_proj");
    let scaled = |values: Vec<f32>| values.into_iter().map(|v| v * scale).collect::<Vec<_>>();
    let weight = scaled(b.values(&names::weight(&query))?);
    let bias = scaled(b.values(&names::bias(&query))?);
    b.affine(x, &transposed(&weight, [hidden, hidden]), &bias)
}

/// [1, tokens, hidden] -> [1, heads, tokens, head_dim]
fn split_heads(b: &mut Builder, x: &Value, heads: usize, hidden: usize) -> Result<Value> {
    let shape = b.integers(&[1, -1, heads as i64, (hidden / heads) as i64], &[4])?;
    let x = b.op("Reshape", &[x, &shape], &[]);
    Ok(b.transpose(&x, &[0, 2, 1, 3]))
}

/// The columns of `speaker_embeds_layer` that read the speaker, applied to the L2-normalised embedding.
/// -> f32 [1, hidden]
fn speaker_bias(b: &mut Builder, config: &AcousticConfig, speaker: &Value) -> Result<Value> {
    let (hidden, width) = (config.hidden_size, config.speaker_embedding_dim);
    let weight = b.values(&names::weight(names::PRENET_SPEAKER))?;
    let columns: Vec<f32> =
        weight.chunks_exact(hidden + width).flat_map(|row| row[hidden..].iter().copied()).collect();
    let bias = b.values(&names::bias(names::PRENET_SPEAKER))?;
    let attributes = [("axis", Attribute::Int(1)), ("p", Attribute::Int(2))];
    let unit = b.op("LpNormalization", &[speaker], &attributes);
    b.sensitive_affine(&unit, &transposed(&columns, [hidden, width]), &bias)
}
