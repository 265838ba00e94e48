//! The input and what decides its sound in, what the shards of one run have in common out.
//!
//! Lies beside each shard's manifest, so that shards of different runs are not joined. Never holds where something lies
//! or how many lines are spoken at once: shards may run on different machines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::settings::{file_hash, hex};
use crate::cli::{Batch, Shard};
use crate::error::{Error, Result};

/// What the shards of one run share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Lines of all inputs.
    pub lines: u64,
    /// SHA-256 of all lines.
    pub inputs: String,
    /// Options, versions and voices, by what a person calls them.
    pub settings: BTreeMap<String, String>,
}

impl Identity {
    /// Of `lines` lines with the hash `inputs`, as far as the command line tells.
    pub fn new(lines: u64, inputs: String, args: &Batch) -> Result<Self> {
        let rate = args.sample_rate_hz.map_or_else(|| "the voice's own".to_owned(), |rate| rate.to_string());
        let lexicon = args.lexicon.lexicon.as_deref().map(file_hash).transpose()?;
        let speaker = args.speaker.clone().unwrap_or_default();
        let speaker = match Path::new(&speaker).is_file() {
            true => file_hash(Path::new(&speaker))?,
            false => speaker,
        };
        let settings = [
            ("--seed", args.seed.to_string()),
            ("--rate", args.rate.to_string()),
            ("--encoding", args.encoding.to_string()),
            ("--sample-rate-hz", rate),
            ("--markup", format!("{:?}", args.markup)),
            ("--date-order", format!("{:?}", args.date_order)),
            ("--speaker", speaker),
            ("--lexicon", lexicon.unwrap_or_default()),
            ("--allow-unknown", args.allow_unknown.to_string()),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).into();
        Ok(Self { lines, inputs, settings })
    }

    /// Adds who speaks: `versions` of programs, and voices by their names and a hash of what they are.
    pub fn spoken_by(mut self, versions: &[(&str, String)], voices: &[(String, String)]) -> Self {
        let versions = versions.iter().map(|(name, version)| ((*name).to_owned(), version.clone()));
        self.settings.extend(versions);
        // The empty name is another name of a server's first voice.
        for (name, told) in voices.iter().filter(|(name, _)| !name.is_empty()) {
            let hash = hex(&Sha256::digest(without_device_numbers(told).as_bytes()));
            self.settings.insert(format!("voice `{name}`"), hash);
        }
        self
    }

    /// A hash of all of it.
    pub fn hash(&self) -> String {
        hex(&Sha256::digest(format!("{self:?}").as_bytes()))
    }

    /// In which things `other` differs, for a person.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.lines != other.lines {
            found.push(format!("the input ({} lines, {} lines)", self.lines, other.lines));
        } else if self.inputs != other.inputs {
            found.push("the text of the input".to_owned());
        }
        let mut names: Vec<&String> = self.settings.keys().chain(other.settings.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let said = |of: &Self| match of.settings.get(name).map(String::as_str) {
                None | Some("") => "none".to_owned(),
                Some(value) if value.len() == 64 => format!("{}…", value.get(..8).unwrap_or(value)),
                Some(value) => value.to_owned(),
            };
            if self.settings.get(name) != other.settings.get(name) {
                found.push(format!("{name} ({}, {})", said(self), said(other)));
            }
        }
        found
    }

    /// Writes it to `path`, whole or not at all.
    pub fn write(&self, path: &Path, work: &Path) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|e| Error::Internal(format!("an identity: {e}")))?;
        let new = work.join("identity");
        std::fs::write(&new, text + "\n").map_err(|error| Error::io(&new, error))?;
        std::fs::rename(&new, path).map_err(|error| Error::io(path, error))
    }

    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::InvalidRequest(format!("{} is none of ours: {error}", path.display())))
    }

    /// Where that of `shard` lies: beside its manifest.
    pub fn path(out: &Path, Shard { index, count }: Shard) -> PathBuf {
        out.join(format!("manifest-{index}-of-{count}.run.json"))
    }
}

/// `cuda` for `cuda:1`: shards may run on the devices of one machine.
fn without_device_numbers(told: &str) -> String {
    let mut parts = told.split("cuda:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| told + "cuda" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// Takes lines in, their hash out: the same for the same lines, however they lie in files.
#[derive(Default)]
pub struct LinesHash(Sha256);

impl LinesHash {
    /// Adds a line that holds `bytes`, or is too long to be held and has `length`.
    pub fn add(&mut self, bytes: Option<&[u8]>, length: u64) {
        let length = bytes.map_or(length, |bytes| bytes.len() as u64);
        self.0.update(length.to_le_bytes());
        self.0.update(bytes.unwrap_or_default());
    }

    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_one_kind_are_one() {
        let plan = |device: &str| without_device_numbers(&format!("f16 on {device}, \"cuda:3\""));
        assert_eq!(plan("cuda:12"), plan("cuda:0"));
        assert_ne!(plan("cuda:0"), plan("cpu"));
    }
}
