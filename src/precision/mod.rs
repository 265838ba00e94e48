//! A requested precision mode in, an explicit [`Plan`] out: five dtypes for every stage.

pub mod cast;

/// A number format, as stored in a checkpoint or computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype { F64, F32, F16, BF16, E4M3, E5M2, I64, I32, I16, I8, U8, Bool }

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision { F32, F16Mixed, BF16Mixed, F16True, BF16True, F16Flash, BF16Flash }

/// The five independent settings of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dtypes { pub weights: Dtype, pub activations: Dtype, pub accumulation: Dtype, pub kv_cache: Dtype, pub output: Dtype }

/// What was asked of a stage, what its checkpoint holds, and what the device really executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagePlan { pub requested: Dtypes, pub stored: Dtype, pub executed: Dtypes }
