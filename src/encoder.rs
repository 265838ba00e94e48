//! Symbol ids and a speaker embedding in, an [`Encoded`] sentence out: hidden states, and the cross-attention
//! keys and values that every decoder step reads.
//!
//! Never splits or pads: a sentence that is too long is refused, and the text stage makes sure there is none.

use crate::error::{Error, Result};
use crate::graph::encoder as graph;
use crate::precision::Plan;
use crate::runtime::{Runtime, Session, Tensor};
use crate::voice::{FiniteCheck, Voice};

/// The text encoder of one voice.
pub struct Encoder {
    session: Session,
    decoder_layers: usize,
    vocab_size: usize,
    max_tokens: usize,
    speaker_embedding_dim: usize,
    finite: FiniteCheck,
}

/// What the decoder needs to know of a sentence.
#[derive(Debug)]
pub struct Encoded {
    pub tokens: usize,
    /// f32 [1, tokens, hidden]
    pub hidden: Tensor,
    /// f32 [1, hidden]
    pub speaker_bias: Tensor,
    /// By decoder layer, KV dtype [1, heads, tokens, head_dim]
    pub cross_keys: Vec<Tensor>,
    /// By decoder layer, KV dtype [1, heads, tokens, head_dim]
    pub cross_values: Vec<Tensor>,
}

impl Encoder {
    /// Builds the encoder graph of `voice` in the dtypes of `plan` and loads it.
    pub fn load(runtime: &Runtime, voice: &Voice, plan: &Plan, threads: usize) -> Result<Self> {
        let model = graph::encoder(voice, plan.encoder)?;
        let config = &voice.config;
        Ok(Self {
            session: runtime.session("encoder", &model, threads)?,
            decoder_layers: config.decoder_layers,
            vocab_size: config.vocab_size,
            max_tokens: voice.segment_symbols,
            speaker_embedding_dim: config.speaker_embedding_dim,
            finite: FiniteCheck::new(voice, plan.precision),
        })
    }

    /// Encodes one sentence.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for no ids, more than `Voice::segment_symbols`, an id outside the vocabulary,
    /// or a speaker embedding of another length; [`Error::InvalidVoice`] when hidden states or the speaker's bias
    /// are not finite.
    pub fn encode(&mut self, ids: &[i64], speaker: &[f32]) -> Result<Encoded> {
        self.check(ids, speaker)?;
        let ids_tensor = Tensor::i64(&[1, ids.len()], ids)?;
        let speaker = Tensor::f32(&[1, speaker.len()], speaker)?;
        let inputs = [(graph::INPUT_IDS, &ids_tensor), (graph::SPEAKER_EMBEDDING, &speaker)];

        let layers = 0..self.decoder_layers;
        let names: Vec<String> =
            layers.clone().map(graph::cross_key).chain(layers.map(graph::cross_value)).collect();
        let mut outputs: Vec<&str> = names.iter().map(String::as_str).collect();
        outputs.extend([graph::HIDDEN, graph::SPEAKER_BIAS]);
        let mut found = self.session.run(&inputs, &outputs)?;
        let lost = || Error::Internal("the encoder graph lost an output".to_owned());
        let speaker_bias = found.pop().ok_or_else(lost)?;
        let hidden = found.pop().ok_or_else(lost)?;
        // Keys and values that overflow from finite hidden states show in the decoder's frames.
        self.finite.check("the encoder's hidden states", hidden.as_f32()?)?;
        self.finite.check("the speaker's part of the decoder prenet", speaker_bias.as_f32()?)?;
        let cross_values = found.split_off(self.decoder_layers);
        Ok(Encoded { tokens: ids.len(), hidden, speaker_bias, cross_keys: found, cross_values })
    }

    fn check(&self, ids: &[i64], speaker: &[f32]) -> Result<()> {
        let refuse = |reason: String| Err(Error::InvalidRequest(reason));
        if ids.is_empty() {
            return refuse("there is nothing to speak: no symbols".to_owned());
        }
        if ids.len() > self.max_tokens {
            return refuse(format!(
                "{} symbols in one sentence; this voice takes {}",
                ids.len(),
                self.max_tokens
            ));
        }
        let known = |id: i64| usize::try_from(id).is_ok_and(|id| id < self.vocab_size);
        if let Some(id) = ids.iter().find(|&&id| !known(id)) {
            return refuse(format!("symbol id {id} is outside the vocabulary of {}", self.vocab_size));
        }
        if speaker.len() != self.speaker_embedding_dim {
            let (found, expected) = (speaker.len(), self.speaker_embedding_dim);
            return refuse(format!("a speaker embedding of {found} values; this voice takes {expected}"));
        }
        Ok(())
    }
}
