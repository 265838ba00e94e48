//! A pinned archive in, its one library verified and in the cache out, by the user's own package client.
//!
//! The client works in a fresh directory inside the cache and the library gets its name by a rename, so
//! a process that is killed, or two that fetch at once, leave either nothing under that name or the whole
//! verified file. Archive and library are each held against their sha256.
//!
//! Never speaks HTTP, never runs a shell, never executes anything from the archive.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::library::{self, Client, Pin};
use crate::error::{Error, Result};

/// How each package client is started: the first word and what comes before the client's own arguments.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Pythons that may have pip, in the order to try.
    pub pythons: Vec<Vec<OsString>>,
    pub npm: Vec<OsString>,
    /// After this long a client is killed.
    pub timeout: Duration,
}

impl Default for Clients {
    fn default() -> Self {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        if cfg!(windows) {
            // Only with its extension is a batch file found and started.
            let pythons = ["python", "py -3", "python3"].map(words).to_vec();
            Self { pythons, npm: words("npm.cmd"), timeout: TIMEOUT }
        } else {
            Self { pythons: ["python3", "python"].map(words).to_vec(), npm: words("npm"), timeout: TIMEOUT }
        }
    }
}

/// Enough for the largest archive (114 MB) at 1.6 Mbit/s.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Working directories older than this belong to nobody: a client is killed well before.
const STALE: Duration = Duration::from_secs(3600);

const WORK_PREFIX: &str = ".fetch-";

/// Std has no wait with a limit; this is how often the client is asked whether it is done.
const POLL: Duration = Duration::from_millis(20);

/// Brings `pin` into `cache_dir`, an absolute path.
///
/// The outer error ends the search: the cache cannot be written. The inner one says for each attempt why
/// this way failed.
pub(super) fn fetch(pin: &Pin, clients: &Clients, cache_dir: &Path) -> Result<Result<PathBuf, Vec<String>>> {
    fs::create_dir_all(cache_dir).map_err(|e| cache_error(cache_dir, e))?;
    remove_stale(cache_dir);
    let (client, launchers) = match pin.client {
        Client::Pip { .. } => ("pip", clients.pythons.as_slice()),
        Client::Npm => ("npm", std::slice::from_ref(&clients.npm)),
    };
    let progress = announce(pin, client);
    let mut reasons = Vec::new();
    for launcher in launchers {
        let work = tempfile::Builder::new()
            .prefix(WORK_PREFIX)
            .tempdir_in(cache_dir)
            .map_err(|e| cache_error(cache_dir, e))?;
        let program = launcher.join(OsStr::new(" "));
        let outcome = run(launcher, &arguments(pin), work.path(), clients.timeout)
            .and_then(|()| verify_archive(pin, work.path()));
        match outcome {
            Ok(archive) => match unpack(pin, &archive, &work, cache_dir)? {
                Ok(path) => {
                    progress.finish_and_clear();
                    tracing::info!(version = pin.version, client, path = %path.display(), "ONNX Runtime fetched");
                    return Ok(Ok(path));
                }
                Err(reason) => reasons.push(format!("{client} ({}): {reason}", program.display())),
            },
            Err(reason) => reasons.push(format!("{client} ({}): {reason}", program.display())),
        }
    }
    progress.finish_and_clear();
    Ok(Err(reasons))
}

fn announce(pin: &Pin, client: &str) -> ProgressBar {
    let megabytes = pin.archive_bytes.div_ceil(1_000_000);
    let line = format!("fetching ONNX Runtime {} ({megabytes} MB, once) with {client} …", pin.version);
    if io::stderr().is_terminal() {
        let spinner = ProgressBar::new_spinner().with_message(line);
        spinner.enable_steady_tick(Duration::from_millis(100));
        spinner
    } else {
        // Nobody to tell must not stop the fetch.
        let _ = writeln!(io::stderr(), "{line}");
        ProgressBar::hidden()
    }
}

fn arguments(pin: &Pin) -> Vec<String> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    match &pin.client {
        Client::Pip { python, implementation, abi, platform } => words(&format!(
            "-m pip download --no-input --disable-pip-version-check --progress-bar off --retries 1 --no-deps \
             --only-binary=:all: --python-version {python} --implementation {implementation} --abi {abi} \
             --platform {platform} --dest . {}=={}",
            pin.package, pin.version
        )),
        Client::Npm => words(&format!(
            "pack --ignore-scripts --loglevel=error --fetch-retries=1 {}@{}",
            pin.package, pin.version
        )),
    }
}

/// Runs one client to its end, or to `timeout`. Its directory is ours and empty, so that nothing lying in
/// the user's (a `pip.py`, an `.npmrc`) is picked up.
fn run(launcher: &[OsString], arguments: &[String], work: &Path, timeout: Duration) -> Result<(), String> {
    let Some((program, leading)) = launcher.split_first() else {
        return Err("no program configured".to_owned());
    };
    // A file, not pipes: nothing can block on a full one, and a grandchild cannot hold us up.
    let failed = |e: io::Error| format!("its output cannot be kept: {e}");
    let mut output = tempfile::tempfile_in(work).map_err(failed)?;
    let mut child = Command::new(program)
        .args(leading)
        .args(arguments)
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(failed)?)
        .stderr(output.try_clone().map_err(failed)?)
        .spawn()
        .map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => "no such program".to_owned(),
            _ => format!("cannot be started: {e}"),
        })?;
    let started = Instant::now();
    let status: ExitStatus = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() < timeout => std::thread::sleep(POLL),
            ended => {
                // It may have ended just now; either way it must be reaped and cannot be used.
                let _ = child.kill();
                let _ = child.wait();
                return Err(match ended {
                    Err(e) => format!("cannot be waited for: {e}"),
                    Ok(_) => format!("killed after {} s; {}", timeout.as_secs(), last_words(&mut output)),
                });
            }
        }
    };
    if status.success() { Ok(()) } else { Err(format!("{status}; {}", last_words(&mut output))) }
}

/// The end of a client's output: at most four lines, on one.
fn last_words(output: &mut File) -> String {
    const KEPT_BYTES: u64 = 2048;
    let mut tail = Vec::new();
    let read = output.metadata().and_then(|metadata| {
        output.seek(SeekFrom::Start(metadata.len().saturating_sub(KEPT_BYTES)))?;
        output.take(KEPT_BYTES).read_to_end(&mut tail)
    });
    if let Err(e) = read {
        return format!("its output cannot be read: {e}");
    }
    let text = String::from_utf8_lossy(&tail);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.get(lines.len().saturating_sub(4)..) {
        Some(last) if !last.is_empty() => format!("it said: {}", last.join(" | ")),
        _ => "it said nothing".to_owned(),
    }
}

fn verify_archive(pin: &Pin, work: &Path) -> Result<PathBuf, String> {
    let archive = work.join(&pin.archive);
    let sha256 = sha256_of(&archive).map_err(|e| format!("it left no readable {}: {e}", pin.archive))?;
    if sha256 == pin.archive_sha256 {
        Ok(archive)
    } else {
        Err(format!("refused {}: its sha256 is {sha256}, pinned is {}", pin.archive, pin.archive_sha256))
    }
}

/// Verifies the member, writes it to the working directory and renames it to its place.
fn unpack(pin: &Pin, archive: &Path, work: &TempDir, cache_dir: &Path) -> Result<Result<PathBuf, String>> {
    let member = match &pin.client {
        Client::Pip { .. } => member_of_zip(archive, pin),
        Client::Npm => member_of_tgz(archive, pin),
    };
    let refused = |why: String| Ok(Err(format!("refused `{}` of {}: {why}", pin.member, pin.archive)));
    let library = match member {
        Ok(library) => library,
        Err(e) => return refused(e.to_string()),
    };
    let sha256 = hexadecimal(&Sha256::digest(&library));
    if sha256 != pin.library_sha256 {
        return refused(format!("its sha256 is {sha256}, pinned is {}", pin.library_sha256));
    }
    let path = pin.cache_path(cache_dir);
    let parent = path.parent().unwrap_or(cache_dir);
    fs::create_dir_all(parent).map_err(|e| cache_error(parent, e))?;
    // Not a temporary file of the crate's: those are private to the owner, and a cache may be shared.
    let loose = work.path().join("library");
    File::create(&loose)
        .and_then(|mut file| file.write_all(&library).and_then(|()| file.sync_all()))
        .map_err(|e| cache_error(&path, e))?;
    if let Err(e) = fs::rename(&loose, &path) {
        // Where a file in use cannot be replaced, another process has put the same one there.
        library::check_cached(pin, &path).map_err(|_| cache_error(&path, e))?;
    }
    Ok(library::check_cached(pin, &path).map(|()| path))
}

fn member_of_zip(archive: &Path, pin: &Pin) -> io::Result<Vec<u8>> {
    let mut zip = zip::ZipArchive::new(File::open(archive)?)?;
    read_member(zip.by_name(&pin.member)?, pin)
}

fn member_of_tgz(archive: &Path, pin: &Pin) -> io::Result<Vec<u8>> {
    let mut tar = tar::Archive::new(GzDecoder::new(File::open(archive)?));
    for entry in tar.entries()? {
        let entry = entry?;
        if entry.path()?.as_ref() == Path::new(&pin.member) {
            return read_member(entry, pin);
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "it is not in the archive"))
}

/// Reads one byte more than is pinned, never more: a longer member fails by its sha256.
fn read_member(member: impl Read, pin: &Pin) -> io::Result<Vec<u8>> {
    let mut library = Vec::new();
    member.take(pin.library_bytes.saturating_add(1)).read_to_end(&mut library)?;
    Ok(library)
}

/// The sha256 of a file, in lower-case hexadecimal.
pub(super) fn sha256_of(path: &Path) -> io::Result<String> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut digest = Sha256::new();
    loop {
        let block = reader.fill_buf()?;
        if block.is_empty() {
            return Ok(hexadecimal(&digest.finalize()));
        }
        digest.update(block);
        let length = block.len();
        reader.consume(length);
    }
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A process killed mid-way leaves its working directory; nothing else would ever remove it.
fn remove_stale(cache_dir: &Path) {
    let Ok(entries) = fs::read_dir(cache_dir) else { return };
    for entry in entries.filter_map(|entry| entry.ok()) {
        let age = entry.metadata().and_then(|m| m.modified()).map(|modified| modified.elapsed());
        if entry.file_name().to_string_lossy().starts_with(WORK_PREFIX)
            && matches!(age, Ok(Ok(age)) if age > STALE)
            && let Err(e) = fs::remove_dir_all(entry.path())
        {
            tracing::debug!(path = %entry.path().display(), error = %e, "stale directory kept");
        }
    }
}

fn cache_error(path: &Path, e: io::Error) -> Error {
    let reason = format!("{e} (the cache of ONNX Runtime; name a library with --onnxruntime to do without)");
    Error::io(path, io::Error::new(e.kind(), reason))
}
