//! The bytes of a `.npy`, `.safetensors` or `.json` file in, a speaker embedding of norm 1 out.
//!
//! The model looks at the direction alone, but its own norm is f32, which loses great and small scales: so the
//! scale is taken away here, in f64. Never takes the values of one scale more seriously than of another.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::bounds::{Checked, shortened};
use super::checkpoint::Checkpoint;
use super::config::AcousticConfig;
use super::manifest::{Manifest, SpeakerEntry};
use super::source::{Source, read_file};
use crate::error::{Error, Excerpt, Result, listed};
use crate::precision::{Dtype, cast};

/// An x-vector has 2 kB.
const MAX_SPEAKER_FILE_BYTES: u64 = 1 << 20;

/// Who can speak with a voice: all that a request needs of it once its graphs are built.
#[derive(Debug, Clone)]
pub struct Speakers {
    pub voice: String,
    pub embeddings: BTreeMap<String, Vec<f32>>,
    pub default: Option<String>,
    /// Values of an embedding.
    pub dimensions: usize,
}

impl Speakers {
    /// The embedding of `name`, or of the default speaker: [dimensions], of norm 1. Opens no file.
    ///
    /// # Errors
    /// `InvalidRequest` for a name that the voice lacks, or when none is given and none is the default.
    pub fn named(&self, name: Option<&str>) -> Result<Vec<f32>> {
        let Self { voice, embeddings, default, dimensions } = self;
        let voice = Excerpt(voice);
        let ways = || match listed(embeddings.keys().map(String::as_str)) {
            names if names.is_empty() => format!("give an embedding of {dimensions} values"),
            names => format!("give one of its speakers ({names}) or an embedding of {dimensions} values"),
        };
        let Some(name) = name.or(default.as_deref()) else {
            let reason = format!("voice `{voice}` has no default speaker: {}", ways());
            return Err(Error::InvalidRequest(reason));
        };
        let unknown = || {
            let reason = format!("voice `{voice}` has no speaker `{}`: {}", Excerpt(name), ways());
            Error::InvalidRequest(reason)
        };
        embeddings.get(name).cloned().ok_or_else(unknown)
    }

    /// An embedding that the caller brings, held against the voice and normalised.
    ///
    /// # Errors
    /// `InvalidRequest` with the number of values, the index of one that is not finite, or the norm.
    pub fn values(&self, values: Vec<f32>) -> Result<Vec<f32>> {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        unit(&values, self.dimensions).map_err(Error::InvalidRequest)
    }
}

/// The embeddings of `[speakers]`, each held against the voice and normalised.
pub fn load(
    source: Source,
    manifest: &Manifest,
    config: &AcousticConfig,
) -> Result<BTreeMap<String, Vec<f32>>> {
    let load = |entry: &SpeakerEntry| -> Result<(PathBuf, Checked<Vec<f64>>)> {
        Ok(match entry {
            SpeakerEntry::Values(values) => (source.path("voice.toml"), Ok(values.clone())),
            SpeakerEntry::File(file) => {
                let bytes = source.require(source.inside(file)?, MAX_SPEAKER_FILE_BYTES)?;
                let path = source.path(file);
                let values = parse(&path, bytes.into_owned());
                (path, values)
            }
        })
    };
    let mut speakers = BTreeMap::new();
    for (name, entry) in &manifest.speakers {
        let (path, values) = load(entry)?;
        let values = values
            .and_then(|values| unit(&values, config.speaker_embedding_dim))
            .map_err(|reason| Error::voice(path, format!("speaker `{name}`: {reason}")))?;
        speakers.insert(name.clone(), values);
    }
    Ok(speakers)
}

/// Whether `text` names a kind of file that can hold an embedding.
pub fn is_embedding_file(text: &str) -> bool {
    [".npy", ".safetensors", ".json"].iter().any(|ending| text.ends_with(ending))
}

/// Reads the file that a user names. -> `[dimensions]`, of norm 1
///
/// # Errors
/// `InvalidRequest` for a file that is missing or holds no embedding of `dimensions` values; `Io` when the disk
/// refuses.
pub fn load_file(path: &Path, dimensions: usize) -> Result<Vec<f32>> {
    unit(&read_embedding(path)?, dimensions).map_err(|reason| refused(path, reason))
}

/// The values in the file that a user names, for a voice that is not here: [any], as they are.
///
/// # Errors
/// As [`load_file`], their number and their norm apart.
pub fn embedding_of_file(path: &Path) -> Result<Vec<f32>> {
    Ok(read_embedding(path)?.into_iter().map(cast::f64_to_f32).collect())
}

fn read_embedding(path: &Path) -> Result<Vec<f64>> {
    let bytes = match read_file(path, MAX_SPEAKER_FILE_BYTES) {
        Err(Error::InvalidVoice { reason, .. }) => return Err(refused(path, reason)),
        other => other?.ok_or_else(|| refused(path, "no such file".into()))?,
    };
    parse(path, bytes).map_err(|reason| refused(path, reason))
}

fn refused(path: &Path, reason: String) -> Error {
    let path = shortened(path.to_string_lossy().into_owned());
    Error::InvalidRequest(format!("speaker file {path}: {}", shortened(reason)))
}

/// Reads a vector, or a matrix of one row; `path` tells the format.
fn parse(path: &Path, bytes: Vec<u8>) -> Checked<Vec<f64>> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("npy") => npy(&bytes),
        Some("json") => json(&bytes),
        Some("safetensors") => {
            let file = Checkpoint::parse(path, Cow::Owned(bytes)).map_err(reason)?;
            let names: Vec<&str> = file.names().collect();
            let [name] = names.as_slice() else {
                return Err(format!("holds {} tensors, need one", names.len()));
            };
            vector(file.tensor(name).map_err(reason)?.shape)?;
            file.f64(name).map_err(reason)
        }
        _ => Err("not a .npy, .safetensors or .json file".into()),
    }
}

/// The sentence without the path, which the caller adds.
fn reason(error: Error) -> String {
    match error {
        Error::InvalidVoice { reason, .. } => reason,
        other => other.to_string(),
    }
}

/// The direction of an embedding, once it is held against the model: its length, its values, its norm.
pub fn unit(values: &[f64], dimensions: usize) -> Checked<Vec<f32>> {
    if values.len() != dimensions {
        return Err(format!(
            "the speaker embedding has {} values, the voice takes {dimensions}",
            values.len()
        ));
    }
    if let Some((index, value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        return Err(format!("the speaker embedding holds {value} at index {index}"));
    }
    // Scaled first: squares of the greatest and the least values do not fit into f64 either.
    let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    if largest == 0.0 {
        return Err("the speaker embedding is all zeros (norm 0): it says nothing about a speaker".into());
    }
    let norm = values.iter().map(|value| (value / largest).powi(2)).sum::<f64>().sqrt();
    Ok(values.iter().map(|value| cast::f64_to_f32(value / largest / norm)).collect())
}

fn vector(shape: &[usize]) -> Checked {
    match shape {
        [_] | [1, _] => Ok(()),
        _ => Err(format!("shape {shape:?} is neither [n] nor [1, n]")),
    }
}

fn json(bytes: &[u8]) -> Checked<Vec<f64>> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| {
        // What Python writes for values that JSON has no numbers for.
        let words = ["NaN", "Infinity"];
        let word = words.iter().find(|word| bytes.windows(word.len()).any(|part| part == word.as_bytes()));
        match word {
            Some(word) => format!("the speaker embedding holds {word}: {error}"),
            None => format!("not a JSON array of numbers: {error}"),
        }
    })?;
    let (mut shape, mut level) = (Vec::new(), Some(&document));
    while let Some(Value::Array(items)) = level {
        shape.push(items.len());
        level = items.first();
    }
    if shape.is_empty() {
        return Err("not a JSON array of numbers".into());
    }
    vector(&shape)?;
    let row = match &document {
        Value::Array(rows) if shape.len() == 2 => rows.first(),
        row => Some(row),
    };
    let items = row.and_then(Value::as_array).into_iter().flatten().enumerate();
    let number = |(index, item): (usize, &Value)| {
        item.as_f64().ok_or_else(|| format!("the speaker embedding holds {item} at index {index}"))
    };
    items.map(number).collect()
}

/// NumPy's format 1.0 to 3.0 (`numpy.lib.format`): magic, version, length of the header, a Python dict.
fn npy(bytes: &[u8]) -> Checked<Vec<f64>> {
    let short = || "a .npy file that is cut short".to_string();
    let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or("not a .npy file")?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let (length, rest) = match version {
        [1, 0] => rest.split_first_chunk().map(|(length, rest)| (u16::from_le_bytes(*length).into(), rest)),
        [2 | 3, 0] => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length), rest)),
        [major, minor] => return Err(format!("a .npy file of the unknown version {major}.{minor}")),
    }
    .ok_or_else(short)?;
    let length = usize::try_from(length).map_err(|_| short())?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "a .npy header that is not text")?;
    let dtype = match value_of(header, "descr", ',')?.trim_matches(['\'', '"']) {
        "<f4" => Dtype::F32,
        "<f8" => Dtype::F64,
        other => return Err(format!("a .npy array of `{other}`: need `<f4` or `<f8`")),
    };
    let shape = value_of(header, "shape", ')')?;
    let sizes: Option<Vec<usize>> = shape
        .trim_start_matches('(')
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
        .map(|size| size.parse().ok())
        .collect();
    let sizes = sizes.ok_or_else(|| format!("a .npy shape `{shape})` that is not one"))?;
    vector(&sizes)?;
    let count = sizes.last().copied().unwrap_or(0);
    if count.checked_mul(dtype.size_bytes()) != Some(data.len()) {
        return Err(format!("a .npy array of {count} {dtype:?} with {} bytes", data.len()));
    }
    cast::to_f64(data, dtype).map_err(reason)
}

fn value_of<'a>(header: &'a str, key: &str, end: char) -> Checked<&'a str> {
    let missing = || format!("a .npy header without `{key}`");
    let (_, rest) = header.split_once(&format!("'{key}':")).ok_or_else(missing)?;
    Ok(rest.split_once(end).ok_or_else(missing)?.0.trim())
}
