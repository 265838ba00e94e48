//! A tree of named tensors and a dtype in, the same tree in that dtype out, its audio untouched.
//!
//! The rule for trainer batches and request tensors alike. In a map, a tensor whose own key contains
//! `audio` is kept in its original dtype, maps are entered, every other floating tensor is cast, and the
//! rest, lists included, passes. A tree whose root is not a map has no keys to judge by: every floating
//! tensor of it is cast, under a key `audio` too, so send audio in a map.
//! Never narrows audio inside a map, never widens it back, never copies what it keeps.

use std::collections::BTreeMap;

use super::{Dtype, cast};
use crate::error::{Error, Result};

/// Little-endian values, row-major.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

/// A batch. `Other` is whatever the caller carries beside its tensors: names, counts, nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value<O> {
    Tensor(Tensor),
    Map(BTreeMap<String, Value<O>>),
    List(Vec<Value<O>>),
    Other(O),
}

const PROTECTED: &str = "audio";

/// `batch` with its floating tensors in `dtype`, except its audio.
///
/// # Errors
/// [`Error::InvalidRequest`] when `dtype` is not a real floating format, or when a tensor to be cast holds
/// another number of bytes than its shape and dtype say.
pub fn convert<O>(batch: Value<O>, dtype: Dtype) -> Result<Value<O>> {
    if !dtype.is_floating() {
        return Err(Error::InvalidRequest(format!("a batch cannot be converted to {dtype}")));
    }
    match batch {
        Value::Map(map) => convert_map(map, dtype),
        other => cast_all(other, dtype),
    }
}

fn convert_map<O>(map: BTreeMap<String, Value<O>>, dtype: Dtype) -> Result<Value<O>> {
    let converted = map.into_iter().map(|(key, value)| {
        let value = match value {
            Value::Tensor(tensor) if !key.contains(PROTECTED) => Value::Tensor(cast_tensor(tensor, dtype)?),
            Value::Map(inner) => convert_map(inner, dtype)?,
            kept => kept,
        };
        Ok((key, value))
    });
    Ok(Value::Map(converted.collect::<Result<_>>()?))
}

fn cast_all<O>(value: Value<O>, dtype: Dtype) -> Result<Value<O>> {
    Ok(match value {
        Value::Tensor(tensor) => Value::Tensor(cast_tensor(tensor, dtype)?),
        Value::List(items) => {
            Value::List(items.into_iter().map(|item| cast_all(item, dtype)).collect::<Result<_>>()?)
        }
        Value::Map(map) => Value::Map(
            map.into_iter().map(|(key, value)| Ok((key, cast_all(value, dtype)?))).collect::<Result<_>>()?,
        ),
        Value::Other(other) => Value::Other(other),
    })
}

fn cast_tensor(tensor: Tensor, dtype: Dtype) -> Result<Tensor> {
    if !tensor.dtype.is_floating() || tensor.dtype == dtype {
        return Ok(tensor);
    }
    let expected =
        tensor.shape.iter().try_fold(tensor.dtype.size_bytes(), |bytes, &dim| bytes.checked_mul(dim));
    if expected != Some(tensor.data.len()) {
        return Err(Error::InvalidRequest(format!(
            "a {} tensor of shape {:?} cannot have {} bytes",
            tensor.dtype,
            tensor.shape,
            tensor.data.len()
        )));
    }
    let data = cast::cast(&tensor.data, tensor.dtype, dtype)?;
    Ok(Tensor { dtype, shape: tensor.shape, data })
}
