//! A checkpoint file in, named tensors out.

use crate::error::Result;
use crate::precision::Dtype;

/// One named tensor: raw little-endian bytes, row-major, with their dtype and shape.
#[derive(Debug, Clone)]
pub struct Tensor<'a> {
    pub dtype: Dtype,
    pub shape: &'a [usize],
    pub data: &'a [u8],
}

/// Every tensor of one file, by name.
#[derive(Debug)]
pub struct Checkpoint {}

impl Checkpoint {
    /// The tensor called `name`; an error that names it when the checkpoint has none.
    pub fn tensor(&self, _name: &str) -> Result<Tensor<'_>> {
        todo!()
    }

    /// The values of `name` widened to f32, in row-major order.
    pub fn f32(&self, _name: &str) -> Result<Vec<f32>> {
        todo!()
    }
}
