//! The voice in the binary: nothing in, its [`Voice`] out.
//!
//! Never copies the weights: they are read where the executable is mapped.

use std::fs;
use std::path::Path;

use super::source::Source;
use super::{MakeWeights, Voice};
use crate::error::{Error, Result};

/// The path of every file in the voice, and its bytes.
const FILES: [(&str, &[u8]); 6] = [
    ("config.json", include_bytes!("../../models/default/config.json")),
    ("model.safetensors", include_bytes!("../../models/default/model.safetensors")),
    ("symbols.json", include_bytes!("../../models/default/symbols.json")),
    ("voice.toml", include_bytes!("../../models/default/voice.toml")),
    ("vocoder/config.json", include_bytes!("../../models/default/vocoder/config.json")),
    ("vocoder/model.safetensors", include_bytes!("../../models/default/vocoder/model.safetensors")),
];

/// The files of the default voice, by their path in it.
pub fn embedded_files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.into_iter()
}

impl Voice {
    /// The default voice.
    pub fn embedded() -> Result<Self> {
        Self::from_files("default", &FILES)
    }

    /// The default voice with other weights: see [`Voice::load_with`].
    pub fn embedded_with(weights: &MakeWeights) -> Result<Self> {
        let source = Source::Embedded { name: "default", files: &FILES };
        Self::from_source("default".into(), source, (source, "vocoder/"), Some(weights))
    }

    /// Writes the files of the default voice into `directory`, those that are `wanted` by their path.
    ///
    /// # Errors
    /// [`Error::Io`] when the disk refuses.
    pub fn write_embedded(directory: &Path, wanted: impl Fn(&str) -> bool) -> Result<()> {
        for (file, bytes) in FILES.into_iter().filter(|(file, _)| wanted(file)) {
            let path = directory.join(file);
            let parent = path.parent().unwrap_or(directory);
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&path, bytes))
                .map_err(|e| Error::io(&path, e))?;
        }
        Ok(())
    }
}
