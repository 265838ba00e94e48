//! Files and stdin in, numbered lines out, each bounded.
//!
//! Never holds more than one line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use super::GLANCE;
use super::line::MAX_LINE_BYTES;
use super::speak::interrupted;
use crate::error::{Error, Result};

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Counted over all files, from 1.
    pub number: u64,
    /// The file, and the line in it.
    pub source: String,
    /// Without its end; `None` when it is longer than [`MAX_LINE_BYTES`].
    pub bytes: Option<Vec<u8>>,
    /// As it lay in the file.
    pub length: u64,
}

/// Where lines come from, as often as they are asked for.
#[derive(Debug)]
pub struct Input {
    /// What a file is called, and where it lies.
    files: Vec<(String, PathBuf)>,
}

impl Input {
    /// `-` is stdin, which is copied to `spool`, since lines are read twice, unless `stopped` is set meanwhile.
    pub fn open(paths: &[PathBuf], spool: &Path, stopped: &AtomicBool) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            if path == Path::new("-") {
                if files.iter().any(|(name, _)| name == "stdin") {
                    return Err(Error::InvalidRequest("stdin can be read once: `-` comes twice".to_owned()));
                }
                copy_stdin(spool, stopped)?;
                files.push(("stdin".to_owned(), spool.to_path_buf()));
                continue;
            }
            let metadata = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
            if !metadata.is_file() {
                let reason = format!(
                    "{} is no regular file: lines are read twice, give `-` for a pipe",
                    path.display()
                );
                return Err(Error::InvalidRequest(reason));
            }
            files.push((path.display().to_string(), path.clone()));
        }
        Ok(Self { files })
    }

    /// All lines from the first.
    pub fn lines(&self) -> Lines<'_> {
        Lines { files: self.files.iter(), current: None, number: 0 }
    }
}

/// Copies stdin to its end into `spool`.
fn copy_stdin(spool: &Path, stopped: &AtomicBool) -> Result<()> {
    let mut copy = File::create(spool).map_err(|error| Error::io(spool, error))?;
    let (sender, receiver) = sync_channel(1);
    // A thread of its own, since nothing ends a read of a terminal or a pipe where nobody writes.
    std::thread::spawn(move || {
        let copied = std::io::copy(&mut std::io::stdin().lock(), &mut copy).and_then(|_| copy.flush());
        // Whoever has stopped waiting has left.
        let _ = sender.send(copied);
    });
    loop {
        match receiver.recv_timeout(GLANCE) {
            Ok(copied) => return copied.map_err(|error| Error::io(spool, error)),
            Err(RecvTimeoutError::Timeout) if stopped.load(Ordering::Relaxed) => return Err(interrupted()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::Internal("the thread that reads stdin has ended".to_owned()));
            }
        }
    }
}

pub struct Lines<'a> {
    files: std::slice::Iter<'a, (String, PathBuf)>,
    current: Option<(&'a str, &'a Path, BufReader<File>, u64)>,
    number: u64,
}

impl Iterator for Lines<'_> {
    type Item = Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((name, path, reader, within)) = &mut self.current else {
                let (name, path) = self.files.next()?;
                match File::open(path) {
                    Ok(file) => self.current = Some((name, path, BufReader::with_capacity(1 << 16, file), 0)),
                    Err(error) => return Some(Err(Error::io(path, error))),
                }
                continue;
            };
            match read_line(reader) {
                Err(error) => return Some(Err(Error::io(*path, error))),
                Ok(None) => self.current = None,
                Ok(Some((bytes, length))) => {
                    self.number += 1;
                    *within += 1;
                    // Files that were joined have their marks inside.
                    let bytes = bytes.map(|bytes| match bytes.strip_prefix(b"\xef\xbb\xbf") {
                        Some(rest) => rest.to_vec(),
                        None => bytes,
                    });
                    let source = format!("{name}:{within}");
                    return Some(Ok(Line { number: self.number, source, bytes, length }));
                }
            }
        }
    }
}

/// The next line without its end, nothing of one that is too long, and its length; `None` at the end.
fn read_line(reader: &mut impl BufRead) -> std::io::Result<Option<(Option<Vec<u8>>, u64)>> {
    let mut bytes = Vec::new();
    let mut length = reader.by_ref().take(MAX_LINE_BYTES as u64 + 2).read_until(b'\n', &mut bytes)? as u64;
    if length == 0 {
        return Ok(None);
    }
    let ended = bytes.pop_if(|last| *last == b'\n').is_some();
    bytes.pop_if(|last| *last == b'\r');
    if bytes.len() <= MAX_LINE_BYTES {
        return Ok(Some((Some(bytes), length)));
    }
    if !ended {
        length += reader.skip_until(b'\n')? as u64;
    }
    Ok(Some((None, length)))
}

/// Whether a line holds nothing but white space.
pub fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}
