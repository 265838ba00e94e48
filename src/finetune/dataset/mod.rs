//! A directory of recordings in, its clips as somebody wrote them down out.
//!
//! LJSpeech and Piper (`metadata.csv` of `|`), Hugging Face audiofolder (`metadata.csv` with a header,
//! `metadata.jsonl`) and NeMo manifests (`*.jsonl`, `*.json` with `audio_filepath`). Never skips a line: one that
//! cannot be read is a clip with a reason.

mod lines;
mod table;

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// One line of a data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Clip {
    /// Where it was written: the file, and the line from 1 on.
    pub line: usize,
    pub audio: PathBuf,
    pub text: String,
    pub speaker: Option<String>,
}

/// A line that is no clip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    pub line: usize,
    pub reason: String,
}

/// What a data set says of itself.
#[derive(Debug, Clone)]
pub struct DataSet {
    pub format: Format,
    /// The file that lists the clips.
    pub listing: PathBuf,
    pub clips: Vec<Clip>,
    pub bad_lines: Vec<BadLine>,
}

/// How the clips are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// A listing above this is no listing.
const LISTING_BYTES: u64 = 256 << 20;

impl DataSet {
    /// Reads the listing in `path`, a directory or the listing itself.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when there is no listing, or it is not UTF-8; [`Error::Io`] when it cannot be read.
    pub fn load(path: &Path) -> Result<Self> {
        let listing = if path.is_dir() { find_listing(path)? } else { path.to_owned() };
        let facts = std::fs::metadata(&listing).map_err(|e| Error::io(&listing, e))?;
        let refuse = |reason: String| Error::InvalidRequest(format!("{}: {reason}", listing.display()));
        if facts.len() > LISTING_BYTES {
            return Err(refuse(format!("it has {} bytes, the limit is {LISTING_BYTES}", facts.len())));
        }
        let bytes = std::fs::read(&listing).map_err(|e| Error::io(&listing, e))?;
        let text = String::from_utf8(bytes)
            .map_err(|e| refuse(format!("not UTF-8 from byte {} on", e.utf8_error().valid_up_to())))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let root = listing.parent().unwrap_or(Path::new("."));
        let found = if text.trim_start().starts_with('{') {
            lines::read(text, root)
        } else {
            table::read(text, root)
        };
        let (format, clips, bad_lines) = found.map_err(refuse)?;
        if clips.is_empty() && bad_lines.is_empty() {
            return Err(Error::InvalidRequest(format!("{} lists no clip", listing.display())));
        }
        Ok(Self { format, listing, clips, bad_lines })
    }
}

/// What a reader of a listing gives.
type Listed = std::result::Result<(Format, Vec<Clip>, Vec<BadLine>), String>;

fn find_listing(directory: &Path) -> Result<PathBuf> {
    const NAMES: [&str; 5] =
        ["metadata.csv", "metadata.jsonl", "manifest.jsonl", "manifest.json", "train_manifest.json"];
    let found = NAMES.iter().map(|name| directory.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| {
        Error::InvalidRequest(format!(
            "{} holds none of {}: give a data set as LJSpeech, Piper, an audiofolder or a NeMo manifest",
            directory.display(),
            NAMES.join(", ")
        ))
    })
}
