//! A checkpoint's tensors in, the same tensors as leaves of the network's graph out, and back to the host.
//!
//! Every tensor rests flat, in the dtype of its mode, under the checkpoint's name. Never renames one.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};
use half::{bf16, f16};

use super::arithmetic::float_dtype;
use crate::error::{Error, Result};
use crate::finetune::optimizer::Values;
use crate::precision::Dtype;
use crate::voice::Voice;
use crate::voice::names::{Required, acoustic};

/// The tensors of a network.
#[derive(Debug, Clone)]
pub struct Parameters {
    entries: BTreeMap<String, Parameter>,
    device: Device,
}

#[derive(Debug, Clone)]
struct Parameter {
    flat: Tensor<1>,
    shape: Vec<usize>,
    trained: bool,
}

impl Parameters {
    pub fn new(device: &Device) -> Self {
        Self { entries: BTreeMap::new(), device: device.clone() }
    }

    /// The acoustic tensors of `voice` in `weights`; `trained` says which of them learn. The statistics of batch
    /// normalisation never do.
    ///
    /// # Errors
    /// [`Error::InvalidVoice`] when the checkpoint cannot be read.
    pub fn of_voice(
        voice: &Voice,
        weights: Dtype,
        trained: impl Fn(&str) -> bool,
        device: &Device,
    ) -> Result<Self> {
        let mut parameters = Self::new(device);
        for Required { name, shape } in acoustic(&voice.config) {
            let values = Values::from_f32(&voice.acoustic.f32(&name)?, resting_dtype(&name, weights));
            parameters.put(&name, &shape, values, trained(&name) && !is_statistic(&name));
        }
        Ok(parameters)
    }

    /// Adds or replaces a tensor; one that is not trained has no gradient.
    pub fn put(&mut self, name: &str, shape: &[usize], values: Values, trained: bool) {
        let flat = leaf(values, trained, &self.device);
        self.entries.insert(name.to_owned(), Parameter { flat, shape: shape.to_vec(), trained });
    }

    /// The numbers of a tensor that is there already, replaced.
    pub fn update(&mut self, name: &str, values: Values) {
        if let Some(parameter) = self.entries.get_mut(name) {
            parameter.flat = leaf(values, parameter.trained, &self.device);
        }
    }

    /// The tensor called `name`, which [`crate::voice::names::acoustic`] lists.
    ///
    /// # Panics
    /// When it is not there: a voice has been held against that list before.
    pub fn get<const D: usize>(&self, name: &str) -> Tensor<D> {
        let parameter = &self.entries[name];
        let mut shape = [1; D];
        shape.iter_mut().zip(&parameter.shape).for_each(|(dim, size)| *dim = *size);
        parameter.flat.clone().reshape(shape)
    }

    /// Names of the tensors that are trained, in order.
    pub fn trained(&self) -> Vec<String> {
        self.entries.iter().filter(|(_, p)| p.trained).map(|(name, _)| name.clone()).collect()
    }

    /// Every tensor: name, shape, and whether it is trained.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[usize], bool)> {
        self.entries.iter().map(|(name, p)| (name.as_str(), p.shape.as_slice(), p.trained))
    }

    /// The numbers of a tensor as they rest.
    ///
    /// # Errors
    /// [`Error::Internal`] when there is no such tensor.
    pub fn host(&self, name: &str) -> Result<Values> {
        let parameter = self.entries.get(name).ok_or_else(|| Error::Internal(format!("no tensor {name}")))?;
        values(parameter.flat.to_data())
    }

    /// The gradient of a tensor, which leaves `gradients`; `None` when the loss does not depend on it.
    ///
    /// # Errors
    /// As [`Self::host`].
    pub fn take_gradient(&self, name: &str, gradients: &mut Gradients) -> Result<Option<Values>> {
        let parameter = self.entries.get(name).ok_or_else(|| Error::Internal(format!("no tensor {name}")))?;
        parameter.flat.grad_remove(gradients).map(|gradient| values(gradient.into_data())).transpose()
    }
}

fn leaf(values: Values, trained: bool, device: &Device) -> Tensor<1> {
    let (len, dtype) = (values.len(), values.dtype());
    let data = match values {
        Values::F32(values) => TensorData::new(values, [len]),
        Values::F16(values) => TensorData::new(values, [len]),
        Values::BF16(values) => TensorData::new(values, [len]),
    };
    let flat = Tensor::from_data(data, (device, DType::from(float_dtype(dtype))));
    if trained { flat.require_grad() } else { flat }
}

fn values(data: TensorData) -> Result<Values> {
    let broken = |e| Error::Internal(format!("a tensor could not be read: {e:?}"));
    Ok(match data.dtype() {
        DType::F16 => Values::F16(data.try_into_vec::<f16>().map_err(broken)?),
        DType::BF16 => Values::BF16(data.try_into_vec::<bf16>().map_err(broken)?),
        _ => Values::F32(data.try_into_vec::<f32>().map_err(broken)?),
    })
}

/// Whether a tensor is a running statistic, which is measured and not learned.
pub fn is_statistic(name: &str) -> bool {
    name.contains(".running_")
}

/// The dtype in which a tensor of a mode with `weights` rests: the statistics of batch normalisation stay f32.
pub fn resting_dtype(name: &str, weights: Dtype) -> Dtype {
    if name.contains("batch_norm.") { Dtype::F32 } else { weights }
}
