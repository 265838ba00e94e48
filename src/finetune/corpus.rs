//! A data set and a voice in, everything that a network learns from out: symbols and mels.
//!
//! Clips are decoded side by side, one a thread at a time and none beyond the longest that is wanted. Never leaves a
//! clip out without its line and the reason.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::dataset::{Clip, DataSet};
use super::feature_cache::FeatureCache;
use super::intake::{Intake, Taken};
use crate::error::{Error, Result};
use crate::voice::Voice;

pub use super::defect::LeftOut;

/// How clips are taken in.
#[derive(Debug, Clone, PartialEq)]
pub struct CorpusOptions {
    /// Cuts the silence before and after the speech, up to a margin.
    pub trim: bool,
    /// The loudness that every clip is brought to, in LUFS.
    pub level: Option<f32>,
    /// A directory that keeps mels from one run to the next.
    pub cache: Option<PathBuf>,
    /// Shorter clips are left out, after trimming.
    pub min_seconds: f32,
    /// Longer clips are left out, after trimming.
    pub max_seconds: f32,
}

impl Default for CorpusOptions {
    fn default() -> Self {
        Self { trim: false, level: None, cache: None, min_seconds: 0.3, max_seconds: 20.0 }
    }
}

impl CorpusOptions {
    pub(super) fn check(&self) -> Result<()> {
        let Self { min_seconds: min, max_seconds: max, level, .. } = *self;
        if !(min >= 0.0 && min < max && max <= 600.0) {
            return Err(Error::InvalidRequest(format!(
                "clips of {min} to {max} s: the shortest must be at least 0 s, the longest longer and at most 600 s"
            )));
        }
        match level {
            Some(lufs) if !(-70.0..=0.0).contains(&lufs) => {
                Err(Error::InvalidRequest(format!("a level of {lufs} LUFS is not in -70..=0")))
            }
            _ => Ok(()),
        }
    }
}

/// A clip as a network learns it.
#[derive(Debug, Clone, PartialEq)]
pub struct Utterance {
    /// Where it is listed, from 1 on.
    pub line: usize,
    /// As it was written.
    pub text: String,
    /// What the encoder takes, start and end included.
    pub symbols: Vec<i64>,
    /// [frames, n_mels]
    pub mel: Vec<f32>,
    /// As many as the sound has: not rounded to whole decoder steps.
    pub frames: usize,
    pub speaker: Option<String>,
}

/// What is learned from, and what is not. Both are in the order of the listing.
#[derive(Debug, Clone, Default)]
pub struct Corpus {
    pub utterances: Vec<Utterance>,
    pub left_out: Vec<LeftOut>,
}

impl Corpus {
    /// Takes in the data set at `data` for `voice`.
    ///
    /// # Errors
    /// As [`DataSet::load`] and [`crate::text::Frontend::load`]; [`Error::InvalidVoice`] when the voice does not say
    /// how its mel is made, [`Error::InvalidRequest`] for options that no clip can meet, [`Error::Io`] when the cache
    /// cannot be written.
    pub fn load(voice: &Voice, data: &Path, options: &CorpusOptions) -> Result<Self> {
        let intake = Intake::load(voice, options)?;
        let DataSet { clips, mut left_out, .. } = DataSet::load(data)?;
        let cache =
            options.cache.as_deref().map(|directory| FeatureCache::open(directory, intake.recipe(), &clips));
        let cache = cache.transpose()?;
        let taken: Vec<(usize, Taken<Utterance>)> = clips
            .into_par_iter()
            .map(|clip| Ok((clip.line, utterance(&intake, cache.as_ref(), clip)?)))
            .collect::<Result<_>>()?;
        let mut utterances = Vec::with_capacity(taken.len());
        for (line, taken) in taken {
            match taken {
                Ok(utterance) => utterances.push(utterance),
                Err((defect, reason)) => left_out.push(LeftOut { line, defect, reason }),
            }
        }
        left_out.sort_by_key(|left| left.line);
        Ok(Self { utterances, left_out })
    }
}

fn utterance(intake: &Intake, cache: Option<&FeatureCache>, clip: Clip) -> Result<Taken<Utterance>> {
    let n_mels = intake.n_mels();
    let segment = match intake.read(&clip.text) {
        Ok(segment) => segment,
        Err(wrong) => return Ok(Err(wrong)),
    };
    let mel = match cache.and_then(|cache| cache.read(&clip, n_mels)) {
        Some(mel) => mel,
        None => {
            let mel = match intake.hear(&clip).and_then(|sound| intake.mel(&sound)) {
                Ok(mel) => mel,
                Err(wrong) => return Ok(Err(wrong)),
            };
            if let Some(cache) = cache {
                cache.write(&clip, n_mels, &mel)?;
            }
            mel
        }
    };
    let frames = mel.len() / n_mels.max(1);
    let Clip { line, text, speaker, .. } = clip;
    Ok(Ok(Utterance { line, text, symbols: segment.ids, mel, frames, speaker }))
}
