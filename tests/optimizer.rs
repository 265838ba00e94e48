//! The optimizers against values computed by other implementations (`data/precision_vectors.json`), and where they
//! mean to differ from them.
#![cfg(feature = "finetune")]

use half::{bf16, f16};
use mezzavoce::finetune::optimizer::companding::{
    compress_momentum, compress_variance, expand_momentum, expand_variance,
};
use mezzavoce::finetune::optimizer::residual::{
    Narrow, join_24, join_32, join_exact, split_24, split_32, split_exact,
};
use mezzavoce::finetune::optimizer::{AdamW, Moments, Residual, Rest, Slot, Values};
use mezzavoce::precision::scaler::{LossScaler, ScalerRule};
use mezzavoce::precision::{Dtype, MasterWeights, OptimizerStates};
use serde_json::Value as Json;

const COPY: &str = include_str!("data/precision_vectors.json");

fn group(name: &str) -> Json {
    let vectors: Json = serde_json::from_str(COPY).unwrap();
    assert!(vectors[name].is_array() || vectors[name].is_object(), "no group {name}");
    vectors[name].clone()
}

fn rows(name: &str) -> Vec<Json> {
    group(name).as_array().unwrap().clone()
}

fn bits(json: &Json) -> u32 {
    u32::from_str_radix(json.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn all<T>(json: &Json, read: impl Fn(&Json) -> T) -> Vec<T> {
    json.as_array().unwrap().iter().map(read).collect()
}

fn f32s(json: &Json) -> Vec<f32> {
    all(json, |v| f32::from_bits(bits(v)))
}

fn bf16s(json: &Json) -> Vec<bf16> {
    all(json, |v| bf16::from_bits(bits(v) as u16))
}

fn f16s(json: &Json) -> Vec<f16> {
    all(json, |v| f16::from_bits(bits(v) as u16))
}

fn same_bits(found: f32, expected: u32, row: &Json) {
    let expected = f32::from_bits(expected);
    assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{found:e}: {row}");
}

fn check_split<W: Narrow + Into<f32>, R: Copy + Into<i64>>(
    name: &str,
    split: fn(f32) -> (W, R),
    join: fn(W, R) -> f32,
    code: fn(W) -> u16,
) {
    for row in rows(name) {
        let (narrow, residual) = split(f32::from_bits(bits(&row["in"])));
        let expected = bits(&row["narrow"]) as u16;
        assert!(code(narrow) == expected || narrow.into().is_nan(), "{:#x}: {row}", code(narrow));
        assert_eq!(residual.into(), row["ecc"].as_i64().unwrap(), "{row}");
        same_bits(join(narrow, residual), bits(&row["joined"]), &row);
    }
}

#[test]
fn weights_split_and_join_bit_for_bit() {
    check_split::<bf16, i8>("split_bf16_i8", split_24, join_24, bf16::to_bits);
    check_split::<bf16, i16>("split_bf16_i16", split_32, join_32, bf16::to_bits);
    check_split::<f16, i8>("split_f16_i8", split_24, join_24, f16::to_bits);
}

#[test]
fn the_exact_split_loses_nothing() {
    for row in rows("split_exact_te_remainder") {
        let (narrow, residual) = split_exact(f32::from_bits(bits(&row["in"])));
        assert_eq!(narrow.to_bits(), bits(&row["bf16"]) as u16, "{row}");
        assert_eq!(i64::from(residual), row["rem_i16"].as_i64().unwrap(), "{row}");
        same_bits(join_exact(narrow, residual), bits(&row["joined"]), &row);
    }
    let mut state = 1_u32;
    for _ in 0..1_000_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = f32::from_bits(state);
        let (narrow, residual) = split_exact(value);
        let joined = join_exact(narrow, residual);
        assert!(joined.to_bits() == state || value.is_nan() && joined.is_nan(), "{state:#x}");
    }
}

#[test]
fn more_bits_are_never_further_from_the_weight() {
    let (mut worst_24, mut exceptions) = (0_u32, 0);
    for mantissa in (0..1 << 23).step_by(97) {
        let value = f32::from_bits(127 << 23 | mantissa);
        let ulps = |joined: f32| joined.to_bits().abs_diff(value.to_bits());
        let (narrow, residual) = split_24::<bf16>(value);
        let (narrow_32, residual_32) = split_32::<bf16>(value);
        let (by_24, by_32) = (ulps(join_24(narrow, residual)), ulps(join_32(narrow_32, residual_32)));
        worst_24 = worst_24.max(by_24);
        exceptions += u32::from(by_32 > by_24);
    }
    // The specification measured 258 units at most over all mantissas, and upstream's own test allows 32 exceptions.
    assert!(worst_24 <= 258 && exceptions <= 32, "{worst_24} units, {exceptions} exceptions");
}

/// Groups whose scale the reference loses or poisons; ours are held to what f16 can say.
fn is_guarded(row: &Json) -> bool {
    let values = f32s(&row["in"]);
    let variance = !row["q"].as_array().unwrap().iter().any(|q| q.as_i64().unwrap() < 0)
        && row["scale_f16"].as_array().unwrap().len() == 1
        && row["note"].as_str().unwrap().contains("sqrt");
    let largest = values.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
    let largest = if variance { largest.sqrt() } else { largest };
    largest > 0.0 && !(2.0_f32.powi(-24)..=65504.0).contains(&largest)
}

fn check_codec(name: &str, compress: impl Fn(&[f32], usize) -> (Vec<i64>, Vec<f16>, Vec<f32>)) {
    let mut guarded = 0;
    for row in rows(name) {
        let values = f32s(&row["in"]);
        let (codes, scales, expanded) = compress(&values, values.len());
        if is_guarded(&row) {
            guarded += 1;
            assert!(expanded.iter().all(|v| v.is_finite()), "{row}");
            continue;
        }
        assert_eq!(codes, all(&row["q"], |q| q.as_i64().unwrap()), "{row}");
        assert_eq!(scales, f16s(&row["scale_f16"]), "{row}");
        for (found, expected) in expanded.iter().zip(all(&row["dequant"], bits)) {
            same_bits(*found, expected, &row);
        }
    }
    println!("{name}: {guarded} rows differ on purpose");
    assert!((1..=3).contains(&guarded), "{guarded}");
}

#[test]
fn momenta_are_companded_bit_for_bit() {
    check_codec("quant_momentum", |values, len| {
        let (mut codes, mut scales, mut expanded) = (vec![0; len], vec![], vec![0.0; len]);
        for from in (0..len).step_by(32) {
            let range = from..len.min(from + 32);
            let scale = compress_momentum(&values[range.clone()], &mut codes[range.clone()]);
            expand_momentum(&codes[range.clone()], scale, &mut expanded[range]);
            scales.push(scale);
        }
        (codes.into_iter().map(i64::from).collect(), scales, expanded)
    });
}

#[test]
fn variances_are_companded_bit_for_bit() {
    check_codec("quant_variance", |values, len| {
        let (mut codes, mut scales, mut expanded) = (vec![0; len], vec![], vec![0.0; len]);
        for from in (0..len).step_by(32) {
            let range = from..len.min(from + 32);
            let scale = compress_variance(&values[range.clone()], &mut codes[range.clone()]);
            expand_variance(&codes[range.clone()], scale, &mut expanded[range]);
            scales.push(scale);
        }
        (codes.into_iter().map(i64::from).collect(), scales, expanded)
    });
}

#[test]
fn the_momentum_codebook_is_the_references() {
    for (code, value) in group("momentum_codebook_absmax1").as_object().unwrap() {
        let mut expanded = [0.0];
        expand_momentum(&[code.parse().unwrap()], f16::ONE, &mut expanded);
        same_bits(expanded[0], bits(value), value);
    }
}

#[test]
fn a_guarded_scale_keeps_history_that_the_reference_loses() {
    for largest in [1e-10_f32, 2e-8, 3e-8, 70_000.0, 1e9] {
        let values = [largest, -largest / 4.0];
        let (mut codes, mut expanded) = ([0; 2], [0.0; 2]);
        let scale = compress_momentum(&values, &mut codes);
        expand_momentum(&codes, scale, &mut expanded);
        assert!(
            expanded[0].is_finite() && expanded[0] >= 0.0 && expanded[0] <= largest * 1.01,
            "{expanded:?}"
        );
    }
}

const FLASH: Rest = Rest { master_weights: MasterWeights::Residual24, states: OptimizerStates::Companded8 };

fn bf16_codes(values: &Values) -> Vec<u16> {
    let Values::BF16(values) = values else { panic!("{values:?}") };
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn flash_adamw_follows_the_references_trajectory() {
    let trajectory = group("flash_adamw_trajectory");
    let weights: Vec<f32> = bf16s(&trajectory["init_bf16"]).iter().map(|w| w.to_f32()).collect();
    let (mut weights, mut slot) = Slot::new(&weights, Dtype::BF16, FLASH);
    let adamw = AdamW::default();
    for (index, step) in trajectory["steps"].as_array().unwrap().iter().enumerate() {
        let gradient = Values::BF16(bf16s(&step["grad_bf16"]));
        adamw.step(index as u64 + 1, 1e-3).take(&mut weights, &mut slot, &gradient).unwrap();
        let expected: Vec<u16> = bf16s(&step["param_bf16"]).iter().map(|w| w.to_bits()).collect();
        assert_eq!(bf16_codes(&weights), expected, "step {index}");
        let Residual::Bits24(residual) = &slot.residual else { panic!() };
        let Moments::Companded { momentum, variance } = &slot.moments else { panic!() };
        // "may differ by 1 unit in ecc or q per step": a power of beta in f32 may round differently.
        let near = |name: &str, found: Vec<i64>| {
            let expected = all(&step[name], |v| v.as_i64().unwrap());
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).max().unwrap();
            assert!(worst <= 1, "step {index}: {name} is off by {worst}");
        };
        near("ecc", residual.iter().map(|r| i64::from(*r)).collect());
        near("m_q", momentum.codes.iter().map(|q| i64::from(*q)).collect());
        near("v_q", variance.codes.iter().map(|q| i64::from(*q)).collect());
        assert_eq!(momentum.scales, f16s(&step["m_scale_f16"]), "step {index}");
        assert_eq!(variance.scales, f16s(&step["v_scale_f16"]), "step {index}");
    }
}

#[test]
fn flash_adamw_moves_where_bf16_stands_still() {
    let scalar = group("flash_adamw_scalar");
    let adamw = AdamW { weight_decay: 0.0, ..AdamW::default() };
    let gradient = Values::F32(vec![0.5]);
    let (mut weights, mut slot) = Slot::new(&[1.0], Dtype::BF16, FLASH);
    let true_half = Rest { master_weights: MasterWeights::None, states: OptimizerStates::Plain(Dtype::BF16) };
    let (mut still, mut still_slot) = Slot::new(&[1.0], Dtype::BF16, true_half);
    for (index, step) in scalar["steps"].as_array().unwrap().iter().enumerate() {
        let count = index as u64 + 1;
        adamw.step(count, 1e-3).take(&mut weights, &mut slot, &gradient).unwrap();
        assert_eq!(u32::from(bf16_codes(&weights)[0]), bits(&step["param_bf16"]));
        let expected =
            step["joined_val"].as_str().map_or_else(|| step["joined_val"].as_f64(), |v| v.parse().ok());
        assert_eq!(f64::from(slot.master(&weights)[0]), expected.unwrap(), "step {count}");
        adamw.step(count, 1e-3).take(&mut still, &mut still_slot, &gradient).unwrap();
        assert_eq!(still.to_f32(), [1.0], "an update of 1e-3 is below half a unit of bf16 at 1");
    }
}

#[test]
fn f16_steps_are_those_of_torchs_fused_kernel() {
    let case = &group("pathologies")["torch_adamw_fp16_step1"];
    let gradients: Vec<f32> = all(&case["grads"], |g| g.as_f64().unwrap() as f32);
    let rest = Rest { master_weights: MasterWeights::None, states: OptimizerStates::Plain(Dtype::F16) };
    let (mut weights, mut slot) = Slot::new(&[1.0; 4], Dtype::F16, rest);
    let adamw = AdamW { weight_decay: 0.0, ..AdamW::default() };
    let gradients = Values::from_f32(&gradients, Dtype::F16);
    adamw.step(1, 1e-3).take(&mut weights, &mut slot, &gradients).unwrap();
    let expected: Vec<f32> = all(&case["fused"], |w| w.as_f64().unwrap() as f32);
    // The loop kernel, which rounds eps to f16, gives NaN and -inf here.
    assert_eq!(weights.to_f32(), expected);
}

#[test]
fn a_slot_comes_back_from_its_parts() {
    let weights: Vec<f32> = (0..77).map(|i| (i as f32 * 0.37).sin()).collect();
    for (dtype, master_weights, states) in [
        (Dtype::F32, MasterWeights::SameAsWeights, OptimizerStates::Plain(Dtype::F32)),
        (Dtype::F16, MasterWeights::None, OptimizerStates::Plain(Dtype::F16)),
        (Dtype::BF16, MasterWeights::Residual24, OptimizerStates::Companded8),
        (Dtype::F16, MasterWeights::Residual32, OptimizerStates::Companded8),
        (Dtype::BF16, MasterWeights::Residual32, OptimizerStates::Companded8),
    ] {
        let rest = Rest { master_weights, states };
        let (mut stepped, mut slot) = Slot::new(&weights, dtype, rest);
        let fresh = slot.clone();
        AdamW::default().step(1, 1e-2).take(&mut stepped, &mut slot, &Values::F32(weights.clone())).unwrap();
        let parts = slot.parts();
        let restored = fresh.restored(|name, dtype| {
            Ok(parts.iter().find(|(n, d, _)| (*n, *d) == (name, dtype)).unwrap().2.clone())
        });
        assert_eq!(restored.unwrap(), slot, "{dtype}");
        assert!(fresh.restored(|_, _| Ok(vec![0; 3])).is_err());
    }
}

#[test]
fn a_parameter_takes_the_bytes_that_its_mode_promises() {
    let weights = vec![0.5; 32 * 1000];
    for (dtype, master_weights, states, expected) in [
        (Dtype::F32, MasterWeights::SameAsWeights, OptimizerStates::Plain(Dtype::F32), 12.0),
        (Dtype::BF16, MasterWeights::None, OptimizerStates::Plain(Dtype::BF16), 6.0),
        (Dtype::BF16, MasterWeights::Residual24, OptimizerStates::Companded8, 5.125),
        (Dtype::BF16, MasterWeights::Residual32, OptimizerStates::Companded8, 6.125),
        (Dtype::BF16, MasterWeights::None, OptimizerStates::Companded8, 4.125),
    ] {
        let (resting, slot) = Slot::new(&weights, dtype, Rest { master_weights, states });
        let bytes = resting.size_bytes() + slot.residual.size_bytes() + slot.moments.size_bytes();
        assert_eq!(bytes as f64 / weights.len() as f64, expected);
    }
}

fn event(scaler: &mut LossScaler, gradients: &str) -> bool {
    match gradients {
        "ok" | "small" => {
            scaler.stepped();
            true
        }
        _ => {
            scaler.skipped("a tensor").unwrap();
            false
        }
    }
}

#[test]
fn the_loss_scale_moves_as_torchs() {
    let defaults = group("grad_scaler_defaults");
    let rule = ScalerRule::default();
    for (name, ours) in
        [("init_scale", rule.initial), ("growth_factor", rule.growth), ("backoff_factor", rule.backoff)]
    {
        assert_eq!(defaults[name].as_f64().unwrap(), f64::from(ours), "{name}");
    }
    let mut floored = 0;
    for case in rows("grad_scaler_torch") {
        let config = &case["config"];
        let value = |name: &str, default: f32| config[name].as_f64().map_or(default, |v| v as f32);
        let rule = ScalerRule {
            initial: value("init_scale", rule.initial),
            growth: value("growth_factor", rule.growth),
            backoff: value("backoff_factor", rule.backoff),
            interval: config["growth_interval"].as_u64().map_or(rule.interval, |v| v as u32),
            ..rule
        };
        let mut scaler = LossScaler::new(rule);
        for expected in case["events"].as_array().unwrap() {
            let stepped = event(&mut scaler, expected["grads"].as_str().unwrap());
            assert_eq!(stepped, expected["stepped"].as_bool().unwrap(), "{case}");
            let scale = expected["scale_after"].as_f64().unwrap() as f32;
            if scale < rule.floor {
                // Torch's scale goes on to 0; ours stops at 1.
                floored += 1;
                assert_eq!(scaler.scale(), rule.floor);
                continue;
            }
            assert_eq!(scaler.scale(), scale, "{case}");
            assert_eq!(
                u64::from(scaler.good_steps()),
                expected["growth_tracker"].as_u64().unwrap(),
                "{case}"
            );
        }
    }
    assert_eq!(floored, 6, "the rows below the floor are the two cases made for it");
}

#[test]
fn the_loss_scale_moves_as_megatrons_under_its_rule() {
    for case in rows("grad_scaler_megatron") {
        let config = &case["config"];
        let number = |name: &str| config[name].as_f64().unwrap() as f32;
        let rule = ScalerRule {
            initial: number("init"),
            growth: number("growth"),
            backoff: number("backoff"),
            interval: config["interval"].as_u64().unwrap() as u32,
            floor: number("min"),
            hysteresis: config["hysteresis"].as_u64().unwrap() as u32,
            ..ScalerRule::megatron()
        };
        let mut scaler = LossScaler::new(rule);
        for expected in case["events"].as_array().unwrap() {
            event(&mut scaler, if expected["found_inf"] == true { "inf" } else { "ok" });
            assert_eq!(f64::from(scaler.scale()), expected["scale_after"].as_f64().unwrap(), "{case}");
            let tracker = expected["growth_tracker"].as_u64().unwrap();
            assert_eq!(u64::from(scaler.good_steps()), tracker, "{case}");
        }
    }
    let (ours, first) = (ScalerRule::megatron(), &rows("grad_scaler_megatron")[0]["config"]);
    assert_eq!(f64::from(ours.initial), first["init"].as_f64().unwrap());
    assert_eq!(u64::from(ours.hysteresis), first["hysteresis"].as_u64().unwrap());
}

#[test]
fn a_scale_that_no_gradient_survives_is_not_resumed() {
    let fresh = LossScaler::new(ScalerRule::default());
    for scale in [0.0, -0.0, -2.0, f32::NAN, f32::INFINITY] {
        assert_eq!(fresh.resumed([scale, 7.0, 3.0]), fresh, "{scale}");
    }
    assert_eq!(fresh.resumed([0.25, 7.0, 3.0]).state(), [1.0, 7.0, 3.0]);
    // A count that is beyond the interval, of a run under another rule, still lets the scale grow.
    let mut late = fresh.resumed([64.0, 5000.0, 0.0]);
    late.stepped();
    assert_eq!((late.scale(), late.good_steps()), (128.0, 0));
}

#[test]
fn twenty_skipped_steps_in_a_row_end_the_run() {
    let mut scaler = LossScaler::new(ScalerRule::default());
    for _ in 0..19 {
        scaler.skipped("a.weight").unwrap();
    }
    scaler.stepped();
    for _ in 0..19 {
        scaler.skipped("a.weight").unwrap();
    }
    assert_eq!(scaler.scale(), 1.0);
    let error = scaler.skipped("b.weight").unwrap_err().to_string();
    assert!(error.contains("b.weight") && error.contains("20"), "{error}");
}

/// The largest step, in learning rates, of eight weights of 0.1 under `gradients`.
fn largest_step(dtype: Dtype, rest: Rest, gradients: &[[f32; 8]]) -> f32 {
    let learning_rate = 1e-4;
    let (mut weights, mut slot) = Slot::new(&[0.1; 8], dtype, rest);
    let adamw = AdamW { weight_decay: 0.0, ..AdamW::default() };
    let mut largest = 0.0_f32;
    for (count, gradient) in gradients.iter().enumerate() {
        let before = slot.master(&weights);
        let gradient = Values::from_f32(gradient, dtype);
        adamw.step(count as u64 + 1, learning_rate).take(&mut weights, &mut slot, &gradient).unwrap();
        for (before, after) in before.iter().zip(slot.master(&weights)) {
            largest = largest.max((after - before).abs() / learning_rate);
        }
    }
    largest
}

#[test]
fn a_variance_that_was_rounded_away_does_not_throw_a_weight() {
    let once = [[1e-4; 8], [0.0; 8], [0.0; 8]].to_vec();
    let mut beside_a_spike = vec![[3e-5; 8]; 100];
    beside_a_spike[99][0] = 1.0;
    beside_a_spike.extend([[0.0; 8]; 3]);
    for (dtype, master_weights, states) in [
        (Dtype::F32, MasterWeights::SameAsWeights, OptimizerStates::Plain(Dtype::F32)),
        (Dtype::F16, MasterWeights::None, OptimizerStates::Plain(Dtype::F16)),
        (Dtype::F16, MasterWeights::Residual24, OptimizerStates::Companded8),
        (Dtype::BF16, MasterWeights::Residual24, OptimizerStates::Companded8),
    ] {
        for gradients in [&once, &beside_a_spike] {
            // The specification's bound for one step is (1 - beta1) / sqrt(1 - beta2) = 3.16 learning rates.
            let largest = largest_step(dtype, Rest { master_weights, states }, gradients);
            assert!(largest < 3.2, "{dtype}: {largest} learning rates");
        }
    }
}
