//! What a mel is made from in, the mel that was made before out, if it is there and whole.
//!
//! A file a clip, named by the digest of everything that the mel depends on. Never trusts a file: one that is damaged is
//! as good as none.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::atomic_file;
use super::dataset::Clip;
use crate::error::{Error, Result};
use crate::precision::Dtype;
use crate::precision::cast;

/// Begins every file; another layout gets another number.
const MAGIC: &[u8; 8] = b"MZMEL\0\0\x01";
/// The magic and n_mels before the values, the checksum behind them.
const HEADER_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;

/// The features of one corpus on disk.
pub struct FeatureCache {
    directory: PathBuf,
    /// What all clips are made with.
    recipe: String,
    /// Of every recording that can be read.
    recordings: HashMap<PathBuf, [u8; 32]>,
}

impl FeatureCache {
    /// Opens `directory`, which is made if need be, for features of `clips` made by `recipe`.
    ///
    /// # Errors
    /// [`Error::Io`] when the directory cannot be made.
    pub fn open(directory: &Path, recipe: String, clips: &[Clip]) -> Result<Self> {
        std::fs::create_dir_all(directory).map_err(|e| Error::io(directory, e))?;
        let mut paths: Vec<&PathBuf> = clips.iter().map(|clip| &clip.audio).collect();
        paths.sort_unstable();
        paths.dedup();
        let digest = |path: &PathBuf| Some((path.clone(), digest_of(path).ok()?));
        let recordings = paths.into_par_iter().filter_map(digest).collect();
        Ok(Self { directory: directory.to_owned(), recipe, recordings })
    }

    /// The mel of `clip`, [frames * n_mels]; `None` where it has to be made.
    pub fn read(&self, clip: &Clip, n_mels: usize) -> Option<Vec<f32>> {
        let bytes = std::fs::read(self.path(clip)?).ok()?;
        let (content, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
        let (header, values) = content.split_at_checked(HEADER_BYTES)?;
        let whole = crc32c::crc32c(content) == u32::from_le_bytes(*checksum)
            && header.starts_with(MAGIC)
            && header.ends_with(&(n_mels as u64).to_le_bytes())
            && values.len().is_multiple_of(4 * n_mels.max(1))
            && !values.is_empty();
        whole.then(|| cast::to_f32(values, Dtype::F32).ok()).flatten()
    }

    /// Keeps `mel` for the next time.
    ///
    /// # Errors
    /// [`Error::Io`] when the disk refuses.
    pub fn write(&self, clip: &Clip, n_mels: usize, mel: &[f32]) -> Result<()> {
        let Some(path) = self.path(clip) else { return Ok(()) };
        let mut bytes = MAGIC.to_vec();
        bytes.extend((n_mels as u64).to_le_bytes());
        bytes.extend(mel.iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        atomic_file::write(&path, &bytes)
    }

    fn path(&self, clip: &Clip) -> Option<PathBuf> {
        let mut digest = Sha256::new();
        digest.update(self.recordings.get(&clip.audio)?);
        digest.update(format!("{} {:?}", self.recipe, clip.span));
        let mut name = String::with_capacity(68);
        for byte in digest.finalize() {
            write!(name, "{byte:02x}").ok()?;
        }
        Some(self.directory.join(name + ".mel"))
    }
}

fn digest_of(path: &Path) -> std::io::Result<[u8; 32]> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut digest = Sha256::new();
    loop {
        let block = reader.fill_buf()?;
        if block.is_empty() {
            return Ok(digest.finalize().into());
        }
        digest.update(block);
        let read = block.len();
        reader.consume(read);
    }
}
