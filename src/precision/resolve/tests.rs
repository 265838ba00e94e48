//! Plans for machines that are not here.

use super::*;
use crate::precision::X86Features;

fn plan(purpose: Purpose, precision: Precision, stored: Dtype, device: &Device) -> Plan {
    resolve(purpose, precision, stored, device).unwrap()
}

fn x86_avx2() -> Device {
    Device::x86_64_cpu(X86Features { avx2: true, ..Default::default() })
}

fn x86_avx512_fp16() -> Device {
    Device::x86_64_cpu(X86Features {
        avx2: true,
        avx512: true,
        avx512_bf16: true,
        avx512_fp16: true,
        amx: true,
    })
}

/// Weights, activations, accumulation, KV cache, output.
fn five(d: Dtypes) -> String {
    [d.weights, d.activations, d.accumulation, d.kv_cache, d.output].map(|d| d.to_string()).join(" ")
}

const F32: &str = "f32 f32 f32 f32 f32";
const F16_CACHE: &str = "f32 f32 f32 f16 f32";
/// In the order of `Precision::ALL`: 32, 16-mixed, bf16-mixed, fp16-true, bf16-true, both flash modes.
const REQUESTED: [&str; 7] = [
    F32,
    "f32 f16 f32 f16 f32",
    "f32 bf16 f32 bf16 f32",
    "f16 f16 f32 f16 f16",
    "bf16 bf16 f32 bf16 bf16",
    "f16 f16 f32 f16 f16",
    "bf16 bf16 f32 bf16 bf16",
];
const CPU: [&str; 7] = [F32, F16_CACHE, F32, F16_CACHE, F32, F16_CACHE, F32];
/// f16 as requested, bf16 as f32.
const F16_ONLY: [&str; 7] = [F32, REQUESTED[1], F32, REQUESTED[3], F32, REQUESTED[5], F32];

#[test]
fn a_plan_executes_what_the_device_can_and_says_what_was_asked() {
    for (device, expected) in [
        (x86_avx2(), CPU),
        (x86_avx512_fp16(), CPU),
        (Device::x86_64_cpu(X86Features::default()), CPU),
        (Device::aarch64_cpu(false), CPU),
        (Device::aarch64_cpu(true), F16_ONLY),
        (Device::cuda("Tesla M40", (5, 2)), [F32; 7]),
        (Device::cuda("Tesla P100", (6, 0)), F16_ONLY),
        (Device::cuda("Tesla T4", (7, 5)), F16_ONLY),
        (Device::cuda("A100", (8, 0)), REQUESTED),
        (Device::cuda("L4", (8, 9)), REQUESTED),
        (Device::cuda("H100", (9, 0)), REQUESTED),
    ] {
        for (i, precision) in Precision::ALL.into_iter().enumerate() {
            let plan = plan(Purpose::Inference, precision, Dtype::F32, &device);
            for stage in [plan.encoder, plan.decoder] {
                assert_eq!(five(stage.requested), REQUESTED[i], "{plan}");
                assert_eq!(five(stage.executed), expected[i], "{plan}");
                assert_eq!(stage.stored, Dtype::F32);
            }
            assert_eq!([plan.vocoder.requested, plan.vocoder.executed].map(five), [F32; 2], "{plan}");
            assert!(plan.reasons[0].contains("vocoder is f32"), "{plan}");
            assert_eq!(plan.training, None);
            // Whatever is not executed as asked has a reason that names the half format.
            if let Some(half) = precision.half().filter(|_| expected[i] != REQUESTED[i]) {
                assert!(plan.reasons[1..].iter().any(|reason| reason.contains(&half.to_string())), "{plan}");
            }
        }
    }
}

#[test]
fn fp8_products_begin_at_compute_capability_8_9() {
    for (capability, fp8) in
        [((8, 0), false), ((8, 6), false), ((8, 9), true), ((9, 0), true), ((10, 0), true)]
    {
        assert_eq!(Device::cuda("GPU", capability).fp8_matmul, fp8, "{capability:?}");
    }
}

#[test]
fn this_cpu_keeps_its_kv_cache_in_f16_and_multiplies_f32() {
    let device = Device::this_cpu();
    assert!(device.name.contains("CPU"), "{}", device.name);
    assert!(!device.multiplies(Dtype::F16) && !device.multiplies(Dtype::BF16), "{device:?}");
    assert_eq!(device.caches(Dtype::F16), cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
}

fn check_reason(precision: Precision, stored: Dtype, device: &Device, said: &str, expected: bool) {
    let plan = plan(Purpose::Inference, precision, stored, device);
    assert_eq!(plan.reasons.iter().any(|reason| reason.contains(said)), expected, "{said}: {plan}");
}

#[test]
fn a_plan_gives_its_reasons() {
    use Dtype::{BF16, F16, F32};
    let (old, new) = (x86_avx2(), x86_avx512_fp16());
    let (t4, a100) = (Device::cuda("T4", (7, 5)), Device::cuda("A100", (8, 0)));
    for (precision, stored, device, said, expected) in [
        (Precision::F32, F16, &old, "does not bring back", true),
        (Precision::BF16Mixed, BF16, &old, "does not bring back", true),
        (Precision::F16True, BF16, &old, "range", true),
        (Precision::F16True, F16, &old, "does not bring back", false),
        (Precision::BF16True, F32, &old, "does not bring back", false),
        (Precision::F16True, F32, &old, "saves no weight memory", true),
        (Precision::F16True, F32, &a100, "saves no weight memory", false),
        (Precision::F16True, F32, &old, "KV cache is f16", true),
        (Precision::BF16True, F32, &old, "KV cache is f32", true),
        (Precision::BF16Mixed, F32, &old, "computes what 32 computes", true),
        (Precision::F16Mixed, F32, &old, "computes what 32 computes", false),
        (Precision::F16True, F32, &new, "leaves AVX512-FP16 unused", true),
        (Precision::BF16True, F32, &new, "leaves AVX512-BF16, AMX unused", true),
        (Precision::F16True, F32, &old, "unused", false),
        (Precision::BF16True, F32, &t4, "needs compute capability 8.0, this GPU has 7.5", true),
        (Precision::F16True, F32, &t4, "compute capability 8.0", false),
        (Precision::F32, F32, &a100, "TF32", true),
        (Precision::F32, F32, &t4, "TF32", false),
        (Precision::BF16Flash, F32, &a100, "in training only", true),
    ] {
        check_reason(precision, stored, device, said, expected);
    }
}

#[test]
fn a_vocoder_stored_in_half_is_reported_as_such() {
    let plan =
        plan(Purpose::Inference, Precision::F32, Dtype::F32, &x86_avx2()).with_vocoder_stored(Dtype::F16);
    assert_eq!((plan.vocoder.stored, five(plan.vocoder.executed)), (Dtype::F16, F32.to_owned()));
    assert!(plan.reasons.last().unwrap().contains("vocoder checkpoint is stored as f16"), "{plan}");
}

#[test]
fn weights_that_are_not_real_numbers_have_no_plan() {
    for stored in [Dtype::I8, Dtype::Bool, Dtype::C64] {
        let refused = resolve(Purpose::Inference, Precision::F32, stored, &x86_avx2()).unwrap_err();
        assert!(refused.to_string().contains(&stored.to_string()), "{refused}");
    }
}

#[test]
fn training_follows_the_mode_tables() {
    let row = |gradients, master_weights, optimizer_states, loss_scaling, batch_conversion| TrainingPlan {
        gradients,
        master_weights,
        optimizer_states,
        loss_scaling,
        batch_conversion,
    };
    use Dtype::{BF16, F16, F32};
    use MasterWeights::{None as Nothing, Residual24, SameAsWeights};
    use OptimizerStates::{Companded8, Plain};
    let expected = [
        row(F32, SameAsWeights, Plain(F32), LossScaling::None, false),
        row(F32, SameAsWeights, Plain(F32), LossScaling::Dynamic, false),
        row(F32, SameAsWeights, Plain(F32), LossScaling::None, false),
        row(F16, Nothing, Plain(F16), LossScaling::None, true),
        row(BF16, Nothing, Plain(BF16), LossScaling::None, true),
        row(F16, Residual24, Companded8, LossScaling::None, true),
        row(BF16, Residual24, Companded8, LossScaling::None, true),
    ];
    // A CPU trains in every format, slowly; a GPU in those it multiplies.
    for (device, bf16_is_real) in [(x86_avx2(), true), (Device::cuda("T4", (7, 5)), false)] {
        for (precision, expected) in Precision::ALL.into_iter().zip(expected) {
            let plan = plan(Purpose::Training, precision, Dtype::F32, &device);
            assert_eq!(plan.training, Some(expected), "{plan}");
            let real = precision.half() != Some(BF16) || bf16_is_real;
            let activations = precision.half().filter(|_| real).unwrap_or(F32);
            assert_eq!(plan.decoder.executed.activations, activations, "{plan}");
            assert_eq!(plan.decoder.executed.accumulation, F32, "{plan}");
        }
    }
}

#[test]
fn a_plan_reads_as_a_table() {
    let plan = plan(Purpose::Inference, Precision::F16True, Dtype::BF16, &x86_avx2());
    let table = "\
precision fp16-true on x86-64 CPU (AVX2)
stage               weights  activations  accumulation  KV cache  output
encoder  requested  f16      f16          f32           f16       f16
         stored     bf16
         executed   f32      f32          f32           f16       f32
decoder  requested  f16      f16          f32           f16       f16
         stored     bf16
         executed   f32      f32          f32           f16       f32
vocoder  requested  f32      f32          f32           -         f32
         stored     f32
         executed   f32      f32          f32           -         f32
- ";
    assert!(plan.to_string().starts_with(table), "{plan}");
    assert_eq!(
        plan.summary(),
        "precision fp16-true on x86-64 CPU (AVX2): stored bf16, weights f32 (asked f16), activations f32 \
         (asked f16), accumulation f32, KV cache f16, output f32 (asked f16), vocoder f32"
    );
}
