//! A trained network and the voice it came from in, a voice directory that `serve`, `say` and `transformers` load out.
//!
//! Never changes the voice it came from.

use std::fs;
use std::path::Path;

use toml::{Table, Value};

use super::atomic_file;
use super::network::LEARNED_SPEAKERS;
use super::tensor_file::{self, Stored};
use super::trainer::Trainer;
use crate::error::{Error, Result};
use crate::precision::{Dtype, cast};
use crate::voice::Voice;

/// Smaller files beside the weights belong to a voice: configurations, tokenizers, speakers. Larger ones are what a
/// trainer left there.
const BESIDE_BYTES: u64 = 16 << 20;
const WEIGHTS: &str = "model.safetensors";
const VOCODER: &str = "vocoder";

/// Where the files of a voice come from.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// The voice in this program.
    Embedded,
    Directory {
        voice: &'a Path,
        vocoder: Option<&'a Path>,
    },
}

/// Puts everything but the acoustic weights of `origin` into `directory`.
///
/// # Errors
/// [`Error::Io`] when the disk refuses.
pub fn lay_out(origin: Origin, directory: &Path) -> Result<()> {
    let (voice, vocoder) = match origin {
        Origin::Embedded => return Voice::write_embedded(directory, |file| file != WEIGHTS),
        Origin::Directory { voice, vocoder } => (voice, vocoder),
    };
    fs::create_dir_all(directory.join(VOCODER)).map_err(|e| Error::io(directory, e))?;
    copy_files(voice, directory, |name, bytes| bytes <= BESIDE_BYTES && !is_weights(name))?;
    let default = voice.join(VOCODER);
    copy_files(vocoder.unwrap_or(&default), &directory.join(VOCODER), |_, _| true)
}

fn is_weights(name: &str) -> bool {
    name.ends_with(".safetensors") || name.ends_with(".bin") || name.ends_with(".pt")
}

fn copy_files(from: &Path, to: &Path, wanted: impl Fn(&str, u64) -> bool) -> Result<()> {
    let refused = |e| Error::io(from, e);
    for entry in fs::read_dir(from).map_err(refused)? {
        let path = entry.map_err(refused)?.path();
        // Asked of what a link leads to: the Hugging Face cache is made of them.
        let facts = fs::metadata(&path).map_err(|e| Error::io(&path, e))?;
        let Some(name) = path.file_name() else { continue };
        if facts.is_file() && wanted(&name.to_string_lossy(), facts.len()) {
            atomic_file::write(&to.join(name), &fs::read(&path).map_err(|e| Error::io(&path, e))?)?;
        }
    }
    Ok(())
}

/// Writes the acoustic weights into `directory`: trained ones in f32 with all the bits that are known of them, the
/// others of `voice` as they are.
///
/// # Errors
/// [`Error::Io`] when the disk refuses; the weights that were there are untouched then.
pub fn write_weights(trainer: &Trainer, voice: &Voice, directory: &Path) -> Result<()> {
    let mut tensors = Vec::new();
    let of_voice = trainer.parameters().iter().filter(|(name, ..)| !name.starts_with(LEARNED_SPEAKERS));
    for (name, shape, trained) in of_voice {
        let values = if trained { trainer.result(name)? } else { voice.acoustic.f32(name)? };
        let data = cast::from_f32(&values, Dtype::F32)?;
        tensors.push((name.to_owned(), Stored { dtype: Dtype::F32, shape: shape.to_vec(), data }));
    }
    // `transformers` refuses a file that does not say who it is for.
    let metadata = [("format".to_owned(), "pt".to_owned())].into();
    tensor_file::write(&directory.join(WEIGHTS), tensors, metadata)
}

/// Gives the voice in `directory`, which was made of the one called `before`, its own `name`, more `speakers`, and
/// `default` as the one who speaks when nobody says.
///
/// # Errors
/// [`Error::InvalidVoice`] for a `voice.toml` that is none, [`Error::Io`] when the disk refuses.
pub fn write_manifest(
    directory: &Path,
    (before, name): (&str, &str),
    speakers: &[(String, Vec<f32>)],
    default: Option<&str>,
) -> Result<()> {
    let path = directory.join("voice.toml");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(Error::io(&path, e)),
    };
    let broken = |reason: String| Error::voice(&path, reason);
    let mut manifest: Table = toml::from_str(&text).map_err(|e| broken(e.to_string()))?;
    let table = |manifest: &mut Table, name: &str| -> Result<Table> {
        match manifest.remove(name).unwrap_or_else(|| Value::Table(Table::new())) {
            Value::Table(table) => Ok(table),
            _ => Err(broken(format!("`{name}` is no table"))),
        }
    };
    let mut voice = table(&mut manifest, "voice")?;
    let text = |voice: &Table, key: &str| voice.get(key).and_then(Value::as_str).map(str::to_owned);
    if text(&voice, "name").as_deref() != Some(name) {
        let licence = text(&voice, "licence").map_or_else(String::new, |licence| format!(" ({licence})"));
        // What was learned is not the old voice's to license.
        let licence = format!("adapted from `{before}`{licence} on recordings whose terms hold too");
        voice.insert("licence".to_owned(), Value::String(licence));
        voice.insert("description".to_owned(), Value::String(format!("`{before}`, fine-tuned")));
        voice.insert("name".to_owned(), Value::String(name.to_owned()));
    }
    manifest.insert("voice".to_owned(), Value::Table(voice));
    if let Some(default) = default {
        let mut speaker = table(&mut manifest, "speaker")?;
        speaker.insert("default".to_owned(), Value::String(default.to_owned()));
        manifest.insert("speaker".to_owned(), Value::Table(speaker));
    }
    let mut all = table(&mut manifest, "speakers")?;
    for (name, embedding) in speakers {
        let values = embedding.iter().map(|value| Value::Float(f64::from(*value)));
        all.insert(name.clone(), Value::Array(values.collect()));
    }
    manifest.insert("speakers".to_owned(), Value::Table(all));
    let text = toml::to_string(&manifest).map_err(|e| broken(e.to_string()))?;
    atomic_file::write(&path, text.as_bytes())
}
