//! What a stage gave in, a complaint about the voice's weights out where it is no number.
//!
//! Weights are finite when they are loaded, but their products need not be. Never changes a value.

use super::Voice;
use crate::error::{Error, Result};
use crate::precision::Precision;

/// Holds the output of one voice's stages against the least that an output must be.
#[derive(Debug, Clone)]
pub struct FiniteCheck {
    voice: String,
    precision: Precision,
}

impl FiniteCheck {
    pub fn new(voice: &Voice, precision: Precision) -> Self {
        Self { voice: voice.name.clone(), precision }
    }

    /// # Errors
    /// [`Error::InvalidVoice`] that says `output`, as in "the encoder's hidden states", when a value is not
    /// finite.
    pub fn check(&self, output: &str, values: &[f32]) -> Result<()> {
        let Some(value) = values.iter().find(|value| !value.is_finite()) else { return Ok(()) };
        let reason = format!(
            "{output} are not finite ({value}): the weights are damaged, or overflow in precision {}",
            self.precision
        );
        Err(Error::voice(&self.voice, reason))
    }
}
