//! A directory of recordings in, its clips as somebody wrote them down out.
//!
//! LJSpeech and Piper (`metadata.csv` of `|`), Hugging Face audiofolder (`metadata.csv` with a header,
//! `metadata.jsonl`) and NeMo manifests (`*.jsonl`, `*.json` with `audio_filepath`). A path may lead anywhere: manifests
//! hold absolute ones. Never skips a line: one that is no clip, or names a recording again, is there with the reason.

mod columns;
mod lines;
mod listing;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::defect::{Defect, LeftOut};
use crate::error::{Error, Excerpt, Result};

/// One line of a data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Clip {
    /// Where it was written, from 1 on.
    pub line: usize,
    pub audio: PathBuf,
    /// The part of the recording that is meant; all of it without one.
    pub span: Option<Span>,
    pub text: String,
    pub speaker: Option<String>,
}

/// A part of a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub offset_seconds: f64,
    /// To the end without one.
    pub duration_seconds: Option<f64>,
}

/// What a data set says of itself.
#[derive(Debug, Clone)]
pub struct DataSet {
    /// That of most lines.
    pub format: Format,
    /// The file that lists the clips.
    pub listing: PathBuf,
    pub clips: Vec<Clip>,
    pub left_out: Vec<LeftOut>,
}

/// How the clips are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `id|text` or `id|text|normalised text`, the audio in `wavs/<id>.wav`.
    LjSpeech,
    /// `file|text` or `file|speaker|text`.
    Piper,
    /// A table with a header, or a JSON object a line, with `file_name`.
    AudioFolder,
    /// A JSON object a line with `audio_filepath` and `text`.
    NeMo,
}

/// Fields and columns that hold the text, the likeliest first.
const TEXTS: [&str; 5] = ["text", "transcription", "transcript", "sentence", "normalized_text"];
const SPEAKERS: [&str; 3] = ["speaker", "speaker_id", "speaker_name"];

/// What a reader of a listing gives: the format, and every line that is not blank.
type Listed = std::result::Result<(Format, Vec<Row>), String>;

/// A line, from 1 on, and its clip, or why it is none.
type Row = (usize, std::result::Result<Clip, String>);

impl DataSet {
    /// Reads the listing in `path`, a directory or the listing itself.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when there is no listing, it is not UTF-8, or its columns can be read in two ways;
    /// [`Error::Io`] when it cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        let (listing, text) = listing::read(path)?;
        let refuse = |reason: String| Error::InvalidRequest(format!("{}: {reason}", listing.display()));
        let root = listing.parent().unwrap_or(Path::new("."));
        let start = text.trim_start();
        let is_json =
            listing.extension().is_some_and(|extension| extension == "jsonl" || extension == "json");
        let listed = match start.chars().next() {
            None => Err("it lists no clip".to_owned()),
            Some('[') if is_json => Err("it is one JSON array: a manifest has an object a line".to_owned()),
            Some(first) if is_json || first == '{' => lines::read(&text, root),
            Some(_) if table::has_header(start) => table::read(&text, root),
            Some(_) if !columns::has_bars(&text) => Err(headless(start)),
            Some(_) => columns::read(&text, root),
        };
        let (format, rows) = listed.map_err(refuse)?;
        let (clips, left_out) = separate(rows);
        Ok(Self { format, listing, clips, left_out })
    }
}

/// Why a listing that begins with `start` is none, where nothing says what its columns hold.
fn headless(start: &str) -> String {
    let first = start.lines().next().unwrap_or_default();
    format!(
        "its first line, `{}`, has no column `file_name`, which the header of an audiofolder has beside `text`; LJSpeech \
         and Piper have no header and `|` between columns",
        Excerpt(first)
    )
}

/// The clips among `rows`, and the lines that are left out: those without a text and later ones of the same sound too.
fn separate(rows: Vec<Row>) -> (Vec<Clip>, Vec<LeftOut>) {
    let (mut clips, mut left_out) = (Vec::<Clip>::new(), vec![]);
    let mut first = HashMap::new();
    for (line, row) in rows {
        let refused = match row.and_then(nameable) {
            Err(reason) => Err((Defect::BadLine, reason)),
            Ok(clip) if clip.text.trim().is_empty() => Err((Defect::BadLine, "its text is empty".to_owned())),
            Ok(clip) => match first.get(&sound(&clip)).and_then(|at: &usize| clips.get(*at)) {
                None => Ok(clip),
                Some(earlier) => {
                    let text = if earlier.text == clip.text { "the same text" } else { "another text" };
                    let reason = format!("line {} lists this recording already, with {text}", earlier.line);
                    Err((Defect::Duplicate, reason))
                }
            },
        };
        match refused {
            Ok(clip) => {
                first.insert(sound(&clip), clips.len());
                clips.push(clip);
            }
            Err((defect, reason)) => left_out.push(LeftOut { line, defect, reason }),
        }
    }
    (clips, left_out)
}

/// Refuses a clip whose recording or speaker has a line break, or another control character, in its name.
fn nameable(clip: Clip) -> std::result::Result<Clip, String> {
    let audio = clip.audio.to_string_lossy().into_owned();
    let names = [("file", audio.as_str()), ("speaker", clip.speaker.as_deref().unwrap_or_default())];
    let odd = names.into_iter().find(|(_, name)| name.chars().any(char::is_control));
    let reason = odd.map(|(what, name)| format!("the {what} `{}` has a control character", Excerpt(name)));
    reason.map_or(Ok(clip), Err)
}

/// What makes two clips the same sound: the file, however its path is written, and the part of it.
fn sound(clip: &Clip) -> (PathBuf, Option<(u64, Option<u64>)>) {
    let span = clip.span.map(|span| (span.offset_seconds.to_bits(), span.duration_seconds.map(f64::to_bits)));
    (clip.audio.components().collect(), span)
}

/// The format of most of `formats`, the earlier one where they are even.
fn prevailing(formats: &[Format]) -> Option<Format> {
    let count = |format: &Format| formats.iter().filter(|other| *other == format).count();
    formats.iter().rev().max_by_key(|format| count(format)).copied()
}
