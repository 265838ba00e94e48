//! The name of an encoding in, how its samples are written out.
//!
//! Never writes one.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Excerpt, Result};

/// How a sample is written. One channel, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Signed 16-bit little-endian, without a header.
    PcmS16Le,
    /// 32-bit IEEE float little-endian, without a header, not clipped.
    PcmF32Le,
    /// 8-bit µ-law of ITU-T G.711, without a header.
    MuLaw,
    /// Signed 16-bit little-endian behind one WAV header.
    WavS16,
}

impl Encoding {
    pub const ALL: [Self; 4] = [Self::PcmS16Le, Self::PcmF32Le, Self::MuLaw, Self::WavS16];

    pub fn bytes_per_sample(self) -> usize {
        match self {
            Self::PcmS16Le | Self::WavS16 => 2,
            Self::PcmF32Le => 4,
            Self::MuLaw => 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::PcmS16Le => "s16le",
            Self::PcmF32Le => "f32le",
            Self::MuLaw => "mulaw",
            Self::WavS16 => "wav",
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|encoding| encoding.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::InvalidRequest(format!("encoding `{}` is none of {names}", Excerpt(text)))
        })
    }
}
