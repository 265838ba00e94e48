//! Tensors by name in, one safetensors file out, whole or not at all.
//!
//! Never changes a number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::View;

use super::atomic_file;
use crate::error::{Error, Result};
use crate::precision::Dtype;

/// A tensor as it will lie in the file: its dtype, its shape, its little-endian bytes.
pub struct Stored {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

impl Stored {
    /// A tensor whose shape whoever reads it knows.
    pub fn flat(dtype: Dtype, data: Vec<u8>) -> Self {
        Self { dtype, shape: vec![data.len() / dtype.size_bytes()], data }
    }
}

impl View for Stored {
    fn dtype(&self) -> safetensors::Dtype {
        of_file(self.dtype)
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.data)
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }
}

/// What a file calls the dtypes that training keeps.
pub fn of_file(dtype: Dtype) -> safetensors::Dtype {
    match dtype {
        Dtype::F16 => safetensors::Dtype::F16,
        Dtype::BF16 => safetensors::Dtype::BF16,
        Dtype::I8 => safetensors::Dtype::I8,
        Dtype::U8 => safetensors::Dtype::U8,
        Dtype::I16 => safetensors::Dtype::I16,
        _ => safetensors::Dtype::F32,
    }
}

/// Writes `tensors` and `metadata` to `path`.
///
/// # Errors
/// [`Error::Io`] when the disk refuses; what was at `path` is untouched then.
pub fn write(path: &Path, tensors: Vec<(String, Stored)>, metadata: HashMap<String, String>) -> Result<()> {
    let fault = |e| Error::Internal(format!("{} could not be laid out: {e}", path.display()));
    atomic_file::write(path, &safetensors::serialize(tensors, Some(metadata)).map_err(fault)?)
}
