//! Shapes and numbers in, memory that a session can read and write out.
//!
//! Never casts: a tensor is read in the dtype it has.

use half::f16;
use ort::memory::Allocator;
use ort::value::{DynTensor, DynValue, TensorElementType};

use crate::error::{Error, Result};
use crate::precision::Dtype;

/// A dense row-major tensor in memory that ONNX Runtime owns.
pub struct Tensor(DynTensor);

impl Tensor {
    /// An f32 tensor of `shape` holding `values`.
    pub fn f32(shape: &[usize], values: &[f32]) -> Result<Self> {
        let mut tensor = Self::uninitialised(Dtype::F32, shape)?;
        copy(tensor.f32_mut()?, values)?;
        Ok(tensor)
    }

    /// An i64 tensor of `shape` holding `values`.
    pub fn i64(shape: &[usize], values: &[i64]) -> Result<Self> {
        let mut tensor = Self::uninitialised(Dtype::I64, shape)?;
        copy(tensor.i64_mut()?, values)?;
        Ok(tensor)
    }

    /// An i32 tensor of `shape` holding `values`.
    pub fn i32(shape: &[usize], values: &[i32]) -> Result<Self> {
        let mut tensor = Self::uninitialised(Dtype::I32, shape)?;
        copy(tensor.i32_mut()?, values)?;
        Ok(tensor)
    }

    /// An f32 or f16 tensor of `shape` filled with NaN, so that reading what was never written is loud.
    pub fn unwritten(dtype: Dtype, shape: &[usize]) -> Result<Self> {
        let mut tensor = Self::uninitialised(dtype, shape)?;
        match dtype {
            Dtype::F16 => tensor.slice_mut::<f16>()?.fill(f16::NAN),
            _ => tensor.f32_mut()?.fill(f32::NAN),
        }
        Ok(tensor)
    }

    fn uninitialised(dtype: Dtype, shape: &[usize]) -> Result<Self> {
        let element = match dtype {
            Dtype::F32 => TensorElementType::Float32,
            Dtype::F16 => TensorElementType::Float16,
            Dtype::I64 => TensorElementType::Int64,
            Dtype::I32 => TensorElementType::Int32,
            other => return Err(Error::Internal(format!("no session takes {other:?} tensors"))),
        };
        let dims: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
        DynTensor::new(&Allocator::default(), element, dims).map(Self).map_err(fault)
    }

    pub(super) fn from_value(value: DynValue) -> Result<Self> {
        value.downcast().map(Self).map_err(fault)
    }

    pub(super) fn value(&self) -> &DynTensor {
        &self.0
    }

    pub(super) fn value_mut(&mut self) -> &mut DynTensor {
        &mut self.0
    }

    pub fn shape(&self) -> Vec<usize> {
        self.0.shape().iter().map(|&d| d as usize).collect()
    }

    pub fn as_f32(&self) -> Result<&[f32]> {
        self.0.try_extract_tensor::<f32>().map(|(_, data)| data).map_err(fault)
    }

    pub fn f32_mut(&mut self) -> Result<&mut [f32]> {
        self.slice_mut()
    }

    pub fn i64_mut(&mut self) -> Result<&mut [i64]> {
        self.slice_mut()
    }

    pub fn i32_mut(&mut self) -> Result<&mut [i32]> {
        self.slice_mut()
    }

    fn slice_mut<T: ort::value::PrimitiveTensorElementType>(&mut self) -> Result<&mut [T]> {
        self.0.try_extract_tensor_mut::<T>().map(|(_, data)| data).map_err(fault)
    }
}

fn copy<T: Copy>(to: &mut [T], from: &[T]) -> Result<()> {
    if to.len() != from.len() {
        return Err(Error::Internal(format!("{} values for a tensor of {}", from.len(), to.len())));
    }
    to.copy_from_slice(from);
    Ok(())
}

fn fault(error: ort::Error) -> Error {
    Error::Internal(format!("tensor: {error}"))
}
