//! The files that a run reads in, whether a path that it is about to write is one of them out.
//!
//! Only what lies in the output directory can be written over. Never opens a file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::output::OWN_PREFIX;
use super::settings::is_voice_file;
use crate::cli::Batch;
use crate::error::{Error, Result};

/// Files in the output directory that must stay as they are.
#[derive(Debug)]
pub struct Guard {
    /// Where each lies, and what the command line calls it.
    files: HashMap<PathBuf, String>,
}

impl Guard {
    /// What `args` name that lies in `out`, which is canonical.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for a file among those that are the run's own.
    pub fn new(args: &Batch, out: &Path) -> Result<Self> {
        let inputs = args.inputs.iter().map(|path| ("the input", path.clone()));
        let speaker = args.speaker.iter().map(|path| ("the speaker", PathBuf::from(path)));
        let lexicon = args.lexicon.lexicon.iter().map(|path| ("the lexicon", path.clone()));
        let voices = args.voices.iter().filter_map(|voice| voice.directory.as_deref());
        let voices = voices.flat_map(|directory| [directory.to_path_buf(), directory.join("vocoder")]);
        let parts = voices.filter_map(|directory| std::fs::read_dir(directory).ok()).flatten();
        let parts = parts.filter_map(|entry| Some(("a file of the voice,", entry.ok()?.path())));
        let mut files = HashMap::new();
        // A voice directory may be the output directory too: what is spoken is no part of the voice.
        let parts = parts.filter(|(_, path)| is_voice_file(path));
        for (what, path) in inputs.chain(speaker).chain(lexicon).chain(parts) {
            if !path.is_file() {
                continue;
            }
            for place in places(&path) {
                let Ok(below) = place.strip_prefix(out) else { continue };
                if below.to_string_lossy().starts_with(OWN_PREFIX) {
                    let (path, out) = (path.display(), out.display());
                    let reason = format!("{what} {path} is among the files of a run to {out}: move it away");
                    return Err(Error::InvalidRequest(reason));
                }
                files.entry(place).or_insert_with(|| format!("{what} {}", path.display()));
            }
        }
        Ok(Self { files })
    }

    /// Which of the files is written over when `target` is written.
    pub fn at(&self, target: &Path) -> Option<&str> {
        if self.files.is_empty() {
            return None;
        }
        places(target).iter().find_map(|place| self.files.get(place)).map(String::as_str)
    }
}

/// The name of `path` without links before it, and where it leads if it is a link itself.
fn places(path: &Path) -> Vec<PathBuf> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let named = path.file_name().and_then(|name| Some(parent.canonicalize().ok()?.join(name)));
    named.into_iter().chain(path.canonicalize().ok()).collect()
}
