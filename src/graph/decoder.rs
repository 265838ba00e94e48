//! One step of the mel decoder as a graph: the newest frame of every stream in, its next frames and stop
//! logits out. Rows of a batch are streams, each at its own position and length.
//!
//! Self-attention keys and values are appended in place: the cache that goes in under [`past_key`] comes out
//! under [`present_key`] and must be bound to the same memory. Never sees more than one frame a stream.

use super::layers::{sinusoids, transposed};
use super::{Attribute, Builder, Dim, Value};
use crate::error::Result;
use crate::precision::{Dtype, StagePlan};
use crate::voice::config::AcousticConfig;
use crate::voice::{Voice, names};

/// f32 [batch, n_mels]: the last frame of the previous step
pub const FRAME: &str = "frame";
/// i64 [batch]: how many steps the stream has made
pub const POSITION: &str = "position";
/// f32 [batch, hidden], as the encoder graph yields it
pub const SPEAKER_BIAS: &str = super::encoder::SPEAKER_BIAS;
/// i32 [batch]: filled cache positions before this step
pub const PAST_LENGTH: &str = "past_length";
/// i32 [1]: the longest stream's length after this step
pub const TOTAL_LENGTH: &str = "total_length";
/// i32 [batch, tokens]: 1 where the sentence has a symbol, 0 where it is padded
pub const CROSS_MASK: &str = "cross_mask";
/// f32 [batch, reduction_factor · n_mels]
pub const FRAMES: &str = "frames";
/// f32 [batch, reduction_factor]
pub const STOP_LOGITS: &str = "stop_logits";

/// f32 [batch, units]: 0 drops a unit of the prenet layer, 1 / (1 − p) keeps it
pub fn keep_mask(layer: usize) -> String {
    format!("keep_mask.{layer}")
}

/// KV dtype [batch, heads, capacity, head_dim]
pub fn past_key(layer: usize) -> String {
    format!("past_key.{layer}")
}

/// KV dtype [batch, heads, capacity, head_dim]
pub fn past_value(layer: usize) -> String {
    format!("past_value.{layer}")
}

/// KV dtype [batch, heads, capacity, head_dim]: the same memory as [`past_key`]
pub fn present_key(layer: usize) -> String {
    format!("present_key.{layer}")
}

/// KV dtype [batch, heads, capacity, head_dim]: the same memory as [`past_value`]
pub fn present_value(layer: usize) -> String {
    format!("present_value.{layer}")
}

/// Builds the decoder step of `voice` as `plan` says, for sentences of `positions` steps at most.
pub fn decoder_step(voice: &Voice, plan: StagePlan, positions: usize) -> Result<Vec<u8>> {
    let config = &voice.config;
    let (mels, batch) = (config.num_mel_bins, Dim::Free("batch"));
    let mut builder = Builder::new("decoder_step", &voice.acoustic, plan);
    let b = &mut builder;
    let lengths = Lengths {
        past: b.input(PAST_LENGTH, Dtype::I32, &[batch])?,
        total: b.input(TOTAL_LENGTH, Dtype::I32, &[Dim::Fixed(1)])?,
        cross_mask: b.input(CROSS_MASK, Dtype::I32, &[batch, Dim::Free("tokens")])?,
    };
    let mut x = prenet(b, config, positions)?;
    for layer in 0..config.decoder_layers {
        x = decoder_layer(b, config, &x, &lengths, layer)?;
    }

    let (hidden, r) = (config.hidden_size, config.reduction_factor);
    let flat = b.integers(&[-1, hidden as i64], &[2])?;
    let x = b.op("Reshape", &[&x, &flat], &[]);
    let narrow = b.narrowed(&x)?;
    let frames = b.linear(&narrow, names::FEAT_OUT, [mels * r, hidden])?;
    let frames = b.widened(&frames)?;
    b.output(FRAMES, &frames, Dtype::F32, &[batch, Dim::Fixed(mels * r)])?;
    let weight = transposed(&b.values(&names::weight(names::PROB_OUT))?, [r, hidden]);
    let bias = b.values(&names::bias(names::PROB_OUT))?;
    let stop = b.sensitive_affine(&x, &weight, &bias)?;
    b.output(STOP_LOGITS, &stop, Dtype::F32, &[batch, Dim::Fixed(r)])?;
    Ok(builder.finish())
}

struct Lengths {
    past: Value,
    total: Value,
    cross_mask: Value,
}

/// Frame, position and speaker as the first layer's input. -> f32 [batch, 1, hidden]
///
/// The published prenet ends in `relu(W_s · [W_f·x + b_f + α·pe(position); speaker] + b_s)`. No step changes
/// the speaker's part, which arrives as [`SPEAKER_BIAS`], nor `W_h · (b_f + α·pe)`, which is a table.
fn prenet(b: &mut Builder, config: &AcousticConfig, positions: usize) -> Result<Value> {
    let (hidden, units, batch) = (config.hidden_size, config.speech_decoder_prenet_units, Dim::Free("batch"));
    let mut x = b.input(FRAME, Dtype::F32, &[batch, Dim::Fixed(config.num_mel_bins)])?;
    let position = b.input(POSITION, Dtype::I64, &[batch])?;
    let speaker = b.input(SPEAKER_BIAS, Dtype::F32, &[batch, Dim::Fixed(hidden)])?;
    let mut width = config.num_mel_bins;
    for layer in 0..config.speech_decoder_prenet_layers {
        let keep = b.input(&keep_mask(layer), Dtype::F32, &[batch, Dim::Fixed(units)])?;
        x = b.narrowed(&x)?;
        x = b.linear(&x, &names::prenet_layer(layer), [units, width])?;
        x = b.op("Relu", &[&x], &[]);
        x = b.widened(&x)?;
        x = b.op("Mul", &[&x, &keep], &[]);
        width = units;
    }
    let (product, table) = folded_final_layer(b, config, positions)?;
    x = b.narrowed(&x)?;
    let weight = b.weight(&product, &[units, hidden])?;
    x = b.op("MatMul", &[&x, &weight], &[]);
    x = b.widened(&x)?;
    let table = b.constant(&table, &[positions, hidden])?;
    let place = b.op("Gather", &[&table, &position], &[]);
    let place = b.op("Add", &[&place, &speaker], &[]);
    x = b.op("Add", &[&x, &place], &[]);
    x = b.op("Relu", &[&x], &[]);
    let axis = b.integers(&[1], &[1])?;
    Ok(b.op("Unsqueeze", &[&x, &axis], &[]))
}

/// `(W_h · W_f)ᵀ` [units, hidden] and the table `W_h · (b_f + α·pe(position))` [positions, hidden], where `W_h`
/// is the part of `speaker_embeds_layer` that reads the prenet.
fn folded_final_layer(
    b: &Builder,
    config: &AcousticConfig,
    positions: usize,
) -> Result<(Vec<f32>, Vec<f32>)> {
    let (hidden, units) = (config.hidden_size, config.speech_decoder_prenet_units);
    let joint = b.values(&names::weight(names::PRENET_SPEAKER))?;
    let joint_width = hidden + config.speaker_embedding_dim;
    let reads_prenet: Vec<f32> =
        joint.chunks_exact(joint_width).flat_map(|row| row[..hidden].iter().copied()).collect();
    let reads_prenet = transposed(&reads_prenet, [hidden, hidden]); // [hidden in, hidden out]

    let weight = b.values(&names::weight(names::PRENET_FINAL))?; // [hidden, units]
    let product = matrix_product(&transposed(&weight, [hidden, units]), &reads_prenet, hidden);

    let bias = b.values(&names::bias(names::PRENET_FINAL))?;
    let alpha = b.values(names::DECODER_ALPHA)?[0];
    let mut places = sinusoids(positions, hidden, alpha);
    for row in places.chunks_exact_mut(hidden) {
        row.iter_mut().zip(&bias).for_each(|(value, bias)| *value += bias);
    }
    Ok((product, matrix_product(&places, &reads_prenet, hidden)))
}

/// `a · b` of row-major [any, width] and [width, width].
fn matrix_product(a: &[f32], b: &[f32], width: usize) -> Vec<f32> {
    let mut out = vec![0.0; a.len()];
    for (row, sums) in a.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        for (&factor, line) in row.iter().zip(b.chunks_exact(width)) {
            sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += factor * value);
        }
    }
    out
}

/// One post-norm layer: self-attention over the cache, cross-attention over the sentence, feed-forward.
fn decoder_layer(
    b: &mut Builder,
    config: &AcousticConfig,
    x: &Value,
    lengths: &Lengths,
    layer: usize,
) -> Result<Value> {
    let (hidden, eps) = (config.hidden_size, config.layer_norm_eps);
    let prefix = names::decoder_layer(layer);

    let attention = format!("{prefix}.{}", names::SELF_ATTENTION);
    let y = self_attention(b, config, x, lengths, &attention, layer)?;
    let norm = format!("{prefix}.{}", names::SELF_ATTENTION_NORM);
    let x = b.residual_norm(&y, x, &format!("{attention}.out_proj"), &norm, hidden, eps)?;

    let attention = format!("{prefix}.{}", names::CROSS_ATTENTION);
    let y = cross_attention(b, config, &x, lengths, &attention, layer)?;
    let norm = format!("{prefix}.{}", names::CROSS_ATTENTION_NORM);
    let x = b.residual_norm(&y, &x, &format!("{attention}.out_proj"), &norm, hidden, eps)?;

    b.feed_forward(&x, &prefix, hidden, config.decoder_ffn_dim, eps)
}

/// Appends this step's key and value to the cache and attends over it; the output projection lacks its bias.
fn self_attention(
    b: &mut Builder,
    config: &AcousticConfig,
    x: &Value,
    lengths: &Lengths,
    prefix: &str,
    layer: usize,
) -> Result<Value> {
    let (hidden, heads) = (config.hidden_size, config.decoder_attention_heads);
    let kv_cache = b.kv_cache();
    let cache = [Dim::Free("batch"), Dim::Fixed(heads), Dim::Free("capacity"), Dim::Fixed(hidden / heads)];
    let past_k = b.input(&past_key(layer), kv_cache, &cache)?;
    let past_v = b.input(&past_value(layer), kv_cache, &cache)?;
    let x = b.narrowed(x)?;
    let qkv = query_key_value(b, &x, prefix, hidden)?;
    let qkv = b.cached(&qkv)?;
    let none = Value::none();
    let inputs = [&qkv, &none, &none, &past_k, &past_v, &lengths.past, &lengths.total];
    let heads = heads as i64;
    let attributes = [("num_heads", Attribute::Int(heads)), ("kv_num_heads", Attribute::Int(heads))];
    let outputs = b.fused("GroupQueryAttention", &inputs, &attributes, 3);
    b.output(&present_key(layer), &outputs[1], kv_cache, &cache)?;
    b.output(&present_value(layer), &outputs[2], kv_cache, &cache)?;
    let y = b.uncached(&outputs[0])?;
    b.linear_without_bias(&y, &format!("{prefix}.out_proj"), [hidden, hidden])
}

/// The three projections as one matrix. -> activation dtype [batch, 1, 3 · hidden]
fn query_key_value(b: &mut Builder, x: &Value, prefix: &str, hidden: usize) -> Result<Value> {
    let (mut weight, mut bias) = (Vec::new(), Vec::new());
    for projection in ["q_proj", "k_proj", "v_proj"] {
        let projection = format!("{prefix}.{projection}");
        weight.extend(b.values(&names::weight(&projection))?);
        bias.extend(b.values(&names::bias(&projection))?);
    }
    b.affine(x, &transposed(&weight, [3 * hidden, hidden]), &bias)
}

/// Attends over the encoder's keys and values of each stream's sentence; the projection lacks its bias.
fn cross_attention(
    b: &mut Builder,
    config: &AcousticConfig,
    x: &Value,
    lengths: &Lengths,
    prefix: &str,
    layer: usize,
) -> Result<Value> {
    let (hidden, heads) = (config.hidden_size, config.decoder_attention_heads);
    let kv_cache = b.kv_cache();
    let cache = [Dim::Free("batch"), Dim::Fixed(heads), Dim::Free("tokens"), Dim::Fixed(hidden / heads)];
    let key = b.input(&super::encoder::cross_key(layer), kv_cache, &cache)?;
    let value = b.input(&super::encoder::cross_value(layer), kv_cache, &cache)?;
    let x = b.narrowed(x)?;
    let query = b.linear(&x, &format!("{prefix}.q_proj"), [hidden, hidden])?;
    let query = b.cached(&query)?;
    let none = Value::none();
    let inputs = [&query, &key, &value, &none, &lengths.cross_mask];
    let y =
        b.fused("MultiHeadAttention", &inputs, &[("num_heads", Attribute::Int(heads as i64))], 1).remove(0);
    let y = b.uncached(&y)?;
    b.linear_without_bias(&y, &format!("{prefix}.out_proj"), [hidden, hidden])
}
