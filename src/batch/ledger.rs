//! Records as they come in, `manifest.jsonl` in input order out; what an earlier run has finished is found again.
//!
//! The journal is appended to, a line a write, so that a kill leaves whole lines and at most one torn one. Never writes
//! the manifest other than whole.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::record::{Record, Status};
use crate::error::{Error, Result};

/// Where a record lies.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    in_manifest: bool,
    offset: u64,
    length: u32,
}

/// Records of lines that follow each other in the input and where they lie: what fails or is kept comes in order, so a
/// million of them take one of these. Of spoken lines, whose order is another, each takes up to 40 bytes.
#[derive(Debug)]
struct Stretch {
    first: u64,
    /// The line of this run that comes behind the last one.
    next: u64,
    in_manifest: bool,
    offset: u64,
    bytes: u64,
}

/// The records of one output directory.
pub struct Ledger {
    manifest_path: PathBuf,
    journal_path: PathBuf,
    journal: File,
    end: u64,
    step: u64,
    manifest: Option<File>,
    /// Finished lines of earlier runs, by the beginning of their key: 40 bytes a line.
    finished: HashMap<u64, Place>,
    /// Records of this run.
    present: Vec<Stretch>,
}

impl Ledger {
    /// Opens what an earlier run has left at `manifest` and `journal`. Every `step`-th line is of this run.
    pub fn open(manifest_path: &Path, journal_path: &Path, step: u64) -> Result<Self> {
        let fault = |error| Error::io(journal_path, error);
        let mut options = OpenOptions::new();
        let journal = options.read(true).append(true).create(true).open(journal_path).map_err(fault)?;
        let manifest = match File::open(manifest_path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(manifest_path, error)),
        };
        let mut ledger = Self {
            manifest_path: manifest_path.to_path_buf(),
            journal_path: journal_path.to_path_buf(),
            journal,
            end: 0,
            step,
            manifest,
            finished: HashMap::new(),
            present: Vec::new(),
        };
        if let Some(manifest) = &ledger.manifest {
            let copy = manifest.try_clone().map_err(|error| Error::io(manifest_path, error))?;
            ledger.index(copy, true)?;
        }
        let copy = ledger.journal.try_clone().map_err(fault)?;
        ledger.end = ledger.index(copy, false)?;
        ledger.journal.set_len(ledger.end).map_err(fault)?;
        Ok(ledger)
    }

    /// Indexes whole lines of `file`. -> where they end
    fn index(&mut self, mut file: File, in_manifest: bool) -> Result<u64> {
        let path = if in_manifest { &self.manifest_path } else { &self.journal_path };
        let fault = |error| Error::io(path, error);
        file.seek(SeekFrom::Start(0)).map_err(fault)?;
        let (mut reader, mut line, mut offset) = (BufReader::new(file), Vec::new(), 0);
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(fault)?;
            if !line.ends_with(b"\n") {
                return Ok(offset);
            }
            // A line that is none of ours is as good as none: its work is done again.
            if let Ok(Record { status: Status::Ok, spoken: Some(spoken), .. }) = serde_json::from_slice(&line)
            {
                let place = Place { in_manifest, offset, length: u32::try_from(length).unwrap_or(0) };
                self.finished.insert(hash(&spoken.key), place);
            }
            offset += length as u64;
        }
    }

    /// The record of what an earlier run has finished under `key`.
    pub fn finished(&mut self, key: &str) -> Result<Option<(Record, Place)>> {
        let Some(place) = self.finished.get(&hash(key)).copied() else { return Ok(None) };
        let line = self.read(place)?;
        let record: Option<Record> = serde_json::from_slice(&line).ok();
        let record = record.filter(|record| record.spoken.as_ref().is_some_and(|spoken| spoken.key == key));
        Ok(record.map(|record| (record, place)))
    }

    fn read(&mut self, place: Place) -> Result<Vec<u8>> {
        let (file, path) = self.holder(place.in_manifest);
        let mut line = vec![0; place.length as usize];
        file.seek(SeekFrom::Start(place.offset))
            .and_then(|_| file.read_exact(&mut line))
            .map_err(|error| Error::io(path, error))?;
        Ok(line)
    }

    fn holder(&mut self, in_manifest: bool) -> (&mut File, &Path) {
        match &mut self.manifest {
            Some(manifest) if in_manifest => (manifest, &self.manifest_path),
            _ => (&mut self.journal, &self.journal_path),
        }
    }

    /// Adds `record` to the journal.
    pub fn add(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record).map_err(|e| Error::Internal(format!("a record: {e}")))?;
        line.push(b'\n');
        self.journal.write_all(&line).map_err(|error| Error::io(&self.journal_path, error))?;
        let length =
            u32::try_from(line.len()).map_err(|_| Error::Internal("a record of 4 GiB".to_owned()))?;
        self.note(record.line, Place { in_manifest: false, offset: self.end, length });
        self.end += u64::from(length);
        Ok(())
    }

    /// Takes `record` of an earlier run, which lies at `place`, into this one: as it is there if it `is_same`.
    pub fn keep(&mut self, record: &Record, place: Place, is_same: bool) -> Result<()> {
        if !is_same {
            return self.add(record);
        }
        self.note(record.line, place);
        Ok(())
    }

    fn note(&mut self, line: u64, Place { in_manifest, offset, length }: Place) {
        let bytes = u64::from(length);
        match self.present.last_mut() {
            Some(last)
                if last.next == line
                    && last.in_manifest == in_manifest
                    && last.offset + last.bytes == offset =>
            {
                last.next += self.step;
                last.bytes += bytes;
            }
            _ => {
                self.present.push(Stretch { first: line, next: line + self.step, in_manifest, offset, bytes })
            }
        }
    }

    /// Puts the records of this run in order under the manifest's name, and ends the journal.
    pub fn finish(mut self) -> Result<()> {
        self.present.sort_unstable_by_key(|stretch| stretch.first);
        let fault = |error| Error::io(&self.manifest_path, error);
        let new = self.journal_path.with_extension("new");
        let mut writer = BufWriter::new(File::create(&new).map_err(fault)?);
        for Stretch { in_manifest, offset, bytes, .. } in std::mem::take(&mut self.present) {
            let (file, path) = self.holder(in_manifest);
            let copied = file
                .seek(SeekFrom::Start(offset))
                .and_then(|_| std::io::copy(&mut file.take(bytes), &mut writer))
                .map_err(|error| Error::io(path, error))?;
            if copied != bytes {
                return Err(Error::io(path, std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
        let fault = |error| Error::io(&self.manifest_path, error);
        let file = writer.into_inner().map_err(|error| fault(error.into_error()))?;
        file.sync_all().map_err(fault)?;
        std::fs::rename(&new, &self.manifest_path).map_err(fault)?;
        std::fs::remove_file(&self.journal_path).map_err(|error| Error::io(&self.journal_path, error))
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::line::Refusal;
    use super::*;

    #[test]
    fn lines_that_fail_in_order_take_one_place_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let (manifest, journal) = (directory.path().join("manifest"), directory.path().join("journal"));
        let failed = |line| {
            Record::failed(line, "a".to_owned(), None, None, Refusal::new("not_json", line.to_string()))
        };
        for step in [1, 3] {
            let mut ledger = Ledger::open(&manifest, &journal, step).unwrap();
            for line in (0..1000).filter(|line| *line != 500) {
                ledger.add(&failed(1 + step * line)).unwrap();
            }
            ledger.add(&failed(1 + step * 500)).unwrap();
            assert_eq!(ledger.present.len(), 3);
            ledger.finish().unwrap();
            let text = std::fs::read_to_string(&manifest).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str::<Record>(line).unwrap().line);
            assert!(lines.eq((0..1000).map(|line| 1 + step * line)));
        }
    }
}
