//! The precision core against values computed by other implementations (`data/precision_vectors.json`, a
//! copy of the groups used here), and where it means to differ from them. What trains is held against the same file in
//! `optimizer.rs`: splits, companded states, FlashAdamW and the loss scale.
//!
//! Where the core means to differ, and the test that holds it to that:
//! - names and modes: [`NAME_DEVIATIONS`];
//! - the f16 scale of a companded group stays in 2^-24..=65504, upstream it becomes 0 or infinite:
//!   `a_guarded_scale_keeps_history_that_the_reference_loses`;
//! - the loss scale stays at 1 or above, upstream it falls to 0: `the_loss_scale_moves_as_torchs`; 20 skipped steps in
//!   a row end a run: `twenty_skipped_steps_in_a_row_end_the_run`; a checkpoint's scale of 0 is not taken:
//!   `a_scale_that_no_gradient_survives_is_not_resumed`;
//! - AdamW over f16 weights is finite from the first step, as only the fused kernel is upstream:
//!   `f16_steps_are_those_of_torchs_fused_kernel`;
//! - autocast follows the CUDA lists on every device, a CPU has lists of its own upstream:
//!   `autocast_answers_as_torchs_cuda_lists_do`.

use std::collections::BTreeMap;
use std::path::Path;

use mezzavoce::error::Error;
use mezzavoce::precision::autocast::{self, Op};
use mezzavoce::precision::cast::{self, Overflow};
use mezzavoce::precision::convert::{Tensor, Value, convert};
use mezzavoce::precision::{Device, Dtype, Precision, Purpose, X86Features, resolve};
use serde_json::Value as Json;

const COPY: &str = include_str!("data/precision_vectors.json");

fn group(name: &str) -> Vec<Json> {
    let vectors: Json = serde_json::from_str(COPY).unwrap();
    let group = vectors[name].as_array().unwrap_or_else(|| panic!("no group {name}")).clone();
    assert!(!group.is_empty(), "{name} is empty");
    group
}

fn hex(json: &Json) -> u32 {
    let text = json.as_str().unwrap_or_else(|| panic!("{json} is no bit pattern"));
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn the_copy_is_what_the_reference_says() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/reference/precision_vectors.json");
    let Ok(reference) = std::fs::read_to_string(&reference) else {
        println!("skipped: {} is not there", reference.display());
        return;
    };
    let reference: Json = serde_json::from_str(&reference).unwrap();
    let copy: Json = serde_json::from_str(COPY).unwrap();
    for (name, group) in copy.as_object().unwrap() {
        assert_eq!(&reference[name], group, "{name}");
    }
}

// Casts. A NaN may carry any payload (`meta.nan`), so only its being NaN and its sign are compared.

/// `encode` and the way back, against the codes and the values of a group's `column`.
fn check_cast(group_name: &str, column: &str, dtype: Dtype, encode: impl Fn(f32) -> u32) {
    let sign = 1 << (dtype.size_bytes() * 8 - 1);
    let decode = |code: u32| {
        let bytes = &code.to_le_bytes()[..dtype.size_bytes()];
        f64::from(cast::to_f32(bytes, dtype).unwrap()[0])
    };
    for vector in group(group_name) {
        let (actual, code) = (encode(f32::from_bits(hex(&vector["in"]))), hex(&vector[column]));
        let value: f64 = vector[format!("{column}_val")].as_str().unwrap().parse().unwrap();
        if value.is_nan() {
            assert!(decode(code).is_nan() && decode(actual).is_nan(), "{actual:#x}: {vector}");
            assert_eq!(actual & sign, code & sign, "{actual:#x}: {vector}");
        } else {
            assert_eq!(actual, code, "{actual:#x}: {vector}");
            assert_eq!(decode(code), value, "{vector}");
        }
    }
}

fn slice_code(dtype: Dtype) -> impl Fn(f32) -> u32 {
    move |value| {
        let bytes = cast::from_f32(&[value], dtype).unwrap();
        bytes.iter().rev().fold(0, |code, &byte| code << 8 | u32::from(byte))
    }
}

#[test]
fn f16_casts_agree_bit_for_bit() {
    check_cast("cast_f32_f16", "out", Dtype::F16, |v| cast::f32_to_f16(v).to_bits().into());
    check_cast("cast_f32_f16", "out", Dtype::F16, slice_code(Dtype::F16));
}

#[test]
fn bf16_casts_agree_bit_for_bit() {
    check_cast("cast_f32_bf16", "out", Dtype::BF16, |v| cast::f32_to_bf16(v).to_bits().into());
    check_cast("cast_f32_bf16", "out", Dtype::BF16, slice_code(Dtype::BF16));
}

#[test]
fn e4m3_casts_agree_bit_for_bit_under_both_overflow_rules() {
    let encode = |overflow| move |v| cast::f32_to_e4m3(v, overflow).into();
    check_cast("cast_f32_e4m3fn", "sat", Dtype::E4M3, encode(Overflow::Saturate));
    check_cast("cast_f32_e4m3fn", "nosat", Dtype::E4M3, encode(Overflow::Ieee));
    check_cast("cast_f32_e4m3fn", "sat", Dtype::E4M3, slice_code(Dtype::E4M3));
}

#[test]
fn e5m2_casts_agree_bit_for_bit_under_both_overflow_rules() {
    let encode = |overflow| move |v| cast::f32_to_e5m2(v, overflow).into();
    check_cast("cast_f32_e5m2", "sat", Dtype::E5M2, encode(Overflow::Saturate));
    check_cast("cast_f32_e5m2", "nosat", Dtype::E5M2, encode(Overflow::Ieee));
    check_cast("cast_f32_e5m2", "sat", Dtype::E5M2, slice_code(Dtype::E5M2));
}

// Batches. Every tensor of the tree holds [0.1, -1.5, 257]; what each dtype makes of it is written out.

fn sample(dtype: Dtype) -> Tensor {
    let data: Vec<u8> = match dtype {
        Dtype::F64 => [0.1_f64, -1.5, 257.0].iter().flat_map(|v| v.to_le_bytes()).collect(),
        Dtype::F32 => [0.1_f32, -1.5, 257.0].iter().flat_map(|v| v.to_le_bytes()).collect(),
        Dtype::F16 => [0x2e66_u16, 0xbe00, 0x5c04].iter().flat_map(|v| v.to_le_bytes()).collect(),
        Dtype::BF16 => [0x3dcd_u16, 0xbfc0, 0x4380].iter().flat_map(|v| v.to_le_bytes()).collect(),
        Dtype::E4M3 => vec![0x1d, 0xbc, 0x78],
        other => (0..3 * other.size_bytes()).map(|byte| byte as u8).collect(),
    };
    Tensor { dtype, shape: vec![3, 1], data }
}

/// The sample of `from` after a cast to `to`, where that is not simply the sample of `to`.
fn cast_sample(from: Dtype, to: Dtype) -> Tensor {
    match (from, to) {
        // e4m3 made 0.1015625 of 0.1 and 256 of 257 before.
        (Dtype::E4M3, Dtype::BF16) => {
            let data = [0x3dd0_u16, 0xbfc0, 0x4380].iter().flat_map(|v| v.to_le_bytes()).collect();
            Tensor { dtype: to, shape: vec![3, 1], data }
        }
        _ => sample(to),
    }
}

fn dtype_named(name: &str) -> Option<Dtype> {
    use Dtype::*;
    [F64, F32, F16, BF16, E4M3, E5M2, C64, I64, I32, I16, I8, U8, Bool]
        .into_iter()
        .find(|dtype| dtype.to_string() == name)
}

/// The tree of a vector. `was` is the tree of its input when this is the output, to tell a cast tensor
/// from a kept one.
fn tree(json: &Json, was: &Json) -> Value<Json> {
    match json {
        Json::Object(map) => {
            Value::Map(map.iter().map(|(key, value)| (key.clone(), tree(value, &was[key]))).collect())
        }
        Json::Array(items) => {
            Value::List(items.iter().enumerate().map(|(i, item)| tree(item, &was[i])).collect())
        }
        Json::String(name) if dtype_named(name).is_some() => {
            let (from, to) = (dtype_named(was.as_str().unwrap()).unwrap(), dtype_named(name).unwrap());
            Value::Tensor(cast_sample(from, to))
        }
        other => Value::Other(other.clone()),
    }
}

#[test]
fn batches_are_converted_as_upstream_converts_them() {
    let vectors = group("convert_input");
    assert_eq!(vectors.len(), 17);
    for vector in vectors {
        let input = tree(&vector["in"], &vector["in"]);
        let target = dtype_named(vector["target"].as_str().unwrap()).unwrap();
        let expected = tree(&vector["out"], &vector["in"]);
        assert_eq!(convert(input, target).unwrap(), expected, "{vector}");
    }
}

#[test]
fn audio_passes_without_a_copy() {
    let audio = sample(Dtype::F32);
    let address = audio.data.as_ptr();
    let batch: Value<()> = Value::Map(BTreeMap::from([("audio".to_owned(), Value::Tensor(audio))]));
    let Value::Map(converted) = convert(batch, Dtype::BF16).unwrap() else { panic!("a map stays one") };
    let Value::Tensor(audio) = &converted["audio"] else { panic!("a tensor stays one") };
    assert_eq!(audio.data.as_ptr(), address);
}

#[test]
fn a_batch_that_cannot_be_cast_is_refused() {
    let short = Tensor { dtype: Dtype::F32, shape: vec![2, 2], data: vec![0; 12] };
    let endless = Tensor { dtype: Dtype::F32, shape: vec![usize::MAX, 2], data: vec![0; 12] };
    for (tensor, target, said) in [
        (short, Dtype::BF16, "12 bytes"),
        (endless, Dtype::BF16, "12 bytes"),
        (sample(Dtype::F32), Dtype::I64, "i64"),
    ] {
        let refused = convert(Value::<()>::Tensor(tensor), target).unwrap_err();
        assert!(
            matches!(refused, Error::InvalidRequest(_)) && refused.to_string().contains(said),
            "{refused}"
        );
    }
}

// Names.

/// Where names are resolved otherwise than upstream resolves them: the name, ours, and why.
const NAME_DEVIATIONS: [(&str, &str, &str); 7] = [
    ("fp16-mixed", "16-mixed", "the one spelling missing beside bf16-mixed and fp16-true; unambiguous"),
    ("16-true", "fp16-true, warned", "upstream this spelling loses the audio guard; nobody wants that"),
    ("fp16-automodel", "fp16-flash, warned", "an alias of a framework's own, silent upstream"),
    ("bf16-automodel", "bf16-flash, warned", "newer upstream casts no weights under this name"),
    ("64", "refused", "no kernel of the engine computes in 64 bits"),
    ("transformer-engine", "refused", "needs NVIDIA's Transformer Engine"),
    ("16-mixed", "16-mixed on a CPU", "upstream makes it bf16-mixed; f16 is the half an x86 CPU caches"),
];

fn ours(name: &str) -> String {
    match Precision::parse(name) {
        Ok((precision, None)) => precision.to_string(),
        Ok((precision, Some(warning))) => {
            assert!(warning.contains(&format!("`{name}`")), "{warning}");
            format!("{precision}, warned")
        }
        Err(_) => "refused".to_owned(),
    }
}

#[test]
fn names_resolve_as_upstream_except_where_we_say_so() {
    let deviations: BTreeMap<&str, &str> = NAME_DEVIATIONS.map(|(name, ours, _)| (name, ours)).into();
    for vector in group("precision_resolve") {
        let name = match &vector["in"] {
            Json::Null => {
                assert_eq!(Precision::default(), Precision::F32);
                continue;
            }
            Json::Number(number) => number.to_string(),
            name => name.as_str().unwrap().to_owned(),
        };
        let upstream = match vector["resolved"].as_str() {
            None => "refused".to_owned(),
            Some("32-true") => "32".to_owned(),
            Some(mode) if vector["warning"] == true => format!("{mode}, warned"),
            Some(mode) => mode.to_owned(),
        };
        match deviations.get(name.as_str()) {
            Some(expected) if !expected.ends_with("on a CPU") => {
                assert_ne!(upstream, *expected, "{name} is no deviation");
                assert_eq!(ours(&name), *expected, "{name}");
            }
            _ => assert_eq!(ours(&name), upstream, "{name}"),
        }
    }
}

#[test]
fn f16_mixed_stays_f16_mixed_on_a_cpu() {
    let [vector] = group("precision_resolve_cpu").try_into().unwrap();
    assert_eq!(vector["resolved"], "bf16-mixed", "upstream still differs");
    let precision: Precision = vector["in"].as_str().unwrap().parse().unwrap();
    let cpu = Device::x86_64_cpu(X86Features { avx2: true, ..Default::default() });
    let plan = resolve(Purpose::Inference, precision, Dtype::F32, &cpu).unwrap();
    assert_eq!((plan.precision, plan.decoder.executed.kv_cache), (Precision::F16Mixed, Dtype::F16));
}

#[test]
fn every_alias_is_accepted() {
    for (names, precision) in [
        (&["32", "32-true"][..], Precision::F32),
        (&["16", "16-mixed", "fp16-mixed"], Precision::F16Mixed),
        (&["bf16", "bf16-mixed"], Precision::BF16Mixed),
        (&["fp16-true", "16-true"], Precision::F16True),
        (&["bf16-true"], Precision::BF16True),
        (&["fp16-flash", "fp16-automodel"], Precision::F16Flash),
        (&["bf16-flash", "bf16-automodel"], Precision::BF16Flash),
    ] {
        for name in names {
            assert_eq!(name.parse::<Precision>().unwrap(), precision, "{name}");
        }
        assert_eq!(Precision::parse(&precision.to_string()).unwrap(), (precision, None));
    }
}

#[test]
fn every_other_name_is_refused_with_the_names_there_are() {
    let refused = [
        ("", "not known"),
        (" 32", "not known"),
        ("32 ", "not known"),
        ("BF16-FLASH", "not known"),
        ("Bf16", "not known"),
        ("half", "not known"),
        ("fp8", "not known"),
        ("bf32", "not known"),
        ("fp16", "not known"),
        ("fp32", "not known"),
        ("bf16_mixed", "not known"),
        ("bf16-flash\n", "not known"),
        ("64", "32 bits"),
        ("64-true", "32 bits"),
        ("transformer-engine", "Transformer Engine"),
        ("transformer-engine-float16", "Transformer Engine"),
    ];
    for (name, reason) in refused {
        let error = Precision::parse(name).unwrap_err();
        assert!(matches!(error, Error::InvalidRequest(_)));
        let message = error.to_string();
        assert!(message.contains(&format!("{name:?}")) && message.contains(reason), "{message}");
        let (_, accepted) = message.split_once("accepted: ").unwrap();
        let accepted: Vec<&str> = accepted.split(", ").collect();
        assert_eq!(accepted.len(), 14, "{message}");
        assert!(accepted.iter().all(|name| Precision::parse(name).is_ok()), "{message}");
    }
}

// Autocast.

/// The operations of a row of the lists, and what goes into them: `h` is the half tensor, `s` the f32 one.
fn row(name: &str) -> (&'static [Op], &'static str) {
    match name {
        "linear(s)" => (&[Op::Linear], "s"),
        "conv1d(s)" => (&[Op::Conv1d], "s"),
        "conv_transpose1d(s)" => (&[Op::ConvTranspose1d], "s"),
        "matmul(s,s)" => (&[Op::MatMul], "ss"),
        "bmm(s,s)" => (&[Op::BatchMatMul], "ss"),
        "baddbmm" => (&[Op::AddBatchMatMul], "sss"),
        "einsum" => (&[Op::Einsum], "ss"),
        "sdpa" => (&[Op::Attention], "sss"),
        "prelu" => (&[Op::Prelu], "ss"),
        "lstm_cell/gru_cell" => (&[Op::RecurrentCell], "ss"),
        "softmax(h)" => (&[Op::Softmax], "h"),
        "log_softmax(h)" => (&[Op::LogSoftmax], "h"),
        "layer_norm(h)" => (&[Op::LayerNorm], "h"),
        "rms_norm(h)" => (&[Op::RmsNorm], "h"),
        "group_norm(h)" => (&[Op::GroupNorm], "h"),
        "exp/log/log1p/expm1/pow/rsqrt/reciprocal/softplus(h)" => (&[Op::Elementary], "h"),
        "cumsum/cumprod/prod/sum(h)" => (&[Op::Accumulation], "h"),
        "norm/vector_norm/logsumexp/cosine_similarity(h)" => (&[Op::Norm], "h"),
        "mse/l1/smooth_l1/huber/nll/kl_div/bce_with_logits(h)" => (&[Op::Loss], "hh"),
        "upsample/interpolate(h)" => (&[Op::Interpolate], "h"),
        "binary_cross_entropy" => (&[Op::BinaryCrossEntropy], "hh"),
        "batch_norm(h, f32 params)" => (&[Op::BatchNorm], "hss"),
        "mean/var(h)" => (&[Op::Mean], "h"),
        "relu/leaky_relu/gelu/tanh/sigmoid/dropout/embedding/add_same_dtype" => {
            (&[Op::Pointwise, Op::Combine], "h")
        }
        "add/mul/cat(h,s)" => (&[Op::Combine], "hs"),
        "addcmul/addcdiv/dot/index_put/scatter_add(h,s)" => (&[Op::Scatter], "hs"),
        "in-place or out= ops" => (&[Op::InPlace], "h"),
        other => panic!("{other} is not in the lists"),
    }
}

#[test]
fn autocast_answers_as_torchs_cuda_lists_do() {
    let vectors: Json = serde_json::from_str(COPY).unwrap();
    let lists = vectors["autocast_out_dtype_cuda_policy"].as_object().unwrap();
    assert_eq!(lists.len(), 28);
    for (name, expected) in lists.iter().filter(|(name, _)| *name != "inputs") {
        let (ops, inputs) = row(name);
        for half in [Dtype::F16, Dtype::BF16] {
            let dtypes: Vec<Dtype> =
                inputs.chars().map(|c| if c == 'h' { half } else { Dtype::F32 }).collect();
            let expected = match expected.as_str().unwrap() {
                "half" | "input dtype" | "no autocast" => Some(half),
                "f32" | "widest = f32" => Some(Dtype::F32),
                "error" => None,
                other => panic!("{other}"),
            };
            for op in ops {
                assert_eq!(autocast::output(*op, &dtypes, half), expected, "{name} {half}");
            }
        }
    }
    // What keeps its input's dtype keeps f32 too.
    for op in [Op::Pointwise, Op::Mean, Op::InPlace, Op::Combine] {
        assert_eq!(autocast::output(op, &[Dtype::F32], Dtype::BF16), Some(Dtype::F32), "{op:?}");
    }
}

// Pathologies: what half formats lose. The steps of an optimizer under them are in `optimizer.rs`.

#[test]
fn half_formats_lose_what_they_are_said_to_lose() {
    let vectors: Json = serde_json::from_str(COPY).unwrap();
    let cases = &vectors["pathologies"];
    assert_eq!(cases.as_object().unwrap().len(), 4);
    let decay = &cases["bf16_beta2_0.999"];
    assert_eq!(
        u32::from(cast::f32_to_bf16(f32::from_bits(hex(&decay["in"]))).to_bits()),
        hex(&decay["bf16"])
    );
    let lost = &cases["bf16_update_lost"];
    let number = |name: &str| lost[name].as_f64().unwrap() as f32;
    let moved = cast::f32_to_bf16(number("w") - number("update"));
    assert_eq!(moved.to_f32(), number("result"), "a step of a thousandth down is rounded away");
    let eps = &cases["f16_eps"];
    let eps = (eps["in"].as_f64().unwrap() as f32, hex(&eps["f16"]));
    assert_eq!(u32::from(cast::f32_to_f16(eps.0).to_bits()), eps.1);
}
