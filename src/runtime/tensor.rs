//! Shapes and numbers in, memory that a session can read and write out.
//!
//! Never casts: a tensor is read in the dtype it has.

use half::f16;
use ort::AsPointer;
use ort::memory::Allocator;
use ort::value::{DynTensor, DynValue, PrimitiveTensorElementType, Shape, TensorElementType, TensorRefMut};

use crate::error::{Error, Result};
use crate::precision::Dtype;

/// A dense row-major tensor in memory that ONNX Runtime owns.
#[derive(Debug)]
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

    /// An f32 or f16 tensor of `shape` whose contents nobody may read before they are written. In debug builds
    /// they are NaN, so that a wrong read is loud; in release builds the pages stay untouched.
    pub fn unwritten(dtype: Dtype, shape: &[usize]) -> Result<Self> {
        let mut tensor = Self::uninitialised(dtype, shape)?;
        if cfg!(debug_assertions) {
            match dtype {
                Dtype::F16 => tensor.slice_mut::<f16>()?.fill(f16::NAN),
                _ => tensor.f32_mut()?.fill(f32::NAN),
            }
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

    /// Hands `use_rows` a runtime value of `shape` over the first bytes of this tensor's memory.
    ///
    /// # Errors
    /// [`Error::Internal`] when `shape` holds more than the tensor.
    pub(super) fn with_rows<T>(
        &self,
        shape: &[usize],
        use_rows: impl FnOnce(*const ort::sys::OrtValue) -> Result<T>,
    ) -> Result<T> {
        let (asked, held) = (shape.iter().product::<usize>(), self.shape().iter().product::<usize>());
        if asked > held {
            return Err(Error::Internal(format!("{asked} values of a tensor that holds {held}")));
        }
        match self.0.data_type() {
            TensorElementType::Float32 => self.with_typed_rows::<f32, T>(shape, use_rows),
            TensorElementType::Float16 => self.with_typed_rows::<f16, T>(shape, use_rows),
            TensorElementType::Int64 => self.with_typed_rows::<i64, T>(shape, use_rows),
            TensorElementType::Int32 => self.with_typed_rows::<i32, T>(shape, use_rows),
            other => Err(Error::Internal(format!("no session takes {other} tensors"))),
        }
    }

    fn with_typed_rows<E: PrimitiveTensorElementType + std::fmt::Debug, T>(
        &self,
        shape: &[usize],
        use_rows: impl FnOnce(*const ort::sys::OrtValue) -> Result<T>,
    ) -> Result<T> {
        let dims = Shape::new(shape.iter().map(|&d| d as i64));
        let info = self.0.memory_info().to_owned();
        // SAFETY: the memory is this tensor's own, of its element type, and holds at least `dims`.
        let rows = unsafe { TensorRefMut::<E>::from_raw(info, self.0.data_ptr().cast_mut(), dims) }
            .map_err(fault)?;
        use_rows(rows.ptr())
    }

    pub fn shape(&self) -> Vec<usize> {
        self.0.shape().iter().map(|&d| d as usize).collect()
    }

    pub fn as_f32(&self) -> Result<&[f32]> {
        self.slice()
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

    /// The raw bytes, for moving values that nobody interprets.
    pub fn bytes(&self) -> Result<&[u8]> {
        match self.0.data_type() {
            TensorElementType::Float16 => self.slice::<f16>().map(bytemuck::cast_slice),
            _ => self.slice::<f32>().map(bytemuck::cast_slice),
        }
    }

    /// The raw bytes, for moving values that nobody interprets.
    pub fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        match self.0.data_type() {
            TensorElementType::Float16 => self.slice_mut::<f16>().map(bytemuck::cast_slice_mut),
            _ => self.slice_mut::<f32>().map(bytemuck::cast_slice_mut),
        }
    }

    fn slice<T: PrimitiveTensorElementType>(&self) -> Result<&[T]> {
        self.0.try_extract_tensor::<T>().map(|(_, data)| data).map_err(fault)
    }

    fn slice_mut<T: PrimitiveTensorElementType>(&mut self) -> Result<&mut [T]> {
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
