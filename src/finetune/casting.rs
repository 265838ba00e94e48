//! A voice, a choice and the speakers of a data set in, who says each of its clips out.
//!
//! Never gives a speaker whom the voice does not know another one's embedding without saying so.

use std::collections::{BTreeMap, BTreeSet};

use super::corpus::Utterance;
use super::network::Speaker;
use super::settings::LEARNED;
use crate::error::{Error, Excerpt, Result};
use crate::voice::Voice;

/// Who speaks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Casting {
    /// For every clip.
    pub speakers: Vec<Speaker>,
    /// Embeddings that learn, as they begin.
    pub learned: BTreeMap<String, Vec<f32>>,
    /// What the new voice has beside these: a name and its embedding.
    pub added: Option<(String, Vec<f32>)>,
    /// Whom the new voice speaks as when nobody says.
    pub default: Option<String>,
    /// What a person should know; whole sentences.
    pub notices: Vec<String>,
}

impl Casting {
    /// Casts `utterances` as `choice` says: [`LEARNED`], a speaker of `voice` or a file; without one, each clip's own
    /// speaker where the voice knows it, and its default speaker elsewhere.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a speaker that is not there.
    pub fn new(voice: &Voice, choice: Option<&str>, utterances: &[Utterance]) -> Result<Self> {
        match choice {
            Some(LEARNED) => Self::learned(voice, utterances),
            Some(named) => {
                let embedding = voice.speaker(Some(named))?;
                let known = voice.speakers.embeddings.contains_key(named);
                let name = if known { named.to_owned() } else { stem(named) };
                let speakers = vec![Speaker::Given(embedding.clone()); utterances.len()];
                let added = (!known).then(|| (name.clone(), embedding));
                Ok(Self { speakers, added, default: Some(name), ..Self::default() })
            }
            None => Self::of_voice(voice, utterances),
        }
    }

    fn learned(voice: &Voice, utterances: &[Utterance]) -> Result<Self> {
        let name = |utterance: &Utterance| utterance.speaker.clone().unwrap_or_else(|| LEARNED.to_owned());
        let of_default = voice.speakers.default.as_deref();
        let learned = utterances.iter().map(name).map(|name| {
            // Somebody whom the voice knows begins as who they were, a new one as the default speaker.
            let known = [Some(name.as_str()), of_default].into_iter().flatten();
            let found = known.filter_map(|name| voice.speakers.embeddings.get(name)).next();
            let embedding = found.cloned().unwrap_or_else(|| {
                let dimensions = voice.speakers.dimensions;
                vec![1.0 / (dimensions as f32).sqrt(); dimensions]
            });
            (name, embedding)
        });
        let learned: BTreeMap<String, Vec<f32>> = learned.collect();
        let mut clips: BTreeMap<String, usize> = BTreeMap::new();
        utterances.iter().map(name).for_each(|name| *clips.entry(name).or_default() += 1);
        // Whoever the voice spoke as before, if they are in the recordings, else whoever has most of them.
        let before = voice.speakers.default.clone().filter(|name| learned.contains_key(name));
        let most = clips.into_iter().max_by_key(|(_, clips)| *clips).map(|(name, _)| name);
        let default = before.or(most);
        let speakers = utterances.iter().map(|utterance| Speaker::Learned(name(utterance))).collect();
        Ok(Self { speakers, learned, default, ..Self::default() })
    }

    fn of_voice(voice: &Voice, utterances: &[Utterance]) -> Result<Self> {
        let default = match &voice.speakers.default {
            Some(name) => Some(voice.speakers.named(Some(name))?),
            None => None,
        };
        let mut strangers = BTreeSet::new();
        let mut speakers = Vec::new();
        for utterance in utterances {
            let known =
                utterance.speaker.as_deref().filter(|name| voice.speakers.embeddings.contains_key(*name));
            let embedding = match (known, &default) {
                (Some(name), _) => voice.speakers.named(Some(name))?,
                (None, Some(default)) => {
                    strangers.extend(utterance.speaker.clone());
                    default.clone()
                }
                (None, None) => {
                    return Err(Error::InvalidRequest(format!(
                        "line {}: the voice has no default speaker: give --speaker {LEARNED}, one of its speakers or a \
                         file with an embedding",
                        utterance.line
                    )));
                }
            };
            speakers.push(Speaker::Given(embedding));
        }
        let notices = Some(&strangers).filter(|strangers| !strangers.is_empty()).map(|strangers| {
            let names = crate::error::listed(strangers.iter().map(String::as_str));
            format!(
                "the voice does not know {names}: their clips are learned as its default speaker; --speaker {LEARNED} \
                 gives each an embedding of their own"
            )
        });
        Ok(Self { speakers, notices: notices.into_iter().collect(), ..Self::default() })
    }
}

/// What a speaker from a file is called: the file's name without its ending.
fn stem(path: &str) -> String {
    let stem = std::path::Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|stem| !stem.is_empty()).unwrap_or_else(|| Excerpt(path).to_string())
}
