//! A path inside a voice in, the bytes of that file out: from a directory or from the binary.
//!
//! Files are read whole, never mapped: a file that shrinks under a map kills the process.

use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};

/// Configurations. A parsed document takes up to a hundred times its bytes.
pub const CONFIG_BYTES: u64 = 1 << 20;
/// A table of symbols or a tokenizer. The stock one has 240 kB.
pub const SPELLING_BYTES: u64 = 8 << 20;
/// A checkpoint. The stock model is 0.6 GB.
pub const CHECKPOINT_BYTES: u64 = 4 << 30;

/// Where the files of a voice lie.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    Directory(&'a Path),
    Embedded { name: &'a str, files: &'a [(&'a str, &'static [u8])] },
}

impl Source<'_> {
    /// Where `relative` lies, for messages.
    pub fn path(&self, relative: &str) -> PathBuf {
        match self {
            Self::Directory(dir) => dir.join(relative),
            Self::Embedded { name, .. } => Path::new(name).join(relative),
        }
    }

    /// The bytes of `relative`, or `None` when the voice has no such file.
    ///
    /// # Errors
    /// `InvalidVoice` for a file above `limit_bytes` or one that is not a regular file; `Io` when the disk
    /// refuses.
    pub fn read(&self, relative: &str, limit_bytes: u64) -> Result<Option<Cow<'static, [u8]>>> {
        match self {
            Self::Directory(dir) => Ok(read_file(&dir.join(relative), limit_bytes)?.map(Cow::Owned)),
            Self::Embedded { files, .. } => {
                Ok(files.iter().find(|(path, _)| *path == relative).map(|(_, bytes)| Cow::Borrowed(*bytes)))
            }
        }
    }

    /// A path that `voice.toml` gives, once it is sure to stay in the voice. Links are followed when it is
    /// read: the Hugging Face cache is made of them.
    pub fn inside<'p>(&self, file: &'p str) -> Result<&'p str> {
        let plain = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
        if plain && !file.is_empty() && !file.contains(['\\', '\0']) {
            return Ok(file);
        }
        Err(Error::voice(self.path("voice.toml"), format!("`{file}` is not a path inside the voice")))
    }

    /// The bytes of `relative`, which the voice must have.
    pub fn require(&self, relative: &str, limit_bytes: u64) -> Result<Cow<'static, [u8]>> {
        self.read(relative, limit_bytes)?
            .ok_or_else(|| Error::voice(self.path(""), format!("`{relative}` is missing")))
    }
}

/// The bytes of a regular file of at most `limit_bytes`; `None` when there is none.
///
/// # Errors
/// `InvalidVoice` also for a link, in the path or at its end, that leads nowhere: whoever made it meant a file.
pub fn read_file(path: &Path, limit_bytes: u64) -> Result<Option<Vec<u8>>> {
    // Asked before opening, because opening a named pipe waits for its writer.
    let facts = match std::fs::metadata(path) {
        Ok(facts) => facts,
        Err(error) => {
            return match (dead_link(path), error.kind()) {
                (Some((link, reason)), _) => {
                    Err(Error::voice(link, format!("a link that leads nowhere ({reason})")))
                }
                (None, ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
                (None, _) => Err(Error::io(path, error)),
            };
        }
    };
    if !facts.is_file() {
        return Err(Error::voice(path, "not a regular file"));
    }
    let too_large =
        || Error::voice(path, format!("larger than the limit of {limit_bytes} bytes for such a file"));
    if facts.len() > limit_bytes {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // One byte more than expected, so that the end is seen without growing.
    let room = usize::try_from(facts.len()).unwrap_or(usize::MAX).saturating_add(1);
    bytes.try_reserve_exact(room).map_err(|_| Error::io(path, ErrorKind::OutOfMemory.into()))?;
    File::open(path)
        .and_then(|file| file.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| Error::io(path, error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > limit_bytes) {
        return Err(too_large());
    }
    Ok(Some(bytes))
}

/// The part of `path` that is a link to what is not there, or to itself, and what the disk says of it.
fn dead_link(path: &Path) -> Option<(&Path, std::io::Error)> {
    path.ancestors()
        .filter(|part| part.is_symlink())
        .filter_map(|link| std::fs::metadata(link).err().map(|error| (link, error)))
        .find(|(_, error)| error.kind() != ErrorKind::PermissionDenied)
}
