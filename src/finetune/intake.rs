//! A clip in, its text in symbols and its sound as they are learned out, or what is wrong with it.
//!
//! Never looks at a second clip.

use sha2::{Digest, Sha256};

use super::corpus::CorpusOptions;
use super::dataset::Clip;
use super::defect::Defect;
use super::features::MelExtractor;
use super::preparation::{is_silent, level, spoken};
use super::recording::Recording;
use crate::error::{Error, Result};
use crate::text::{Frontend, Reading, Segment};
use crate::voice::Voice;
use crate::voice::manifest::Mel;

/// How much silence around the speech is read where it is trimmed: as much as the clip may be long.
const UNTRIMMED: f64 = 2.0;

/// Takes clips in for one voice.
pub struct Intake<'a> {
    pub mel: &'a Mel,
    frontend: Frontend,
    extractor: MelExtractor,
    options: &'a CorpusOptions,
    max_symbols: usize,
    max_frames: usize,
}

/// A clip's sound, prepared.
pub struct Sound {
    /// At the voice's rate.
    pub samples: Vec<f32>,
    pub seconds: f64,
    /// Without the silence around it, whether or not that was cut.
    pub spoken_seconds: f64,
    /// Samples in flat tops.
    pub clipped: usize,
    /// Of the samples as they were recorded.
    pub digest: [u8; 32],
}

/// What a clip gives, or what is wrong with it and the sentence that says so.
pub type Taken<T> = Result<T, (Defect, String)>;

impl<'a> Intake<'a> {
    /// # Errors
    /// [`Error::InvalidVoice`] when the voice does not say how its mel is made, [`Error::InvalidRequest`] for options
    /// that no clip can meet.
    pub fn load(voice: &'a Voice, options: &'a CorpusOptions) -> Result<Self> {
        options.check()?;
        let reason = "it does not say how its mel is made: add [mel] to voice.toml";
        let mel = voice.mel.as_ref().ok_or_else(|| Error::voice(&voice.name, reason))?;
        let config = &voice.config;
        Ok(Self {
            mel,
            frontend: Frontend::load(voice)?,
            extractor: MelExtractor::new(mel, config.num_mel_bins)?,
            options,
            max_symbols: config.max_text_positions,
            max_frames: config.max_speech_positions * config.reduction_factor,
        })
    }

    pub fn n_mels(&self) -> usize {
        self.extractor.n_mels()
    }

    /// Everything but the recording that a mel depends on, and whether there is one.
    pub fn recipe(&self) -> String {
        let options = CorpusOptions { cache: None, ..self.options.clone() };
        format!("{:?} {} {} {options:?}", self.mel, self.n_mels(), self.max_frames)
    }

    /// The text of a clip as one segment, with every character said.
    pub fn read(&self, text: &str) -> Taken<Segment> {
        let segment = self.spell(text).map_err(|e| (Defect::Unspeakable, e.to_string()))?;
        let symbols = segment.ids.len();
        if symbols > self.max_symbols {
            let reason =
                format!("the text has {symbols} symbols, the voice has {} positions", self.max_symbols);
            return Err((Defect::Unspeakable, reason));
        }
        if segment.unmapped.is_empty() {
            return Ok(segment);
        }
        let lacking: Vec<String> = segment.unmapped.iter().map(|c| format!("`{c}`")).collect();
        Err((Defect::Unspeakable, format!("the voice has no symbol for {}", lacking.join(", "))))
    }

    /// The text as one segment, whatever cannot be said in it.
    pub fn spell(&self, text: &str) -> Result<Segment> {
        self.frontend.one_segment(text, &Reading::default())
    }

    /// The sound of a clip, trimmed and levelled as the options say.
    pub fn hear(&self, clip: &Clip) -> Taken<Sound> {
        let CorpusOptions { trim, level: loudness, min_seconds, max_seconds, .. } = *self.options;
        let (rate, longest) = (self.mel.sample_rate_hz, f64::from(max_seconds));
        let limit = if trim { longest * UNTRIMMED } else { longest };
        let recording = Recording::load(&clip.audio, rate, clip.span, limit)
            .map_err(|e| (Defect::Unreadable, e.to_string()))?;
        let mut samples = recording.samples;
        if recording.goes_on {
            return Err((Defect::TooLong, format!("it is longer than {limit} s")));
        }
        if is_silent(&samples) {
            return Err((Defect::Silent, "nothing is to be heard".to_owned()));
        }
        let digest = digest(&samples);
        let spoken = spoken(&samples, rate);
        let spoken_seconds = spoken.len() as f64 / f64::from(rate);
        if trim {
            samples.truncate(spoken.end);
            samples.drain(..spoken.start);
        }
        let seconds = samples.len() as f64 / f64::from(rate);
        if seconds > longest {
            return Err((
                Defect::TooLong,
                format!("it has {seconds:.2} s, at most {max_seconds} are wanted"),
            ));
        }
        if seconds < f64::from(min_seconds) {
            return Err((
                Defect::TooShort,
                format!("it has {seconds:.2} s, at least {min_seconds} are wanted"),
            ));
        }
        if let Some(lufs) = loudness {
            level(&mut samples, rate, lufs).map_err(|reason| (Defect::Silent, reason))?;
        }
        Ok(Sound { samples, seconds, spoken_seconds, clipped: recording.clipped, digest })
    }

    /// -> [frames * n_mels], at least one frame
    pub fn mel(&self, sound: &Sound) -> Taken<Vec<f32>> {
        let mel = self.extractor.mel(&sound.samples).map_err(|e| (Defect::Unreadable, e.to_string()))?;
        let frames = mel.len() / self.n_mels().max(1);
        if frames == 0 {
            return Err((Defect::TooShort, "it is shorter than one frame".to_owned()));
        }
        if frames > self.max_frames {
            let reason = format!("it has {frames} frames, the voice can say {} in one go", self.max_frames);
            return Err((Defect::TooLong, reason));
        }
        Ok(mel)
    }
}

fn digest(samples: &[f32]) -> [u8; 32] {
    let mut digest = Sha256::new();
    samples.iter().for_each(|sample| digest.update(sample.to_le_bytes()));
    digest.finalize().into()
}
