//! The directories of all shards in, one directory and one manifest in input order out.
//!
//! Line n lies in shard (n - 1) mod N, so the manifests are read side by side. Everything is checked before the first
//! file is placed. Never joins shards that are not all there, not finished or not of one run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Lines, Write};
use std::path::{Path, PathBuf};

use super::identity::Identity;
use super::lock::Lock;
use super::output::{Claims, Clash, OWN_PREFIX, WORK_PREFIX, check};
use super::record::{Record, Status};
use super::settings::holds;
use super::summary::Totals;
use crate::cli::Shard;
use crate::error::{Error, Result};

/// One shard: where it lies, and the lines of its manifest.
struct Part {
    directory: PathBuf,
    lines: Lines<BufReader<File>>,
}

/// The shards of one run by their index, and how many lines their input has.
struct Parts {
    parts: BTreeMap<u64, Part>,
    lines: u64,
}

/// Joins what lies in `directories`, and tells a person of it.
///
/// # Errors
/// [`Error::InvalidRequest`] for shards that are missing, unfinished, come twice or do not belong together, for lines
/// that are missing, and for files that are missing or are not what was noted; nothing was written to `out` then.
pub fn merge(directories: &[PathBuf], out: &Path, quiet: bool) -> Result<()> {
    let parts = find(directories)?;
    let count = parts.parts.len();
    let was_there = out.exists();
    std::fs::create_dir_all(out).map_err(|error| Error::io(out, error))?;
    let totals = merge_into(parts, out).inspect_err(|_| {
        if !was_there {
            // One that holds something stays.
            let _ = std::fs::remove_dir(out);
        }
    })?;
    if !quiet {
        let shards = if count == 1 { "shard" } else { "shards" };
        // Nobody to tell must not change the status.
        let _ = writeln!(std::io::stderr(), "{} lines joined from {count} {shards}", totals.lines());
    }
    totals.conclude(&out.join("manifest.jsonl"), true)
}

fn merge_into(parts: Parts, out: &Path) -> Result<Totals> {
    let out = out.canonicalize().map_err(|error| Error::io(out, error))?;
    let _alone = Lock::alone(&out)?;
    let work = out.join(format!("{OWN_PREFIX}-merge"));
    let work_lock = super::take(&work)?;
    let directories: Vec<PathBuf> = parts.parts.values().map(|part| part.directory.clone()).collect();
    let joined = join(parts, &out, &work).and_then(|totals| {
        place_all(&directories, &out, &work)?;
        Ok(totals)
    });
    drop(work_lock);
    let removed = std::fs::remove_dir_all(&work).map_err(|error| Error::io(&work, error));
    joined.and_then(|totals| removed.map(|()| totals))
}

/// Writes the records of all `parts` in order to `work`/manifest, and holds each against its file.
fn join(Parts { mut parts, lines }: Parts, out: &Path, work: &Path) -> Result<Totals> {
    std::fs::write(work.join("case"), b"").map_err(|error| Error::io(work, error))?;
    let mut claims = Claims::new(work.join("CASE").exists());
    let (mut totals, new) = (Totals::default(), work.join("manifest"));
    let fault = |error| Error::io(&new, error);
    let mut manifest = BufWriter::new(File::create(&new).map_err(fault)?);
    let count = parts.len() as u64;
    let nested: Vec<PathBuf> = parts
        .values()
        .filter_map(|part| part.directory.canonicalize().ok())
        .filter(|directory| directory != out && directory.starts_with(out))
        .collect();
    for number in 1..=lines {
        let index = (number - 1) % count;
        let Some(Part { directory, lines }) = parts.get_mut(&index) else { break };
        let shard = format!("shard {index} of {count} in {}", directory.display());
        let refuse = |why: &str| Error::InvalidRequest(format!("{shard} {why}"));
        let line = match lines.next() {
            None => return Err(refuse(&format!("lacks line {number}"))),
            Some(Err(error)) if error.kind() != ErrorKind::InvalidData => {
                return Err(Error::io(&*directory, error));
            }
            Some(line) => line.unwrap_or_default(),
        };
        let record: Record = serde_json::from_str(&line).map_err(|error| {
            refuse(&format!(
                "has a foreign manifest: where line {number} should be there is no record ({error})"
            ))
        })?;
        if record.line != number {
            return Err(refuse(&format!("lacks line {number}: there is line {}", record.line)));
        }
        if let (Status::Ok, Some(output), Some(spoken)) = (record.status, &record.output, &record.spoken) {
            let output = check(output).map_err(|refusal| refuse(&refusal.message))?;
            claims.claim(&output, number).map_err(|clash| {
                let (Clash::Same(other) | Clash::Within(other) | Clash::Around(other)) = clash;
                refuse(&format!(
                    "has line {number}, whose output `{output}` is in the way of that of line {other}"
                ))
            })?;
            let from = directory.join(&output);
            if !holds(&from, spoken.bytes, &spoken.sha256) {
                return Err(refuse(&format!(
                    "has line {number}, whose file {output} is not there, or not what was noted"
                )));
            }
            let to = out.join(&output);
            if nested.iter().any(|directory| to.starts_with(directory)) && !is_same(&from, &to) {
                return Err(refuse(&format!(
                    "has line {number}, whose output `{output}` would lie in a shard's directory"
                )));
            }
            if !is_placeable(&to, out) {
                return Err(refuse(&format!(
                    "has line {number}, whose place {} is a directory or behind a link",
                    to.display()
                )));
            }
        }
        totals.note(&record, true);
        writeln!(manifest, "{line}").map_err(fault)?;
    }
    for (index, Part { directory, lines: rest }) in &mut parts {
        if rest.next().is_some() {
            let directory = directory.display();
            let reason =
                format!("shard {index} of {count} in {directory} has more than its share of {lines} lines");
            return Err(Error::InvalidRequest(reason));
        }
    }
    manifest.into_inner().map_err(|error| fault(error.into_error()))?.sync_all().map_err(fault)?;
    Ok(totals)
}

/// Places the files of the records in `work`/manifest, and it last.
fn place_all(directories: &[PathBuf], out: &Path, work: &Path) -> Result<()> {
    let new = work.join("manifest");
    let fault = |error| Error::io(&new, error);
    let lines = BufReader::new(File::open(&new).map_err(fault)?).lines();
    for (line, directory) in lines.zip(directories.iter().cycle()) {
        let record: Record = serde_json::from_str(&line.map_err(fault)?)
            .map_err(|error| Error::Internal(format!("a record that was read before: {error}")))?;
        if let (Status::Ok, Some(output)) = (record.status, &record.output) {
            let output = check(output).map_err(|refusal| Error::InvalidRequest(refusal.message))?;
            place(&directory.join(&output), &out.join(&output), work)?;
        }
    }
    let final_path = out.join("manifest.jsonl");
    std::fs::rename(&new, &final_path).map_err(|error| Error::io(&final_path, error))
}

/// The manifest of every shard, all of which are finished and of one run.
fn find(directories: &[PathBuf]) -> Result<Parts> {
    let refuse = |reason: String| Err(Error::InvalidRequest(reason));
    let mut found: BTreeMap<(u64, u64), PathBuf> = BTreeMap::new();
    for directory in directories {
        let fault = |error| Error::io(directory, error);
        for entry in std::fs::read_dir(directory).map_err(fault)? {
            let name = entry.map_err(fault)?.file_name();
            let name = name.to_string_lossy();
            if let Some((index, count)) = name.strip_prefix(WORK_PREFIX).and_then(shard_of) {
                let directory = directory.join(&*name);
                let lock = File::open(directory.join("lock"));
                let state = match lock.is_ok_and(|lock| lock.try_lock().is_err()) {
                    true => "is still being spoken: wait for its end",
                    false => "is not finished: run it again",
                };
                return refuse(format!("shard {index} of {count} {state} ({})", directory.display()));
            }
            let of_manifest = |name: &str| shard_of(name.strip_prefix("manifest")?.strip_suffix(".jsonl")?);
            let Some((index, count)) = of_manifest(&name) else { continue };
            if let Some(other) = found.insert((count, index), directory.clone()) {
                let (here, there) = (directory.display(), other.display());
                return refuse(format!("shard {index} of {count} is there twice: in {there} and in {here}"));
            }
        }
    }
    let Some(((count, _), first)) = found.first_key_value() else {
        return refuse(format!("no manifest-I-of-N.jsonl is in {}", listed(directories)));
    };
    let count = *count;
    if let Some(((other, _), directory)) = found.iter().find(|((other, _), _)| *other != count) {
        let (first, directory) = (first.display(), directory.display());
        return refuse(format!(
            "shards of {count} (in {first}) and shards of {other} (in {directory}) do not go together: take away the \
             manifests of those that are not meant"
        ));
    }
    if let Some(missing) = (0..count).find(|index| !found.contains_key(&(count, *index))) {
        return refuse(format!(
            "shard {missing} of {count} is missing: it is not in {}",
            listed(directories)
        ));
    }
    let (mut parts, mut of_run): (BTreeMap<u64, Part>, Option<(PathBuf, Identity)>) = (BTreeMap::new(), None);
    for ((_, index), directory) in found {
        let shard = format!("shard {index} of {count} in {}", directory.display());
        let identity = Identity::path(&directory, Shard { index, count });
        if !identity.is_file() {
            return refuse(format!(
                "{shard} does not say of which run it is: {} is not there; run the shard again, what it has spoken stays",
                identity.display()
            ));
        }
        let identity = Identity::load(&identity)?;
        match &of_run {
            None => of_run = Some((directory.clone(), identity)),
            Some((first, expected)) if *expected != identity => {
                let (first, what) = (first.display(), expected.differences(&identity).join(", "));
                return refuse(format!(
                    "shard 0 of {count} in {first} and {shard} are of different runs: {what}"
                ));
            }
            Some(_) => {}
        }
        let path = directory.join(format!("manifest-{index}-of-{count}.jsonl"));
        let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
        parts.insert(index, Part { directory, lines: BufReader::new(file).lines() });
    }
    Ok(Parts { parts, lines: of_run.map_or(0, |(_, identity)| identity.lines) })
}

fn listed(directories: &[PathBuf]) -> String {
    let names: Vec<String> = directories.iter().map(|directory| directory.display().to_string()).collect();
    crate::error::listed(names.iter().map(String::as_str))
}

/// Which of how many shards a name is of, from its end `-I-of-N` as a run writes it.
fn shard_of(end: &str) -> Option<(u64, u64)> {
    let (index, count) = end.strip_prefix('-')?.split_once("-of-")?;
    let (index, count): (u64, u64) = (index.parse().ok()?, count.parse().ok()?);
    (index < count && end == format!("-{index}-of-{count}")).then_some((index, count))
}

fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Whether a file can be placed at `to`: no directory is there, and no link leads out of `out` before it.
fn is_placeable(to: &Path, out: &Path) -> bool {
    let existing = to.ancestors().skip(1).find_map(|parent| parent.canonicalize().ok());
    !to.is_dir() && existing.is_some_and(|parent| parent.starts_with(out) && parent.is_dir())
}

/// Gives the file `from` the name `to` as well, or copies it where the disk is another.
fn place(from: &Path, to: &Path, work: &Path) -> Result<()> {
    let fault = |error| Error::io(to, error);
    if is_same(from, to) {
        return Ok(());
    }
    std::fs::create_dir_all(to.parent().unwrap_or(to)).map_err(fault)?;
    let new = work.join("file");
    if std::fs::hard_link(from, &new).is_err() {
        std::fs::copy(from, &new).map_err(fault)?;
    }
    std::fs::rename(&new, to).map_err(fault)?;
    // Renaming one name of a file to another of its names leaves both.
    let _ = std::fs::remove_file(&new);
    Ok(())
}
