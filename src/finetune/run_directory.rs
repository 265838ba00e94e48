//! The directory of a new voice in, the places of what a run leaves there out.
//!
//! The voice lies in the directory itself, in the Hugging Face layout, and what the run knows of itself in `finetune`
//! below it. Never overwrites a voice or a run that it was not told to go on with.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::atomic_file;
use super::settings::differences;
use crate::error::{Error, Result};

/// Where a run puts things.
#[derive(Debug)]
pub struct RunDirectory {
    out: PathBuf,
    /// Held as long as the run writes here.
    lock: Option<File>,
}

const RUN: &str = "finetune";
const IDENTITY: &str = "run.json";
const LOCK: &str = "lock";

impl RunDirectory {
    /// Takes `out` for a run of this `identity`, to go on with the one that is there where `resume` says so.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when a run or a voice is there that must not be touched, [`Error::Io`] when the disk
    /// refuses.
    pub fn open(out: &Path, resume: bool, identity: &Map<String, Value>) -> Result<Self> {
        let mut directory = Self { out: out.to_owned(), lock: None };
        directory.check(resume)?;
        for folder in [directory.run(), directory.samples(), directory.pictures()] {
            fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        }
        let lock = directory.run().join(LOCK);
        let file = File::create(&lock).map_err(|e| Error::io(&lock, e))?;
        if file.try_lock().is_err() {
            return Err(Error::Unavailable(format!("another run writes to {}", out.display())));
        }
        directory.lock = Some(file);
        let path = directory.run().join(IDENTITY);
        match fs::read(&path) {
            Ok(bytes) => {
                let was: Map<String, Value> = serde_json::from_slice(&bytes).unwrap_or_default();
                let differences = differences(&was, identity);
                if !differences.is_empty() {
                    return Err(Error::InvalidRequest(format!(
                        "the run in {} is another one: {}; give what it was given, or another --out",
                        out.display(),
                        differences.join(", ")
                    )));
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let text = serde_json::to_string_pretty(identity);
                let text = text.map_err(|e| Error::Internal(format!("an identity: {e}")))?;
                atomic_file::write(&path, text.as_bytes())?;
            }
            Err(e) => return Err(Error::io(&path, e)),
        }
        directory.sweep()?;
        Ok(directory)
    }

    /// Whether a run may use this directory.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn check(&self, resume: bool) -> Result<()> {
        let out = self.out.display();
        match (self.run().join(IDENTITY).is_file(), self.out.join("config.json").exists()) {
            (true, _) if resume => Ok(()),
            (true, _) => Err(Error::InvalidRequest(format!(
                "{out} holds a run: --resume goes on with it, another --out begins a new one"
            ))),
            (false, true) => Err(Error::InvalidRequest(format!(
                "{out} holds a voice that no run of this program has made: give another --out"
            ))),
            (false, false) => {
                if resume {
                    tracing::warn!("{out} holds no run to go on with: a new one begins");
                }
                Ok(())
            }
        }
    }

    /// Refuses what [`Self::open`] would, before anything expensive is done.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn check_free(out: &Path, resume: bool) -> Result<()> {
        let directory = Self { out: out.to_owned(), lock: None };
        if resume { Ok(()) } else { directory.check(false) }
    }

    /// Whether a run without a checkpoint may begin again: it had not come to its first one.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when its steps say that there was one.
    pub fn check_unsaved(&self, save_every: u64) -> Result<()> {
        let rows = fs::read_to_string(self.metrics()).map_or(0, |text| text.lines().count().saturating_sub(1))
            as u64;
        if !self.report().exists() && (save_every == 0 || rows <= save_every) {
            return Ok(());
        }
        Err(Error::InvalidRequest(format!(
            "{} is gone, though {rows} steps were taken: there is nothing to go on from; another --out begins anew",
            self.checkpoint().display()
        )))
    }

    /// Takes away the halves of files that a kill has left.
    fn sweep(&self) -> Result<()> {
        for folder in [self.out.clone(), self.run()] {
            for entry in fs::read_dir(&folder).map_err(|e| Error::io(&folder, e))? {
                let entry = entry.map_err(|e| Error::io(&folder, e))?;
                if entry.file_name().to_string_lossy().starts_with(atomic_file::PREFIX) {
                    let path = entry.path();
                    let removed =
                        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                    removed.map_err(|e| Error::io(&path, e))?;
                }
            }
        }
        Ok(())
    }

    /// The voice.
    pub fn voice(&self) -> &Path {
        &self.out
    }

    /// Where everything but the voice lies.
    pub fn run(&self) -> PathBuf {
        self.out.join(RUN)
    }

    pub fn checkpoint(&self) -> PathBuf {
        self.run().join("checkpoint.safetensors")
    }

    pub fn metrics(&self) -> PathBuf {
        self.run().join("metrics.csv")
    }

    pub fn report(&self) -> PathBuf {
        self.run().join("report.json")
    }

    pub fn samples(&self) -> PathBuf {
        self.run().join("samples")
    }

    pub fn pictures(&self) -> PathBuf {
        self.run().join("pictures")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(lr: &str) -> Map<String, Value> {
        Map::from_iter([("lr".to_owned(), Value::from(lr))])
    }

    #[test]
    fn what_is_there_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("voice");
        let refused =
            |out: &Path, resume, lr| RunDirectory::open(out, resume, &identity(lr)).unwrap_err().to_string();
        let mut home = RunDirectory::open(&out, true, &identity("1")).unwrap();
        assert!(refused(&out, false, "1").contains("--resume goes on with it"));
        assert!(refused(&out, true, "1").contains("another run writes to"));
        drop(home.lock.take());
        assert!(refused(&out, true, "2").contains("lr was \"1\" and is \"2\""));
        fs::write(home.run().join(".mezzavoce-half"), b"half").unwrap();
        RunDirectory::open(&out, true, &identity("1")).unwrap();
        assert!(!home.run().join(".mezzavoce-half").exists());

        fs::write(directory.path().join("config.json"), b"{}").unwrap();
        assert!(refused(directory.path(), false, "1").contains("no run of this program"));
        assert!(refused(directory.path(), true, "1").contains("no run of this program"));
    }
}
