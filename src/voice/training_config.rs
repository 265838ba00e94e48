//! `config.json` in, what only training reads of it out.
//!
//! Defaults are those of `configuration_speecht5.py`, 5.24. Never decides how a run goes.

use serde::Deserialize;

use super::bounds::Checked;

/// Dropouts, and how attention is guided.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct TrainingConfig {
    pub hidden_dropout: f32,
    pub attention_dropout: f32,
    pub activation_dropout: f32,
    pub positional_dropout: f32,
    pub speech_decoder_postnet_dropout: f32,
    pub use_guided_attention_loss: bool,
    /// Heads of every layer whose attention is guided.
    pub guided_attention_loss_num_heads: usize,
    pub guided_attention_loss_sigma: f32,
    pub guided_attention_loss_scale: f32,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            hidden_dropout: 0.1,
            attention_dropout: 0.1,
            activation_dropout: 0.1,
            positional_dropout: 0.1,
            speech_decoder_postnet_dropout: 0.5,
            use_guided_attention_loss: true,
            guided_attention_loss_num_heads: 2,
            guided_attention_loss_sigma: 0.4,
            guided_attention_loss_scale: 10.0,
        }
    }
}

impl TrainingConfig {
    pub(super) fn check(&self) -> Checked {
        for (field, p) in [
            ("hidden_dropout", self.hidden_dropout),
            ("attention_dropout", self.attention_dropout),
            ("activation_dropout", self.activation_dropout),
            ("positional_dropout", self.positional_dropout),
            ("speech_decoder_postnet_dropout", self.speech_decoder_postnet_dropout),
        ] {
            if !(0.0..1.0).contains(&p) {
                return Err(format!("{field} {p} is not in 0..1"));
            }
        }
        let sigma = self.guided_attention_loss_sigma;
        if !(sigma.is_finite() && sigma > 0.0) {
            return Err(format!("guided_attention_loss_sigma {sigma} is not above 0"));
        }
        Ok(())
    }
}
