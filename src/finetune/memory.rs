//! A trainer in, what it keeps of every parameter out.
//!
//! Never measures: these are the sizes of what is there.

use std::collections::BTreeMap;

use serde::Serialize;

use super::network::part;
use super::trainer::Trainer;
use crate::error::Result;
use crate::precision::Dtype;

/// What a parameter takes while it is trained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct BytesPerParameter {
    pub weights: f64,
    pub gradients: f64,
    pub residual: f64,
    pub states: f64,
    /// The moving average, where there is one.
    pub average: f64,
}

impl Trainer {
    /// Bytes of every kind for each trained parameter: at rest, and of gradients the most that are held at once. Of a
    /// weight with an adapter the weight is the parameter, and its factors come on top.
    ///
    /// # Errors
    /// [`Error::Internal`](crate::error::Error::Internal) when a tensor cannot be read.
    pub fn bytes_per_parameter(&self) -> Result<BytesPerParameter> {
        let mut bytes = BytesPerParameter::default();
        let mut gradients: BTreeMap<&str, f64> = BTreeMap::new();
        let mut count = 0;
        for (name, learner) in &self.learners {
            let weights = self.parameters.host(name)?;
            count += weights.len();
            let narrow = if weights.dtype() == Dtype::F32 { Dtype::F32 } else { self.gradients };
            let of_this = (weights.len() * narrow.size_bytes()) as f64;
            *gradients.entry(part(name)).or_default() += of_this;
            let [more, residual, states] = learner.size_bytes();
            bytes.weights += (weights.size_bytes() + more) as f64;
            bytes.residual += residual as f64;
            bytes.states += states as f64;
        }
        bytes.average =
            self.averages.values().map(|average| average.values().len()).sum::<usize>() as f64 * 4.0;
        bytes.gradients = match self.releases {
            true => gradients.into_values().fold(0.0, f64::max),
            false => gradients.into_values().sum(),
        };
        let each = |total: f64| total / count.max(1) as f64;
        Ok(BytesPerParameter {
            weights: each(bytes.weights),
            gradients: each(bytes.gradients),
            residual: each(bytes.residual),
            states: each(bytes.states),
            average: each(bytes.average),
        })
    }

    /// Numbers that learn: of a weight with an adapter those of its factors.
    pub fn trained_parameters(&self) -> Result<usize> {
        self.learners.iter().map(|(name, learner)| Ok(learner.len(self.parameters.host(name)?.len()))).sum()
    }
}
