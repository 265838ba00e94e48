//! A data set and a voice in, what is wrong with its clips out.
//!
//! Clips are taken in as training takes them in, so that what is said here holds there. Never changes a file.

mod characters;
mod report;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::corpus::CorpusOptions;
use super::dataset::{Clip, DataSet, Format};
use super::defect::Defect;
use super::intake::{Intake, Sound, Taken};
use crate::error::Result;
use crate::voice::Voice;

pub use characters::Lacking;

/// Rates of less than the median by this factor, or more than it, are odd.
const ODD_RATE: f64 = 2.0;
/// Fewer clips have no median to speak of.
const MEDIAN_CLIPS: usize = 5;

/// What a data set is, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub listing: PathBuf,
    pub format: Format,
    /// Lines that are not blank.
    pub lines: usize,
    /// Clips that training takes, and their minutes.
    pub clips: usize,
    pub minutes: f64,
    pub speakers: Vec<SpeakerTotal>,
    /// The middle of all clips that training takes.
    pub symbols_per_second: Option<f64>,
    /// How often each thing is wrong.
    pub counts: BTreeMap<Defect, usize>,
    pub lacking: Vec<Lacking>,
    pub problems: Vec<Problem>,
}

/// What one speaker says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpeakerTotal {
    /// `None` for clips without one.
    pub speaker: Option<String>,
    pub clips: usize,
    pub minutes: f64,
}

/// What is wrong with one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub line: usize,
    pub defect: Defect,
    /// Whether training leaves the line out.
    pub left_out: bool,
    pub reason: String,
}

/// A clip and what was found of it.
struct Heard {
    clip: Clip,
    /// Symbols, start and end included.
    symbols: Taken<usize>,
    sound: Taken<Sound>,
}

/// Looks at every clip of the data set at `data`. The cache of `options` is not used: it says nothing of recordings.
///
/// # Errors
/// As [`super::corpus::Corpus::load`].
pub fn check(voice: &Voice, data: &Path, options: &CorpusOptions) -> Result<Check> {
    let intake = Intake::load(voice, options)?;
    let DataSet { format, listing, clips, left_out } = DataSet::load(data)?;
    let lines = clips.len() + left_out.len();
    let lacking = characters::lacking(voice, &intake, &clips)?;
    let mut problems: Vec<Problem> = left_out
        .into_iter()
        .map(|left| Problem { line: left.line, defect: left.defect, left_out: true, reason: left.reason })
        .collect();
    let heard: Vec<Heard> = clips
        .into_par_iter()
        .map(|clip| {
            let symbols = intake.read(&clip.text).map(|segment| segment.ids.len());
            let sound = intake.hear(&clip).and_then(|sound| intake.mel(&sound).map(|_| sound));
            // Only what is measured is kept: samples of all clips at once would be too many.
            Heard { clip, symbols, sound: sound.map(|sound| Sound { samples: vec![], ..sound }) }
        })
        .collect();
    let usable: Vec<(&Clip, usize, &Sound)> = heard
        .iter()
        .filter_map(|heard| Some((&heard.clip, *heard.symbols.as_ref().ok()?, heard.sound.as_ref().ok()?)))
        .collect();
    let symbols_per_second = median(usable.iter().map(|(_, symbols, sound)| rate(*symbols, sound)).collect());
    for heard in &heard {
        refusals(heard, &mut problems);
    }
    doubtful(&usable, symbols_per_second, &mut problems);
    problems.sort_by_key(|problem| (problem.line, problem.defect));
    let mut counts = BTreeMap::new();
    problems.iter().for_each(|problem| *counts.entry(problem.defect).or_default() += 1);
    Ok(Check {
        listing,
        format,
        lines,
        clips: usable.len(),
        minutes: usable.iter().fold(0.0, |sum, (_, _, sound)| sum + sound.seconds) / 60.0,
        speakers: speakers(&usable),
        symbols_per_second,
        counts,
        lacking,
        problems,
    })
}

impl Check {
    /// Whether there is something to learn, nothing is wrong with any line, and the voice has every character.
    pub fn is_clean(&self) -> bool {
        self.clips > 0 && self.problems.is_empty() && self.lacking.is_empty()
    }
}

/// What keeps a clip out of training: its text, its sound, or both.
fn refusals(heard: &Heard, problems: &mut Vec<Problem>) {
    let wrong = [heard.symbols.as_ref().err(), heard.sound.as_ref().err()];
    problems.extend(wrong.into_iter().flatten().map(|(defect, reason)| Problem {
        line: heard.clip.line,
        defect: *defect,
        left_out: true,
        reason: reason.clone(),
    }));
}

/// What is trained on, and should be listened to first.
fn doubtful(usable: &[(&Clip, usize, &Sound)], median: Option<f64>, problems: &mut Vec<Problem>) {
    let mut first: HashMap<[u8; 32], &Clip> = HashMap::new();
    for (clip, symbols, sound) in usable {
        let mut add = |defect, reason| {
            problems.push(Problem { line: clip.line, defect, left_out: false, reason });
        };
        if sound.clipped > 0 {
            add(Defect::Clipped, format!("{} samples stay at full scale", sound.clipped));
        }
        let rate = rate(*symbols, sound);
        if let Some(median) = median
            && !(median / ODD_RATE..=median * ODD_RATE).contains(&rate)
        {
            let reason =
                format!("{rate:.1} symbols a second, the others {median:.1}: do the words match the sound?");
            add(Defect::OddRate, reason);
        }
        match first.get(&sound.digest) {
            Some(earlier) => {
                let text = if earlier.text == clip.text { "the same text" } else { "another text" };
                add(Defect::Duplicate, format!("it sounds as line {} does, with {text}", earlier.line));
            }
            None => _ = first.insert(sound.digest, clip),
        }
    }
}

fn rate(symbols: usize, sound: &Sound) -> f64 {
    symbols as f64 / sound.spoken_seconds.max(f64::MIN_POSITIVE)
}

fn median(mut rates: Vec<f64>) -> Option<f64> {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().filter(|_| rates.len() >= MEDIAN_CLIPS)
}

fn speakers(usable: &[(&Clip, usize, &Sound)]) -> Vec<SpeakerTotal> {
    let mut totals: BTreeMap<Option<&str>, (usize, f64)> = BTreeMap::new();
    for (clip, _, sound) in usable {
        let (clips, seconds) = totals.entry(clip.speaker.as_deref()).or_default();
        *clips += 1;
        *seconds += sound.seconds;
    }
    let total = |(speaker, (clips, seconds)): (Option<&str>, (usize, f64))| SpeakerTotal {
        speaker: speaker.map(str::to_owned),
        clips,
        minutes: seconds / 60.0,
    };
    totals.into_iter().map(total).collect()
}
