//! The names of parts of a network in, whether a tensor learns out.
//!
//! Never freezes a tensor that nobody named, and never takes a name that freezes nothing.

use crate::error::{Error, Excerpt, Result};

/// What can be named, and how its tensors begin.
const PARTS: [(&str, &[&str]); 7] = [
    ("embedding", &["speecht5.encoder.prenet.embed_tokens."]),
    ("encoder", &["speecht5.encoder."]),
    ("decoder", &["speecht5.decoder."]),
    ("prenet", &["speecht5.decoder.prenet."]),
    ("speaker", &["speecht5.decoder.prenet.speaker_embeds_layer."]),
    ("heads", &["speech_decoder_postnet.feat_out.", "speech_decoder_postnet.prob_out."]),
    ("postnet", &["speech_decoder_postnet.layers."]),
];

/// Which tensors of a network learn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    frozen: Vec<&'static str>,
}

impl Selection {
    /// Everything but `parts`.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a part that there is not, or when nothing is left to learn.
    pub fn without<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut frozen = Vec::new();
        for part in parts {
            let found = PARTS.iter().find(|(name, _)| *name == part.trim());
            let (_, prefixes) = found.ok_or_else(|| {
                let names = PARTS.map(|(name, _)| name).join(", ");
                Error::InvalidRequest(format!(
                    "cannot freeze {:?}: choose from {names}",
                    Excerpt(part).to_string()
                ))
            })?;
            frozen.extend_from_slice(prefixes);
        }
        let selection = Self { frozen };
        if PARTS.iter().flat_map(|(_, prefixes)| *prefixes).all(|prefix| !selection.trains(prefix)) {
            return Err(Error::InvalidRequest("every part is frozen: nothing is left to learn".to_owned()));
        }
        Ok(selection)
    }

    /// Whether the tensor called `name` learns.
    pub fn trains(&self, name: &str) -> bool {
        !self.frozen.iter().any(|prefix| name.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = [
        "speecht5.encoder.prenet.embed_tokens.weight",
        "speecht5.encoder.wrapped_encoder.layers.0.attention.q_proj.weight",
        "speecht5.decoder.prenet.speaker_embeds_layer.bias",
        "speecht5.decoder.wrapped_decoder.layers.0.encoder_attn.q_proj.weight",
        "speech_decoder_postnet.prob_out.weight",
        "speech_decoder_postnet.layers.0.conv.weight",
    ];

    fn check(parts: &[&str], trained: [bool; 6]) {
        let selection = Selection::without(parts.iter().copied()).unwrap();
        assert_eq!(NAMES.map(|name| selection.trains(name)), trained, "{parts:?}");
    }

    #[test]
    fn what_is_named_is_frozen() {
        let (yes, no) = (true, false);
        check(&[], [yes; 6]);
        check(&["encoder"], [no, no, yes, yes, yes, yes]);
        check(&["embedding", "postnet"], [no, yes, yes, yes, yes, no]);
        check(&["decoder"], [yes, yes, no, no, yes, yes]);
        check(&[" speaker", "heads "], [yes, yes, no, yes, no, yes]);
        check(&["prenet"], [yes, yes, no, yes, yes, yes]);
    }

    #[test]
    fn what_cannot_be_frozen_is_refused() {
        let refused = |parts: &[&str]| Selection::without(parts.iter().copied()).unwrap_err().to_string();
        assert!(
            refused(&["vocoder"]).starts_with("cannot freeze \"vocoder\": choose from embedding, encoder,")
        );
        assert!(refused(&["Encoder"]).contains("choose from"));
        assert_eq!(
            refused(&["encoder", "decoder", "heads", "postnet"]),
            "every part is frozen: nothing is left to learn"
        );
    }
}
