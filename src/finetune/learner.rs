//! The gradient of a weight in, the weight one step further out: moved itself, or through two thin factors.
//!
//! A whole weight has one optimizer slot. A weight with an adapter (see [`super::lora`]) stays what it was; its two
//! factors have a slot each and rest as the mode's weights do, and what the network sees is the merged weight. Never
//! looks at another tensor.

use super::lora::{Adapter, Factors};
use super::optimizer::{Rest, Slot, Step, Values};
use super::tensor_file::Stored;
use crate::error::Result;
use crate::precision::Dtype;

/// How one weight learns.
#[derive(Debug, Clone)]
pub enum Learner {
    Whole(Slot),
    Thin(Box<Thin>),
}

/// A weight that learns through an adapter.
#[derive(Debug, Clone)]
pub struct Thin {
    adapter: Adapter,
    /// The weight of the checkpoint, with all its bits.
    base: Vec<f32>,
    /// A and B.
    factors: [Factor; 2],
}

#[derive(Debug, Clone)]
struct Factor {
    values: Values,
    slot: Slot,
}

/// Gives the bytes of a checkpoint's tensor by its name, of this dtype and, where it is known, of so many values.
pub type Parts<'a> = dyn Fn(&str, Dtype, Option<usize>) -> Result<Vec<u8>> + 'a;

const WEIGHTS: &str = "weights";
/// What the tensors of the factors are called behind the name of their weight.
const FACTORS: [&str; 2] = ["lora_a", "lora_b"];

impl Learner {
    /// For `weights`, f32 of the checkpoint, which rest in `dtype`. -> the weights as they rest, and how they learn
    pub fn whole(weights: &[f32], dtype: Dtype, rest: Rest) -> (Values, Self) {
        let (values, slot) = Slot::new(weights, dtype, rest);
        (values, Self::Whole(slot))
    }

    /// As [`Self::whole`], through `adapter`, whose first factors come from `seed`.
    pub fn thin(weights: Vec<f32>, dtype: Dtype, rest: Rest, adapter: Adapter, seed: u64) -> (Values, Self) {
        let Factors { a, b } = adapter.factors(seed);
        let factors = [a, b].map(|values| {
            let (values, slot) = Slot::new(&values, dtype, rest);
            Factor { values, slot }
        });
        let values = Values::from_f32(&weights, dtype);
        (values, Self::Thin(Box::new(Thin { adapter, base: weights, factors })))
    }

    /// Moves `weights` against `gradient`.
    ///
    /// # Errors
    /// [`Error::Internal`](crate::error::Error::Internal) when their sizes differ.
    pub fn take(&mut self, step: &Step, weights: &mut Values, gradient: &Values) -> Result<()> {
        let thin = match self {
            Self::Whole(slot) => return step.take(weights, slot, gradient),
            Self::Thin(thin) => thin,
        };
        let Factors { a, b } = thin.adapter.gradients(&gradient.to_f32(), &thin.all_bits())?;
        for (factor, gradient) in thin.factors.iter_mut().zip([a, b]) {
            step.take(&mut factor.values, &mut factor.slot, &Values::F32(gradient))?;
        }
        *weights = Values::from_f32(&thin.merged()?, weights.dtype());
        Ok(())
    }

    /// `weights` with all the bits that are known of them.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn master(&self, weights: &Values) -> Result<Vec<f32>> {
        match self {
            Self::Whole(slot) => Ok(slot.master(weights)),
            Self::Thin(thin) => thin.merged(),
        }
    }

    /// Bytes beside the resting weights: of more weights, of residuals, of moments.
    pub fn size_bytes(&self) -> [usize; 3] {
        match self {
            Self::Whole(slot) => [0, slot.residual.size_bytes(), slot.moments.size_bytes()],
            Self::Thin(thin) => thin.factors.iter().fold(
                [thin.base.len() * 4, 0, 0],
                |[weights, residual, moments], factor| {
                    [
                        weights + factor.values.size_bytes(),
                        residual + factor.slot.residual.size_bytes(),
                        moments + factor.slot.moments.size_bytes(),
                    ]
                },
            ),
        }
    }

    /// Numbers that learn, of a weight of `len` numbers.
    pub fn len(&self, len: usize) -> usize {
        match self {
            Self::Whole(_) => len,
            Self::Thin(thin) => thin.factors.iter().map(|factor| factor.values.len()).sum(),
        }
    }

    /// What a checkpoint keeps of the weight called `name`. The weight below an adapter is the voice's to keep.
    pub fn stored(&self, name: &str, weights: &Values) -> Vec<(String, Stored)> {
        match self {
            Self::Whole(slot) => stored(name, weights, slot),
            Self::Thin(thin) => FACTORS
                .iter()
                .zip(&thin.factors)
                .flat_map(|(kind, factor)| stored(&format!("{name}.{kind}"), &factor.values, &factor.slot))
                .collect(),
        }
    }

    /// The weight called `name` and its learner as a checkpoint kept them: `part` gives the bytes of a tensor.
    ///
    /// # Errors
    /// Those of `part`, and [`Error::InvalidRequest`](crate::error::Error::InvalidRequest) for a tensor of another size.
    pub fn restored(&self, name: &str, weights: &Values, part: &Parts) -> Result<(Values, Self)> {
        let read = |name: &str, values: &Values, slot: &Slot| -> Result<(Values, Slot)> {
            let bytes = part(&format!("{WEIGHTS}.{name}"), values.dtype(), Some(values.len()))?;
            let slot = slot.restored(|kind, dtype| part(&format!("{kind}.{name}"), dtype, None))?;
            Ok((Values::from_bytes(&bytes, values.dtype())?, slot))
        };
        match self {
            Self::Whole(slot) => {
                let (values, slot) = read(name, weights, slot)?;
                Ok((values, Self::Whole(slot)))
            }
            Self::Thin(thin) => {
                let mut thin = thin.clone();
                for (kind, factor) in FACTORS.iter().zip(&mut thin.factors) {
                    let (values, slot) = read(&format!("{name}.{kind}"), &factor.values, &factor.slot)?;
                    *factor = Factor { values, slot };
                }
                Ok((Values::from_f32(&thin.merged()?, weights.dtype()), Self::Thin(thin)))
            }
        }
    }
}

impl Thin {
    fn all_bits(&self) -> Factors {
        let [a, b] = self.factors.each_ref().map(|factor| factor.slot.master(&factor.values));
        Factors { a, b }
    }

    fn merged(&self) -> Result<Vec<f32>> {
        self.adapter.merged(&self.base, &self.all_bits())
    }
}

fn stored(name: &str, weights: &Values, slot: &Slot) -> Vec<(String, Stored)> {
    let own = (format!("{WEIGHTS}.{name}"), Stored::flat(weights.dtype(), weights.to_bytes()));
    let beside = slot.parts().into_iter();
    let beside = beside.map(|(kind, dtype, data)| (format!("{kind}.{name}"), Stored::flat(dtype, data)));
    std::iter::once(own).chain(beside).collect()
}
