//! The directories of all shards in, one directory and one manifest in input order out.
//!
//! Line n lies in shard (n - 1) mod N, so the manifests are read side by side. Never joins shards that are not all there
//! and finished.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Lines, Write};
use std::path::{Path, PathBuf};

use super::output::{Claims, OWN_PREFIX, WORK_PREFIX, check};
use super::record::{Record, Status};
use super::settings::holds;
use super::summary::Totals;
use crate::error::{Error, Result};

type Shards = BTreeMap<u64, (PathBuf, Lines<BufReader<File>>)>;

/// Joins what lies in `directories`.
///
/// # Errors
/// [`Error::InvalidRequest`] for shards that are missing, unfinished, come twice or do not belong together, for lines
/// that are missing, and for files that are missing or are not what was noted.
pub fn merge(directories: &[PathBuf], out: &Path) -> Result<Totals> {
    let mut shards = find(directories)?;
    let count = shards.len() as u64;
    std::fs::create_dir_all(out).map_err(|error| Error::io(out, error))?;
    let out = out.canonicalize().map_err(|error| Error::io(out, error))?;
    let work = out.join(format!("{OWN_PREFIX}-merge"));
    let lock = super::take(&work)?;
    std::fs::write(work.join("case"), b"").map_err(|error| Error::io(&work, error))?;
    let mut claims = Claims::new(work.join("CASE").exists());
    let (mut totals, new) = (Totals::default(), work.join("manifest"));
    let fault = |error| Error::io(&new, error);
    let mut manifest = BufWriter::new(File::create(&new).map_err(fault)?);
    let mut number = 0;
    loop {
        let index = number % count;
        number += 1;
        let Some((directory, lines)) = shards.get_mut(&index) else { break };
        let Some(line) = lines.next() else { break };
        let line = line.map_err(|error| Error::io(&*directory, error))?;
        let foreign = |why: &str| {
            Error::InvalidRequest(format!(
                "{}: shard {index} of {count}, line {number}: {why}",
                directory.display()
            ))
        };
        let record: Record = serde_json::from_str(&line).map_err(|error| foreign(&error.to_string()))?;
        if record.line != number {
            return Err(foreign(&format!("the record is of line {}: lines are missing", record.line)));
        }
        if let (Status::Ok, Some(output), Some(spoken)) = (record.status, &record.output, &record.spoken) {
            let output = check(output).map_err(|refusal| foreign(&refusal.message))?;
            claims
                .claim(&output, number)
                .map_err(|other| foreign(&format!("line {other} has the same output")))?;
            let from = directory.join(&output);
            if !holds(&from, spoken.bytes, &spoken.sha256) {
                return Err(foreign(&format!("{output} is not there, or not what was noted")));
            }
            place(&from, &out.join(&output), &work)?;
        }
        totals.note(&record, true);
        writeln!(manifest, "{line}").map_err(fault)?;
    }
    for (index, (directory, lines)) in &mut shards {
        if lines.next().is_some() {
            let directory = directory.display();
            let reason =
                format!("{directory}: shard {index} goes on behind line {number}, another ends there");
            return Err(Error::InvalidRequest(reason));
        }
    }
    manifest.into_inner().map_err(|error| fault(error.into_error()))?.sync_all().map_err(fault)?;
    let final_path = out.join("manifest.jsonl");
    std::fs::rename(&new, &final_path).map_err(|error| Error::io(&final_path, error))?;
    drop(lock);
    std::fs::remove_dir_all(&work).map_err(|error| Error::io(&work, error))?;
    Ok(totals)
}

/// The manifest of every shard, all of which are finished.
fn find(directories: &[PathBuf]) -> Result<Shards> {
    let refuse = |reason: String| Err(Error::InvalidRequest(reason));
    let (mut shards, mut counts) = (Shards::new(), std::collections::BTreeSet::new());
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
            let path = directory.join(&*name);
            let file = File::open(&path).map_err(|error| Error::io(&path, error))?;
            counts.insert(count);
            if shards.insert(index, (directory.clone(), BufReader::new(file).lines())).is_some() {
                return refuse(format!(
                    "shard {index} of {count} is there twice, also in {}",
                    directory.display()
                ));
            }
        }
    }
    let mut counts = counts.into_iter();
    match (counts.next(), counts.next()) {
        (None, _) => refuse("no manifest-I-of-N.jsonl is in these directories".to_owned()),
        (Some(one), Some(other)) => {
            refuse(format!("shards of {one} and shards of {other} do not go together"))
        }
        (Some(count), None) => match (0..count).find(|index| !shards.contains_key(index)) {
            Some(missing) => refuse(format!("shard {missing} of {count} is missing")),
            None => Ok(shards),
        },
    }
}

/// Which of how many shards a name is of, from its end `-I-of-N`.
fn shard_of(end: &str) -> Option<(u64, u64)> {
    let (index, count) = end.strip_prefix('-')?.split_once("-of-")?;
    Some((index.parse().ok()?, count.parse().ok()?))
}

/// Gives the file `from` the name `to` as well, or copies it where the disk is another.
fn place(from: &Path, to: &Path, work: &Path) -> Result<()> {
    let fault = |error| Error::io(to, error);
    if to.canonicalize().is_ok_and(|to| from.canonicalize().is_ok_and(|from| from == to)) {
        return Ok(());
    }
    let parent = to.parent().unwrap_or(to);
    std::fs::create_dir_all(parent).map_err(fault)?;
    let inside =
        work.parent().zip(parent.canonicalize().ok()).is_some_and(|(out, path)| path.starts_with(out));
    if !inside {
        return Err(Error::InvalidRequest(format!("{} leaves --out through a link", to.display())));
    }
    let new = work.join("file");
    if std::fs::hard_link(from, &new).is_err() {
        std::fs::copy(from, &new).map_err(fault)?;
    }
    std::fs::rename(&new, to).map_err(fault)?;
    // Renaming one name of a file to another of its names leaves both.
    let _ = std::fs::remove_file(&new);
    Ok(())
}
