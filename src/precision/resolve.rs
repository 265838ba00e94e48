//! A purpose, a mode, a checkpoint's dtype and a device in, a [`Plan`] out.
//!
//! Pure: the same arguments give the same plan on any machine. Never refuses a mode because a device cannot
//! execute it: it says what is executed instead.

use super::plan::{Dtypes, LossScaling, MasterWeights, OptimizerStates, Plan, StagePlan, TrainingPlan};
use super::{Device, Dtype, Precision};
use crate::error::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Inference,
    Training,
}

const ALL_F32: Dtypes = Dtypes {
    weights: Dtype::F32,
    activations: Dtype::F32,
    accumulation: Dtype::F32,
    kv_cache: Dtype::F32,
    output: Dtype::F32,
};

/// The plan for a voice whose acoustic checkpoint is `stored`. Its vocoder checkpoint is taken as f32; see
/// [`Plan::with_vocoder_stored`].
///
/// # Errors
/// [`Error::InvalidRequest`] when `stored` is not a real floating format.
pub fn resolve(purpose: Purpose, precision: Precision, stored: Dtype, device: &Device) -> Result<Plan> {
    if !stored.is_floating() {
        return Err(Error::InvalidRequest(format!(
            "weights stored as {stored} have no precision to resolve: expected a floating dtype"
        )));
    }
    let requested = requested(precision);
    let executed = executed(purpose, requested, device);
    let acoustic = StagePlan { requested, stored, executed };
    Ok(Plan {
        precision,
        device: device.name.clone(),
        encoder: acoustic,
        decoder: acoustic,
        vocoder: StagePlan { requested: ALL_F32, stored: Dtype::F32, executed: ALL_F32 },
        training: (purpose == Purpose::Training).then(|| training(precision)),
        reasons: reasons(purpose, precision, acoustic, device),
    })
}

fn requested(precision: Precision) -> Dtypes {
    let Some(half) = precision.half() else { return ALL_F32 };
    let narrowed = Dtypes { activations: half, kv_cache: half, ..ALL_F32 };
    if precision.narrows_weights() { Dtypes { weights: half, output: half, ..narrowed } } else { narrowed }
}

fn executed(purpose: Purpose, requested: Dtypes, device: &Device) -> Dtypes {
    let multiplied = |dtype| {
        let kept = purpose == Purpose::Training && device.trains_half_slowly;
        if kept || device.multiplies(dtype) { dtype } else { Dtype::F32 }
    };
    let activations = multiplied(requested.activations);
    Dtypes {
        weights: multiplied(requested.weights),
        activations,
        accumulation: requested.accumulation,
        kv_cache: match purpose {
            Purpose::Inference if device.caches(requested.kv_cache) => requested.kv_cache,
            Purpose::Inference => Dtype::F32,
            // Training has no cache: its K and V are activations.
            Purpose::Training => activations,
        },
        output: multiplied(requested.output),
    }
}

fn training(precision: Precision) -> TrainingPlan {
    match precision.half() {
        Some(half) if precision.narrows_weights() => TrainingPlan {
            gradients: half,
            master_weights: if precision.is_flash() {
                MasterWeights::Residual24
            } else {
                MasterWeights::None
            },
            optimizer_states: if precision.is_flash() {
                OptimizerStates::Companded8
            } else {
                OptimizerStates::Plain(half)
            },
            loss_scaling: LossScaling::None,
            batch_conversion: true,
        },
        _ => TrainingPlan {
            gradients: Dtype::F32,
            master_weights: MasterWeights::SameAsWeights,
            optimizer_states: OptimizerStates::Plain(Dtype::F32),
            loss_scaling: if precision == Precision::F16Mixed {
                LossScaling::Dynamic
            } else {
                LossScaling::None
            },
            batch_conversion: false,
        },
    }
}

fn reasons(purpose: Purpose, precision: Precision, acoustic: StagePlan, device: &Device) -> Vec<String> {
    let StagePlan { requested, stored, executed } = acoustic;
    let mut reasons = vec![
        "the vocoder is f32 in every mode and audio is never narrowed: bf16 samples keep 56 dB of signal to \
         noise, f16 samples 74 dB, 16-bit PCM 85 dB"
            .to_owned(),
    ];
    match (purpose, precision.half()) {
        (_, None) => {}
        (Purpose::Inference, Some(half)) => {
            reasons.extend(inference_reasons(precision, half, acoustic));
            reasons.extend(device.note(half).map(str::to_owned));
        }
        (Purpose::Training, Some(half)) => {
            reasons.extend(training_reasons(precision, half, executed, device));
        }
    }
    if device.tf32 && purpose == Purpose::Inference {
        reasons.push(
            "f32 products run as TF32 (10 mantissa bits) on this GPU unless the session sets use_tf32 to 0"
                .to_owned(),
        );
    }
    reasons.extend(lost_bits("acoustic", stored, requested.weights));
    reasons
}

fn inference_reasons(precision: Precision, half: Dtype, acoustic: StagePlan) -> Vec<String> {
    let StagePlan { requested, executed, .. } = acoustic;
    let mut reasons = Vec::new();
    if precision.is_flash() {
        reasons
            .push(format!("{precision} differs from the true mode in training only; inference is the same"));
    }
    if executed.activations != requested.activations {
        reasons.push(if precision.narrows_weights() {
            format!(
                "weight values are rounded to {half} and widened to f32 once at load, and products are f32: \
                 {half} changes the values and saves no weight memory on this device"
            )
        } else {
            format!("activations stay f32: this device does not multiply {half}")
        });
    } else if !precision.narrows_weights() {
        reasons.push(format!("f32 weights are rounded to {half} for each product"));
    }
    if executed.kv_cache != requested.kv_cache {
        reasons.push(format!("no attention kernel of this device takes {half}: the KV cache is f32"));
    } else if executed.activations != requested.activations {
        reasons.push(format!(
            "attention kernels take {half} as it is: the KV cache is {half}, in half the memory, and the \
             query and the attention's result are rounded to {half} with it"
        ));
    }
    if executed == ALL_F32 && !precision.narrows_weights() {
        reasons.push(format!("on this device {precision} computes what 32 computes"));
    }
    reasons
}

fn training_reasons(precision: Precision, half: Dtype, executed: Dtypes, device: &Device) -> Vec<String> {
    let mut reasons = vec!["the vocoder is not trained".to_owned()];
    if executed.activations != half {
        reasons.push(format!("tensors are f32: this device does not multiply {half}"));
        reasons.extend(device.note(half).map(str::to_owned));
    } else if device.trains_half_slowly {
        let measured = if half == Dtype::F16 { "4" } else { "1.3" };
        reasons.push(format!(
            "{half} tensors save memory and cost time on a CPU: a training step took {measured} times an f32 \
             step"
        ));
    }
    if half == Dtype::F16 && precision.narrows_weights() {
        reasons.push(
            "gradients below 3e-8 vanish in f16 and this mode has no loss scaling: a bf16 mode is safer"
                .to_owned(),
        );
    }
    if matches!(precision, Precision::F16True | Precision::BF16True) {
        reasons.push(format!(
            "no master weights: an update below half a unit of its {half} weight is lost; the flash mode keeps it"
        ));
    }
    reasons
}

/// What the checkpoint of `model` no longer has, or what `requested` will not hold of it.
pub(super) fn lost_bits(model: &str, stored: Dtype, requested: Dtype) -> Option<String> {
    match (stored, requested) {
        (Dtype::BF16, Dtype::F16) => Some(format!(
            "the {model} checkpoint is stored as bf16, whose range f16 has not: weights above 65504 become \
             infinite and those below 3e-8 vanish"
        )),
        _ if stored.significant_bits() < requested.significant_bits() => Some(format!(
            "the {model} checkpoint is stored as {stored}: widening it to {requested} does not bring back the \
             bits it has lost"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
