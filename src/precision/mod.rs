//! A requested precision mode in, an explicit [`Plan`] out: five dtypes for every stage, as they are
//! requested, stored and really executed.
//!
//! Modes are named here, resolved in [`resolve()`], carried out with [`cast`] and [`convert`]. A mode is an
//! enum from the moment it was parsed and never a string again; nothing here probes hardware while it
//! resolves, and nothing outside [`cast`] changes a number's format.

pub mod autocast;
pub mod cast;
pub mod convert;
mod device;
mod plan;
mod resolve;
pub mod scaler;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

pub use device::{Device, X86Features};
pub use plan::{Dtypes, LossScaling, MasterWeights, OptimizerStates, Plan, StagePlan, TrainingPlan};
pub use resolve::{Purpose, resolve};

/// A number format, as stored in a checkpoint or computed in.
///
/// `E4M3` is the finite-only variant (E4M3FN: no infinity, largest value 448); `C64` is a pair of f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dtype {
    F64,
    F32,
    F16,
    BF16,
    E4M3,
    E5M2,
    C64,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

impl Dtype {
    /// Bytes of one element.
    pub fn size_bytes(self) -> usize {
        match self {
            Self::F64 | Self::C64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 | Self::I16 => 2,
            Self::E4M3 | Self::E5M2 | Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether the batch rule casts it: every real floating format, the 8-bit ones and f64 included.
    pub fn is_floating(self) -> bool {
        self.significant_bits().is_some()
    }

    /// Bits of the significand with the hidden one; `None` for what is not a real floating format.
    pub fn significant_bits(self) -> Option<u32> {
        match self {
            Self::F64 => Some(53),
            Self::F32 => Some(24),
            Self::F16 => Some(11),
            Self::BF16 => Some(8),
            Self::E4M3 => Some(4),
            Self::E5M2 => Some(3),
            Self::C64 | Self::I64 | Self::I32 | Self::I16 | Self::I8 | Self::U8 | Self::Bool => None,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::E4M3 => "e4m3",
            Self::E5M2 => "e5m2",
            Self::C64 => "c64",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::Bool => "bool",
        })
    }
}

/// A precision mode. `Mixed` keeps f32 weights and narrows what flows between them; `True` narrows both;
/// `Flash` is `True` with a training step that keeps the weights' lost bits in an 8-bit residual.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    #[default]
    F32,
    F16Mixed,
    BF16Mixed,
    F16True,
    BF16True,
    F16Flash,
    BF16Flash,
}

const HISTORICAL_16: &str = "precision `16` is a historical name of `16-mixed`: write `16-mixed`";
const HISTORICAL_BF16: &str = "precision `bf16` is a historical name of `bf16-mixed`: write `bf16-mixed`";
const GUARDED_16_TRUE: &str = "precision `16-true` is taken as `fp16-true`, which keeps audio out of half \
     precision; other programs give this spelling no such guard: write `fp16-true`";
const AUTOMODEL_F16: &str = "precision `fp16-automodel` is an alias of `fp16-flash`: write `fp16-flash`";
const AUTOMODEL_BF16: &str = "precision `bf16-automodel` is taken as `bf16-flash`; newer programs give this \
     name a mode of its own that casts no weights: write `bf16-flash`";

/// Every accepted spelling, its mode, and what to say about spellings that mislead elsewhere.
const NAMES: [(&str, Precision, Option<&str>); 14] = [
    ("32", Precision::F32, None),
    ("32-true", Precision::F32, None),
    ("16", Precision::F16Mixed, Some(HISTORICAL_16)),
    ("16-mixed", Precision::F16Mixed, None),
    ("fp16-mixed", Precision::F16Mixed, None),
    ("bf16", Precision::BF16Mixed, Some(HISTORICAL_BF16)),
    ("bf16-mixed", Precision::BF16Mixed, None),
    ("fp16-true", Precision::F16True, None),
    ("16-true", Precision::F16True, Some(GUARDED_16_TRUE)),
    ("bf16-true", Precision::BF16True, None),
    ("fp16-flash", Precision::F16Flash, None),
    ("bf16-flash", Precision::BF16Flash, None),
    ("fp16-automodel", Precision::F16Flash, Some(AUTOMODEL_F16)),
    ("bf16-automodel", Precision::BF16Flash, Some(AUTOMODEL_BF16)),
];

impl Precision {
    pub const ALL: [Self; 7] = [
        Self::F32,
        Self::F16Mixed,
        Self::BF16Mixed,
        Self::F16True,
        Self::BF16True,
        Self::F16Flash,
        Self::BF16Flash,
    ];

    /// The mode called `name`, exactly and case-sensitively, and a sentence to show if the spelling is
    /// discouraged.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for any other name; the message lists the accepted ones.
    pub fn parse(name: &str) -> Result<(Self, Option<&'static str>)> {
        if let Some(&(_, precision, warning)) = NAMES.iter().find(|(accepted, ..)| *accepted == name) {
            return Ok((precision, warning));
        }
        let reason = match name {
            "64" | "64-true" => "is refused: no stage computes in more than 32 bits",
            "transformer-engine" | "transformer-engine-float16" => {
                "is refused: it needs NVIDIA's Transformer Engine, which this program does not use"
            }
            _ => "is not known",
        };
        let accepted: Vec<&str> = NAMES.iter().map(|(accepted, ..)| *accepted).collect();
        Err(Error::InvalidRequest(format!("precision {name:?} {reason}; accepted: {}", accepted.join(", "))))
    }

    /// The 16-bit format of the mode; `None` for [`Precision::F32`].
    pub fn half(self) -> Option<Dtype> {
        match self {
            Self::F32 => None,
            Self::F16Mixed | Self::F16True | Self::F16Flash => Some(Dtype::F16),
            Self::BF16Mixed | Self::BF16True | Self::BF16Flash => Some(Dtype::BF16),
        }
    }

    /// Whether weights themselves are narrowed, not only what flows between them.
    pub fn narrows_weights(self) -> bool {
        matches!(self, Self::F16True | Self::BF16True) || self.is_flash()
    }

    pub fn is_flash(self) -> bool {
        matches!(self, Self::F16Flash | Self::BF16Flash)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "32",
            Self::F16Mixed => "16-mixed",
            Self::BF16Mixed => "bf16-mixed",
            Self::F16True => "fp16-true",
            Self::BF16True => "bf16-true",
            Self::F16Flash => "fp16-flash",
            Self::BF16Flash => "bf16-flash",
        })
    }
}

/// [`Precision::parse`] with its warning sent to the log.
impl FromStr for Precision {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let (precision, warning) = Self::parse(name)?;
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
        Ok(precision)
    }
}
