//! A corpus and its speakers in, batches and sentences of it out.
//!
//! A mel is used in whole decoder steps: up to `reduction_factor - 1` frames at its end are left, as the reference does.
//! Never decides which clips are heard together.

use sha2::{Digest, Sha256};

use super::corpus::Utterance;
use super::network::{Batch, Speaker};
use crate::error::{Error, Result};
use crate::voice::config::AcousticConfig;

/// The clips of a run.
#[derive(Debug)]
pub struct Clips {
    utterances: Vec<Utterance>,
    speakers: Vec<Speaker>,
    /// Values of a mel that one decoder step gives.
    step: usize,
}

impl Clips {
    /// # Errors
    /// [`Error::InvalidRequest`] for a clip that the network cannot hear: shorter than a step, longer than its positions,
    /// or without a symbol.
    pub fn new(utterances: Vec<Utterance>, speakers: Vec<Speaker>, config: &AcousticConfig) -> Result<Self> {
        let step = config.num_mel_bins * config.reduction_factor;
        for Utterance { line, symbols, mel, .. } in &utterances {
            let (steps, symbols) = (mel.len() / step, symbols.len());
            let (most_steps, most_symbols) = (config.max_speech_positions, config.max_text_positions);
            if !(1..=most_steps).contains(&steps) || !(1..=most_symbols).contains(&symbols) {
                return Err(Error::InvalidRequest(format!(
                    "line {line} has {steps} decoder steps and {symbols} symbols: 1 to {most_steps} and 1 to \
                     {most_symbols} can be learned"
                )));
            }
        }
        Ok(Self { utterances, speakers, step })
    }

    pub fn len(&self) -> usize {
        self.utterances.len()
    }

    pub fn get(&self, clip: usize) -> Option<(&Utterance, &Speaker)> {
        self.utterances.get(clip).zip(self.speakers.get(clip))
    }

    /// Frames of `clips`.
    pub fn lengths(&self, clips: &[usize]) -> Vec<usize> {
        clips.iter().map(|clip| self.get(*clip).map_or(0, |(utterance, _)| utterance.frames)).collect()
    }

    /// `clips` as the network hears them.
    pub fn batch(&self, clips: &[usize]) -> Batch {
        let (mut ids, mut mels, mut speakers) = (vec![], vec![], vec![]);
        for (utterance, speaker) in clips.iter().filter_map(|clip| self.get(*clip)) {
            let whole = utterance.mel.len() / self.step * self.step;
            ids.push(utterance.symbols.clone());
            mels.push(utterance.mel[..whole].to_vec());
            speakers.push(speaker.clone());
        }
        Batch { ids, mels, speakers }
    }

    /// What identifies the data: the SHA-256 of all that a run learns from.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (utterance, speaker) in self.utterances.iter().zip(&self.speakers) {
            let numbers = |hash: &mut Sha256, values: &[f32]| {
                values.iter().for_each(|value| hash.update(value.to_le_bytes()));
            };
            hash.update((utterance.symbols.len() as u64).to_le_bytes());
            utterance.symbols.iter().for_each(|symbol| hash.update(symbol.to_le_bytes()));
            hash.update((utterance.mel.len() as u64).to_le_bytes());
            numbers(&mut hash, &utterance.mel);
            match speaker {
                Speaker::Given(embedding) => numbers(&mut hash, embedding),
                Speaker::Learned(name) => hash.update(name),
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
