//! A trainer in, one file from which it goes on as if it had never stopped out, and back.
//!
//! The file is safetensors: the weights as they rest, what rests beside them, averages, and in its metadata how far the
//! run has come, what it was, and the notes of whoever runs it. Never widens a number, and never goes on with a run of
//! another kind.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::SafeTensors;
use sha2::{Digest, Sha256};

use super::average::Average;
use super::optimizer::Values;
use super::tensor_file::{self, Stored, of_file};
use super::trainer::{Progress, Trainer};
use crate::error::{Error, Result};
use crate::precision::Dtype;

const AVERAGE: &str = "average";
/// Of the metadata: what must be the same for a run to go on.
const RUN: &str = "run";
const PROGRESS: &str = "progress";
const SCALER: &str = "scaler";
/// A hash of all tensors: a file that a disk has bent goes on nowhere.
const SHA256: &str = "sha256";
/// How the notes of whoever runs the trainer begin.
const NOTE: &str = "note.";

/// What whoever runs a trainer wants to know again: a text by its name.
pub type Notes = BTreeMap<String, String>;

impl Trainer {
    /// Writes everything that a later run needs to go on, `run` being what identifies it, and `notes`.
    ///
    /// # Errors
    /// [`Error::Io`] when the disk refuses; the checkpoint before is untouched then.
    pub fn save(&self, path: &Path, run: &str, notes: &Notes) -> Result<()> {
        let mut tensors = Vec::new();
        for (name, learner) in &self.learners {
            tensors.extend(learner.stored(name, &self.parameters.host(name)?));
        }
        for (name, average) in &self.averages {
            let values = Values::from_f32(average.values(), Dtype::F32);
            tensors.push((format!("{AVERAGE}.{name}"), Stored::flat(Dtype::F32, values.to_bytes())));
        }
        let Progress { taken, tried } = self.progress;
        let scaler = self.scaler.state().map(|value| value.to_bits().to_string()).join(" ");
        let notes = notes.iter().map(|(name, text)| (format!("{NOTE}{name}"), text.clone()));
        let own = [
            (RUN.to_owned(), run.to_owned()),
            (PROGRESS.to_owned(), format!("{taken} {tried}")),
            (SCALER.to_owned(), scaler),
            (SHA256.to_owned(), digest(tensors.iter().map(|(name, tensor)| (name.as_str(), &*tensor.data)))),
        ];
        tensor_file::write(path, tensors, notes.chain(own).collect())
    }

    /// Goes on where the run at `path` stopped. -> the notes that it was saved with
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a checkpoint of another run or one that is damaged, [`Error::Io`] when it cannot
    /// be read; the trainer is as it was then.
    pub fn restore(&mut self, path: &Path, run: &str) -> Result<Notes> {
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
        let tensors = file.iter().map(|(name, tensor)| (name, tensor.data()));
        if *entry(SHA256)? != digest(tensors) {
            return Err(broken("it is damaged: its values are not those that were saved".to_owned()));
        }
        let progress =
            numbers::<2, u64>(entry(PROGRESS)?).ok_or_else(|| broken("its progress".to_owned()))?;
        let scaler = numbers::<3, u32>(entry(SCALER)?).ok_or_else(|| broken("its loss scale".to_owned()))?;
        let scaler = self.scaler.resumed(scaler.map(f32::from_bits));

        let part = |name: &str, dtype: Dtype, len: Option<usize>| -> Result<Vec<u8>> {
            let tensor = file.tensor(name).map_err(|_| broken(format!("it has no `{name}`")))?;
            if tensor.dtype() != of_file(dtype) {
                return Err(broken(format!("`{name}` is {:?}, {dtype} is needed", tensor.dtype())));
            }
            let found = tensor.data().len() / dtype.size_bytes();
            match len.filter(|len| *len != found) {
                Some(len) => Err(broken(format!("`{name}` has {found} values, {len} are needed"))),
                None => Ok(tensor.data().to_vec()),
            }
        };
        let mut restored = Vec::new();
        for (name, learner) in &self.learners {
            restored.push((name.clone(), learner.restored(name, &self.parameters.host(name)?, &part)?));
        }
        let mut averages = BTreeMap::new();
        for (name, average) in &self.averages {
            let bytes = part(&format!("{AVERAGE}.{name}"), Dtype::F32, Some(average.values().len()))?;
            let values = Values::from_bytes(&bytes, Dtype::F32)?;
            averages.insert(name.clone(), Average::new(&values.to_f32()));
        }
        for (name, (weights, learner)) in restored {
            self.parameters.update(&name, weights);
            self.learners.insert(name, learner);
        }
        let [taken, tried] = progress;
        (self.averages, self.scaler, self.progress) = (averages, scaler, Progress { taken, tried });
        let notes = metadata.into_iter();
        Ok(notes.filter_map(|(key, text)| Some((key.strip_prefix(NOTE)?.to_owned(), text))).collect())
    }
}

/// Of tensors in any order.
fn digest<'a>(tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut tensors: Vec<_> = tensors.collect();
    tensors.sort_unstable_by_key(|(name, _)| *name);
    let mut hash = Sha256::new();
    for (name, data) in tensors {
        hash.update(name);
        hash.update(data);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn numbers<const N: usize, T: std::str::FromStr>(text: &str) -> Option<[T; N]> {
    text.split(' ').map(|word| word.parse().ok()).collect::<Option<Vec<T>>>()?.try_into().ok()
}
