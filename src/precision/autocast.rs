//! An operation and the dtypes that go into it in, the dtype that it computes and answers in out.
//!
//! torch's CUDA autocast lists (`torch/amp`, 2.15), which hold on every backend here: products in the half format,
//! what adds up many values or grows fast in f32, everything else in what it is given. Never touches a tensor.

use super::Dtype;

/// Operations of a network, by the row of the lists that they are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    Linear,
    MatMul,
    BatchMatMul,
    AddBatchMatMul,
    Einsum,
    Attention,
    Conv1d,
    ConvTranspose1d,
    Prelu,
    RecurrentCell,
    Softmax,
    LogSoftmax,
    LayerNorm,
    RmsNorm,
    GroupNorm,
    /// exp, expm1, log, log1p, pow, rsqrt, reciprocal, softplus
    Elementary,
    /// sum, prod, cumsum, cumprod
    Accumulation,
    /// norm, logsumexp, cosine similarity
    Norm,
    /// L1, MSE, smooth L1, Huber, NLL, KL divergence, binary cross-entropy of logits
    Loss,
    Interpolate,
    /// Of probabilities: its gradient overflows half formats, so torch refuses it.
    BinaryCrossEntropy,
    /// Statistics and gains of f32, whatever comes in.
    BatchNorm,
    /// mean, var
    Mean,
    /// relu, leaky relu, gelu, tanh, sigmoid, dropout, embedding
    Pointwise,
    /// add, mul, cat
    Combine,
    /// addcmul, addcdiv, dot, index_put, scatter_add
    Scatter,
    /// Whatever writes into its own input.
    InPlace,
}

/// What a list does to the inputs of its operations.
enum Policy {
    Half,
    F32,
    Widest,
    First,
    Refused,
}

impl Op {
    fn policy(self) -> Policy {
        match self {
            Self::Linear | Self::MatMul | Self::BatchMatMul | Self::AddBatchMatMul | Self::Einsum => {
                Policy::Half
            }
            Self::Attention | Self::Conv1d | Self::ConvTranspose1d => Policy::Half,
            Self::Prelu | Self::RecurrentCell => Policy::Half,
            Self::Softmax | Self::LogSoftmax | Self::LayerNorm | Self::RmsNorm | Self::GroupNorm => {
                Policy::F32
            }
            Self::Elementary | Self::Accumulation | Self::Norm | Self::Loss | Self::Interpolate => {
                Policy::F32
            }
            Self::BinaryCrossEntropy => Policy::Refused,
            Self::Combine | Self::Scatter => Policy::Widest,
            Self::BatchNorm | Self::Mean | Self::Pointwise | Self::InPlace => Policy::First,
        }
    }
}

/// The dtype in which `op` computes and answers under autocast to `half`, given its floating `inputs`, the one that it
/// works on first. `None` where torch refuses the operation, and where there is no input.
pub fn output(op: Op, inputs: &[Dtype], half: Dtype) -> Option<Dtype> {
    let first = inputs.first().copied()?;
    match op.policy() {
        Policy::Half => Some(half),
        Policy::F32 => Some(Dtype::F32),
        Policy::Widest => inputs.iter().copied().max_by_key(|dtype| dtype.size_bytes()),
        Policy::First => Some(first),
        Policy::Refused => None,
    }
}
