//! A voice and a data set in, what the voice can learn of it out: symbols and mels, and what was left out and why.
//!
//! Never shortens a clip.

use std::path::Path;
use std::sync::Arc;

use super::dataset::DataSet;
use super::features::MelExtractor;
use super::recording::Recording;
use crate::error::{Error, Result};
use crate::text::{Frontend, Lexicon, Reading};
use crate::voice::Voice;

/// One clip that a voice can learn.
#[derive(Debug, Clone, PartialEq)]
pub struct Utterance {
    /// Of the listing, from 1 on.
    pub line: usize,
    pub text: String,
    pub symbols: Vec<i64>,
    /// [frames, n_mels]
    pub mel: Vec<f32>,
    pub frames: usize,
    pub speaker: Option<String>,
}

/// A line that nothing is learned from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub line: usize,
    pub reason: String,
}

/// What can be learned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Corpus {
    pub utterances: Vec<Utterance>,
    pub left_out: Vec<LeftOut>,
}

/// How a corpus is read.
#[derive(Debug, Clone, Default)]
pub struct CorpusOptions {
    /// How words sound.
    pub lexicon: Option<Arc<Lexicon>>,
}

impl Corpus {
    /// Reads `data`, a directory or a listing.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when there is no listing or the voice does not say what its mel is.
    pub fn load(voice: &Voice, data: &Path, options: &CorpusOptions) -> Result<Self> {
        let silent = || Error::InvalidRequest(format!("voice {} does not say what its mel is", voice.name));
        let mel = voice.mel.as_ref().ok_or_else(silent)?;
        let extractor = MelExtractor::new(mel, voice.config.num_mel_bins)?;
        let mut frontend = Frontend::load(voice)?;
        if let Some(lexicon) = &options.lexicon {
            frontend = frontend.with_lexicon(Arc::clone(lexicon));
        }
        let data = DataSet::load(data)?;
        let bad = data.bad_lines.into_iter().map(|bad| LeftOut { line: bad.line, reason: bad.reason });
        let mut corpus = Self { utterances: vec![], left_out: bad.collect() };
        for clip in data.clips {
            let learned = (|| {
                let recording = Recording::load(&clip.audio, mel.sample_rate_hz)?;
                let mel = extractor.mel(&recording.samples)?;
                let segments = frontend.segments(&clip.text, &Reading::default())?;
                let [segment] = segments.as_slice() else {
                    let count = segments.len();
                    return Err(Error::InvalidRequest(format!("{count} sentences, 1 is needed")));
                };
                let (frames, symbols) = (mel.len() / extractor.n_mels(), segment.ids.clone());
                let (line, text, speaker) = (clip.line, clip.text.clone(), clip.speaker.clone());
                Ok(Utterance { line, text, symbols, mel, frames, speaker })
            })();
            match learned {
                Ok(utterance) => corpus.utterances.push(utterance),
                Err(error) => {
                    corpus.left_out.push(LeftOut { line: clip.line, reason: error.to_string() });
                }
            }
        }
        Ok(corpus)
    }
}
