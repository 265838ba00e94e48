//! The name that a line gives its output in, a path below `--out` out, or the reason why there is none.
//!
//! Never lets a name leave the directory, and never opens a file.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::line::{Job, Refusal};
use crate::codec::Encoding;
use crate::error::Excerpt;

/// What begins the names that are ours.
pub const OWN_PREFIX: &str = ".mezzavoce";
/// What begins the name of the directory in which a run keeps what is not finished; it is there as long as the run is
/// not.
pub const WORK_PREFIX: &str = ".mezzavoce-batch";
const MAX_COMPONENT_BYTES: usize = 255;
const MAX_PATH_BYTES: usize = 1024;
/// What programs tell the format of audio by.
const AUDIO_ENDINGS: [&str; 20] = [
    "wav", "wave", "s16", "f32", "ul", "mp3", "ogg", "oga", "opus", "flac", "m4a", "mp4", "aac", "aif",
    "aiff", "au", "webm", "wma", "amr", "caf",
];
/// Of samples without a header.
const RAW_ENDINGS: [&str; 2] = ["raw", "pcm"];
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Where `job` of line `number` goes: `output`, else the id or the number of the line with the encoding's ending. Parts
/// are joined by `/`.
pub fn output_path(job: &Job, encoding: Encoding, number: u64) -> Result<String, Refusal> {
    let ending = ending(encoding);
    let name = match (&job.output, &job.id) {
        (Some(output), _) => {
            let name = check(output)?;
            check_ending(&name, encoding)?;
            return Ok(name);
        }
        (None, Some(id)) if id.is_empty() => return Err(refuse(id, "is empty")),
        (None, Some(id)) => format!("{id}.{ending}"),
        (None, None) => format!("{number:06}.{ending}"),
    };
    check(&name)
}

fn ending(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::WavS16 => "wav",
        Encoding::PcmS16Le => "s16",
        Encoding::PcmF32Le => "f32",
        Encoding::MuLaw => "ul",
    }
}

/// Refuses a name whose ending promises another format than `encoding`; one that promises none is the caller's choice.
fn check_ending(name: &str, encoding: Encoding) -> Result<(), Refusal> {
    let Some((_, found)) = name.rsplit('/').next().and_then(|file| file.rsplit_once('.')) else {
        return Ok(());
    };
    let (found, right) = (found.to_ascii_lowercase(), ending(encoding));
    let is_right = found == right
        || match encoding {
            Encoding::WavS16 => found == "wave",
            _ => RAW_ENDINGS.contains(&found.as_str()),
        };
    let promises = || AUDIO_ENDINGS.iter().chain(&RAW_ENDINGS).any(|ending| *ending == found);
    if is_right || !promises() {
        return Ok(());
    }
    Err(refuse(
        name,
        &format!("ends in .{found}, its encoding is {encoding}: end it in .{right}, or set `encoding`"),
    ))
}

/// `name` without what it does not need, if it is a path below `--out`.
pub fn check(name: &str) -> Result<String, Refusal> {
    let bad = |why: &str| Err(refuse(name, why));
    if name.is_empty() {
        return bad("is empty");
    }
    if name.len() > MAX_PATH_BYTES {
        return bad("is longer than 1024 bytes");
    }
    if name.chars().any(char::is_control) {
        return bad("holds a control character");
    }
    if name.as_bytes().get(1) == Some(&b':') {
        return bad("has a colon behind its first letter, which names a drive on some systems");
    }
    if name.starts_with('/') || name.contains('\\') {
        return bad("is not a path below --out with `/` between its parts");
    }
    if name.ends_with('/') {
        return bad("names a directory");
    }
    let mut parts = Vec::new();
    for part in name.split('/') {
        let stem = part.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let numbered = |device: &str| {
            let number = stem.strip_prefix(device);
            number.is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        match part {
            "" | "." => continue,
            ".." => return bad("leaves --out"),
            _ if part.len() > MAX_COMPONENT_BYTES => return bad("has a part longer than 255 bytes"),
            _ if part.to_ascii_lowercase().starts_with(OWN_PREFIX) => {
                return bad("begins as our own files do");
            }
            _ if DEVICES.contains(&stem.as_str()) || numbered("com") || numbered("lpt") => {
                return bad("is the name of a device on some systems");
            }
            _ if part.ends_with(['.', ' ']) => return bad("ends in a dot or a space"),
            _ if cfg!(windows) && part.contains([':', '*', '?', '"', '<', '>', '|']) => {
                return bad("holds a character that this system does not take");
            }
            _ => parts.push(part),
        }
    }
    // A directory of that name would be in the manifest's way as well.
    if let Some(first) = parts.first().map(|first| first.to_ascii_lowercase())
        && first.starts_with("manifest")
        && (first.ends_with(".jsonl") || first.ends_with(".run.json"))
    {
        return bad("is kept for the manifest");
    }
    match parts.is_empty() {
        true => bad("names no file"),
        false => Ok(parts.join("/")),
    }
}

fn refuse(name: &str, why: &str) -> Refusal {
    Refusal::new("bad_output", format!("the output `{}` {why}", Excerpt(name)))
}

/// Which lines claim which paths: 24 bytes and a hash table's slack for each.
#[derive(Debug, Default)]
pub struct Claims {
    ignores_case: bool,
    files: HashMap<u128, u64>,
    directories: HashMap<u128, u64>,
}

impl Claims {
    /// `ignores_case` tells whether `a` and `A` are one file.
    pub fn new(ignores_case: bool) -> Self {
        Self { ignores_case, ..Self::default() }
    }

    /// Claims `path` for line `number`, unless it cannot stand beside what another line claims.
    pub fn claim(&mut self, path: &str, number: u64) -> Result<(), Clash> {
        let path = if self.ignores_case { path.to_lowercase() } else { path.to_owned() };
        let file = hash(&path);
        if let Some(other) = self.files.get(&file) {
            return Err(Clash::Same(*other));
        }
        if let Some(other) = self.directories.get(&file) {
            return Err(Clash::Around(*other));
        }
        for (at, _) in path.match_indices('/') {
            let directory = hash(path.get(..at).unwrap_or_default());
            if let Some(other) = self.files.get(&directory) {
                return Err(Clash::Within(*other));
            }
            self.directories.entry(directory).or_insert(number);
        }
        self.files.insert(file, number);
        Ok(())
    }
}

/// How a path cannot stand beside that of another line, and of which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clash {
    Same(u64),
    /// The other's file would be a directory.
    Within(u64),
    /// It would be a directory of the other's.
    Around(u64),
}

/// 128 bits of two keyed SipHashes: a million paths collide once in 10^26 runs.
fn hash(text: &str) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, text).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
