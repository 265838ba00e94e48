//! A path in, the listing of a data set and its text out.
//!
//! Never opens a recording.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A listing above this is no listing.
const LISTING_BYTES: u64 = 256 << 20;

/// What listings are called, the surest first.
const NAMES: [&str; 5] =
    ["metadata.csv", "metadata.jsonl", "manifest.jsonl", "manifest.json", "train_manifest.json"];

/// Extensions of the recordings that can be decoded.
pub const AUDIO: [&str; 5] = ["wav", "flac", "mp3", "ogg", "oga"];

/// The listing at or in `path`, and its text without a byte order mark.
pub fn read(path: &Path) -> Result<(PathBuf, String)> {
    let listing = if path.is_dir() { find(path)? } else { path.to_owned() };
    let facts = std::fs::metadata(&listing).map_err(|e| match e.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Error::InvalidRequest(format!("--data {}: there is no such file or directory", listing.display()))
        }
        _ => Error::io(&listing, e),
    })?;
    let refuse = |reason: String| Error::InvalidRequest(format!("{}: {reason}", listing.display()));
    if facts.len() > LISTING_BYTES {
        return Err(refuse(format!("it has {} bytes, the limit is {LISTING_BYTES}", facts.len())));
    }
    let bytes = std::fs::read(&listing).map_err(|e| Error::io(&listing, e))?;
    let text = String::from_utf8(bytes)
        .map_err(|e| refuse(format!("not UTF-8 from byte {} on", e.utf8_error().valid_up_to())))?;
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    Ok((listing, text))
}

/// Whether `path` has the extension of a recording; an id with a dot in it has none.
pub fn is_audio(path: &Path) -> bool {
    path.extension().is_some_and(|extension| AUDIO.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// The listing in `directory`, or in its `train`.
fn find(directory: &Path) -> Result<PathBuf> {
    let train = directory.join("train");
    let found = [directory, &train]
        .into_iter()
        .find_map(|folder| NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()));
    found.ok_or_else(|| {
        let recordings = std::fs::read_dir(directory)
            .map(|entries| entries.flatten().filter(|entry| is_audio(&entry.path())).count())
            .unwrap_or(0);
        let found = match recordings {
            0 => "holds none of".to_owned(),
            count => format!("holds {count} recordings, but to say what is spoken in them none of"),
        };
        Error::InvalidRequest(format!(
            "{} {found} {}: give a data set as LJSpeech, Piper, an audiofolder or a NeMo manifest",
            directory.display(),
            NAMES.join(", ")
        ))
    })
}
