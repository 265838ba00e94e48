//! A trainer in, one file from which it goes on as if it had never stopped out, and back.
//!
//! The file is safetensors: the weights as they rest, what rests beside them, and in its metadata how far the run has
//! come and what it was. Never widens a number, and never goes on with a run of another kind.

use std::collections::HashMap;
use std::path::Path;

use safetensors::SafeTensors;

use super::optimizer::Values;
use super::tensor_file::{self, Stored, of_file};
use super::trainer::{Progress, Trainer};
use crate::error::{Error, Result};
use crate::precision::Dtype;

const WEIGHTS: &str = "weights";
/// Of the metadata: what must be the same for a run to go on.
const RUN: &str = "run";
const PROGRESS: &str = "progress";
const SCALER: &str = "scaler";

/// A flat tensor: its shape is the network's to know.
fn flat(dtype: Dtype, data: Vec<u8>) -> Stored {
    Stored { dtype, shape: vec![data.len() / dtype.size_bytes()], data }
}

impl Trainer {
    /// Writes everything that a later run needs to go on, `run` being what identifies it.
    ///
    /// # Errors
    /// [`Error::Io`] when the disk refuses; the checkpoint before is untouched then.
    pub fn save(&self, path: &Path, run: &str) -> Result<()> {
        let mut tensors = Vec::new();
        for (name, slot) in &self.slots {
            let weights = self.parameters.host(name)?;
            tensors.push((format!("{WEIGHTS}.{name}"), flat(weights.dtype(), weights.to_bytes())));
            for (part, dtype, data) in slot.parts() {
                tensors.push((format!("{part}.{name}"), flat(dtype, data)));
            }
        }
        let Progress { taken, tried } = self.progress;
        let scaler = self.scaler.state().map(|value| value.to_bits().to_string()).join(" ");
        let metadata = HashMap::from([
            (RUN.to_owned(), run.to_owned()),
            (PROGRESS.to_owned(), format!("{taken} {tried}")),
            (SCALER.to_owned(), scaler),
        ]);
        tensor_file::write(path, tensors, metadata)
    }

    /// Goes on where the run at `path` stopped.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a checkpoint of another run or one that is damaged, [`Error::Io`] when it cannot
    /// be read; the trainer is as it was then.
    pub fn restore(&mut self, path: &Path, run: &str) -> Result<()> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let broken =
            |reason: String| Error::InvalidRequest(format!("the checkpoint {}: {reason}", path.display()));
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| broken(e.to_string()))?;
        let file = SafeTensors::deserialize(&bytes).map_err(|e| broken(e.to_string()))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let entry = |key: &str| {
            metadata
                .get(key)
                .ok_or_else(|| broken(format!("it has no `{key}`: it is not one of a fine-tune")))
        };
        let was = entry(RUN)?;
        if was != run {
            return Err(broken(format!("it is of another run: {was}; this one is {run}")));
        }
        let progress =
            numbers::<2, u64>(entry(PROGRESS)?).ok_or_else(|| broken("its progress".to_owned()))?;
        let scaler = numbers::<3, u32>(entry(SCALER)?).ok_or_else(|| broken("its loss scale".to_owned()))?;

        let part = |name: &str, dtype: Dtype| -> Result<Vec<u8>> {
            let tensor = file.tensor(name).map_err(|_| broken(format!("it has no `{name}`")))?;
            if tensor.dtype() != of_file(dtype) {
                return Err(broken(format!("`{name}` is {:?}, {dtype} is needed", tensor.dtype())));
            }
            Ok(tensor.data().to_vec())
        };
        let mut restored = Vec::new();
        for (name, slot) in &self.slots {
            let (dtype, len) = {
                let weights = self.parameters.host(name)?;
                (weights.dtype(), weights.len())
            };
            let weights = Values::from_bytes(&part(&format!("{WEIGHTS}.{name}"), dtype)?, dtype)?;
            if weights.len() != len {
                return Err(broken(format!("{name} has {} values, {len} are needed", weights.len())));
            }
            let slot = slot.restored(|kind, dtype| part(&format!("{kind}.{name}"), dtype))?;
            restored.push((name.clone(), weights, slot));
        }
        for (name, weights, slot) in restored {
            self.parameters.update(&name, weights);
            self.slots.insert(name, slot);
        }
        let [taken, tried] = progress;
        self.progress = Progress { taken, tried };
        self.scaler = self.scaler.resumed(scaler.map(f32::from_bits));
        Ok(())
    }
}

fn numbers<const N: usize, T: std::str::FromStr>(text: &str) -> Option<[T; N]> {
    text.split(' ').map(|word| word.parse().ok()).collect::<Option<Vec<T>>>()?.try_into().ok()
}
