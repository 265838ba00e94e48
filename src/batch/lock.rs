//! An output directory in, the right to write there out: for one run alone, or for the shards of one run together.
//!
//! Two shards of one run share no file, any other two may. The right ends with the process. Never waits longer than
//! another program takes to look at the lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};

const NAME: &str = ".mezzavoce-lock";
/// One that looks at the lock holds it for a moment.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// The right to write to one directory.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// For a run that nothing may stand beside.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while another run writes to `out`.
    pub fn alone(out: &Path) -> Result<Self> {
        Self::take(out, |lock| lock.try_alone())
    }

    /// For a shard of the run that `identity` names.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while a shard of another run, or no shard, writes to `out`.
    pub fn shared(out: &Path, identity: &str) -> Result<Self> {
        let lock = Self::take(out, |lock| {
            // Nobody is there: the run is the one that we say.
            if lock.try_alone()? {
                lock.write(identity)?;
                lock.file.unlock().map_err(|error| Error::io(&lock.path, error))?;
            }
            lock.held(lock.file.try_lock_shared())
        })?;
        let mut found = String::new();
        let mut file = &lock.file;
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut found));
        read.map_err(|error| Error::io(&lock.path, error))?;
        if found != identity {
            return Err(Error::Unavailable(format!(
                "a shard of another run (other inputs or other settings) writes to {}",
                out.display()
            )));
        }
        Ok(lock)
    }

    fn take(out: &Path, attempt: impl Fn(&Self) -> Result<bool>) -> Result<Self> {
        let path = out.join(NAME);
        refuse_link(&path)?;
        for _ in 0..TRIES {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).open(&path);
            let lock = Self { file: file.map_err(|error| Error::io(&path, error))?, path: path.clone() };
            // The last one that held it may have taken the file away.
            if attempt(&lock)? && lock.is_at_its_path() {
                return Ok(lock);
            }
            std::thread::sleep(PAUSE);
        }
        Err(Error::Unavailable(format!("another run, or a shard of one, writes to {}", out.display())))
    }

    fn try_alone(&self) -> Result<bool> {
        self.held(self.file.try_lock())
    }

    fn held(&self, outcome: Result<(), TryLockError>) -> Result<bool> {
        match outcome {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(Error::io(&self.path, error)),
        }
    }

    fn write(&self, identity: &str) -> Result<()> {
        let mut file = &self.file;
        let written = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
        written
            .and_then(|_| file.write_all(identity.as_bytes()))
            .map_err(|error| Error::io(&self.path, error))
    }

    #[cfg(unix)]
    fn is_at_its_path(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |file: std::fs::Metadata| (file.dev(), file.ino());
        let (ours, there) = (self.file.metadata().map(identity), self.path.symlink_metadata().map(identity));
        ours.is_ok_and(|ours| there.is_ok_and(|there| ours == there))
    }

    #[cfg(not(unix))]
    fn is_at_its_path(&self) -> bool {
        self.path.exists()
    }
}

impl Drop for Lock {
    /// Gives the right back, and takes the file away if nobody else holds it.
    fn drop(&mut self) {
        if self.try_alone().is_ok_and(|is_last| is_last) && self.is_at_its_path() {
            // A file that stays is in nobody's way.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// # Errors
/// [`Error::InvalidRequest`] for a `path` that is a link: what is written there would land elsewhere.
pub fn refuse_link(path: &Path) -> Result<()> {
    if path.is_symlink() {
        let reason = format!("{} is a link: nothing of a run is written through it", path.display());
        return Err(Error::InvalidRequest(reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_of_one_run_stand_beside_each_other_and_nothing_else_does() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path();
        let shared = |identity| Lock::shared(out, identity);
        let (first, second) = (shared("a").unwrap(), shared("a").unwrap());
        for refused in [shared("b"), Lock::alone(out)] {
            assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
        }
        drop(first);
        assert!(Lock::alone(out).is_err());
        drop(second);
        assert!(!out.join(NAME).exists());
        let alone = Lock::alone(out).unwrap();
        for refused in [shared("a"), Lock::alone(out)] {
            assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
        }
        drop(alone);
        shared("b").unwrap();
    }
}
