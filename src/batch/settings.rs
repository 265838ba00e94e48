//! The voices and defaults of a run, and what of them one job becomes.
//!
//! Never speaks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::line::{Job, Refusal, SpeakerChoice};
use crate::assembly::Silences;
use crate::codec::{AudioFormat, Encoding};
use crate::engine::StreamRequest;
use crate::error::{Error, Excerpt, Result};
use crate::repertoire::{Repertoire, ServedVoice};
use crate::synthesizer::Script;
use crate::text::{DateOrder, Lexicon, Markup, Reading};
use crate::transport::client::{RemoteRequest, RemoteSpeaker, RemoteVoice};
use crate::voice::{Speakers, embedded_files};

/// What a line calls its own pronunciations.
pub const LEXICON: &str = "lexicon";

/// What the command line says for lines that do not.
#[derive(Debug, Clone)]
pub struct Defaults {
    pub speaker: SpeakerChoice,
    pub seed: u64,
    pub speaking_rate: f32,
    pub encoding: Encoding,
    pub sample_rate_hz: Option<u32>,
    pub markup: Markup,
    pub date_order: DateOrder,
    /// The program, ONNX Runtime, the device and the lexicon of the run; or the server.
    pub run_hash: String,
    /// Of what the shards of a run must all be spoken by, beside the voices.
    pub versions: Vec<(&'static str, String)>,
    /// A hash of each voice's files and what they are executed in, by its name; of a server's, what it tells of it.
    pub voice_hashes: Vec<(String, String)>,
    /// What a server has told of its voices.
    pub remote_voices: Vec<RemoteVoice>,
}

/// A job with everything decided.
pub struct Resolved {
    pub voice: Arc<ServedVoice>,
    pub script: Script,
    pub reading: Reading,
    pub stream: StreamRequest,
    pub format: AudioFormat,
    pub silences: Silences,
    pub output: String,
    /// Hash of all of this.
    pub key: String,
}

/// A job for a server, with everything decided that is decided here.
pub struct RemoteJob {
    pub request: RemoteRequest,
    pub output: String,
    /// Hash of what is asked for, and of whom.
    pub key: String,
}

/// What `job`, which goes to `output`, asks of the server that `defaults` name.
pub fn resolve_for_server(job: Job, output: String, defaults: &Defaults) -> Result<RemoteJob, Refusal> {
    let speaker = match or_default(job.speaker, defaults) {
        SpeakerChoice::Default => None,
        SpeakerChoice::Name(name) => Some(RemoteSpeaker::Name(name)),
        SpeakerChoice::Embedding(values) => Some(RemoteSpeaker::Embedding(values)),
        SpeakerChoice::Number(number) => {
            let reason = format!("speaker_id {number}: a server knows its speakers by name, give `speaker`");
            return Err(Refusal::new("unsupported_field", reason));
        }
    };
    let asked = job.voice.clone().unwrap_or_default();
    let voices = &defaults.remote_voices;
    let voice = voices.iter().find(|voice| voice.name == asked).ok_or_else(|| {
        let names: Vec<&str> = voices.iter().map(|voice| voice.name.as_str()).collect();
        unknown_voice(&asked, names.into_iter().filter(|name| !name.is_empty()).collect())
    })?;
    check_speaker(voice, speaker.as_ref())?;
    parse_lexicon(job.lexicon.as_deref())?;
    // Of phonemes nothing is read: what is not asked for must not be sent.
    let reads = !matches!(job.script, Script::Phonemes(_));
    let request = RemoteRequest {
        script: job.script,
        voice: asked,
        speaker,
        seed: job.seed.unwrap_or(defaults.seed),
        speaking_rate: job.speaking_rate.unwrap_or(defaults.speaking_rate),
        markup: job.markup.unwrap_or(if reads { defaults.markup } else { Markup::default() }),
        date_order: job.date_order.unwrap_or(if reads { defaults.date_order } else { DateOrder::default() }),
        custom_dictionary: job.lexicon.unwrap_or_default(),
        encoding: job.encoding.unwrap_or(defaults.encoding),
        sample_rate_hz: job.sample_rate_hz.or(defaults.sample_rate_hz),
        silences: job.silences,
    };
    let voice = Some(&voice.identity);
    let key = format!("{:?}", (&defaults.run_hash, voice, &request, &output));
    let key = hex(&Sha256::digest(key.as_bytes()));
    Ok(RemoteJob { request, output, key })
}

/// Decides what `job`, which goes to `output`, leaves open.
pub fn resolve(
    job: Job,
    output: String,
    voices: &Repertoire,
    defaults: &Defaults,
) -> Result<Resolved, Refusal> {
    let asked = job.voice.as_deref().unwrap_or_default();
    let voice = voices.find(asked).ok_or_else(|| {
        let names: Vec<String> = voices.voices().iter().map(|voice| voice.name.clone()).collect();
        unknown_voice(asked, names.iter().map(String::as_str).collect())
    })?;
    if matches!(job.script, Script::Phonemes(_)) && !voice.spells_ipa {
        let reason =
            format!("voice `{}` spells in characters: phonemes cannot be given", Excerpt(&voice.name));
        return Err(Refusal::new("unsupported_field", reason));
    }
    let speaker = embedding(or_default(job.speaker, defaults), &voice.speakers)?;
    let invalid = |error: Error| Refusal::new("invalid_request", error.to_string());
    let lexicon = parse_lexicon(job.lexicon.as_deref())?.map(Arc::new);
    let lexicon_text = job.lexicon.unwrap_or_default();
    let reading = Reading {
        markup: job.markup.unwrap_or(defaults.markup),
        date_order: job.date_order.unwrap_or(defaults.date_order),
        lexicon,
    };
    voice.synthesizer.frontend().check_reading(&reading).map_err(invalid)?;
    let stream = StreamRequest {
        seed: job.seed.unwrap_or(defaults.seed),
        speaking_rate: job.speaking_rate.unwrap_or(defaults.speaking_rate),
        ..StreamRequest::new(speaker)
    };
    let own_rate = voice.synthesizer.sample_rate_hz();
    let format = AudioFormat {
        encoding: job.encoding.unwrap_or(defaults.encoding),
        sample_rate_hz: job.sample_rate_hz.or(defaults.sample_rate_hz).unwrap_or(own_rate),
    };
    let voice_hash = defaults.voice_hashes.iter().find(|(name, _)| *name == voice.name);
    let told = format!(
        "{:?}",
        (
            (&defaults.run_hash, voice_hash, &job.script, &output, &lexicon_text),
            (&stream.speaker, stream.seed, stream.speaking_rate, format, job.silences),
            (reading.markup, reading.date_order),
        )
    );
    let key = hex(&Sha256::digest(told.as_bytes()));
    Ok(Resolved { voice, script: job.script, reading, stream, format, silences: job.silences, output, key })
}

fn unknown_voice(asked: &str, names: Vec<&str>) -> Refusal {
    let names = crate::error::listed(names.into_iter());
    Refusal::new("unknown_voice", format!("no voice is called `{}`: there is {names}", Excerpt(asked)))
}

/// Refuses a speaker whom the server's `voice` does not know, as a voice here would.
fn check_speaker(voice: &RemoteVoice, speaker: Option<&RemoteSpeaker>) -> Result<(), Refusal> {
    let ways = || match crate::error::listed(voice.speakers.iter().map(String::as_str)) {
        names if names.is_empty() => "give an embedding".to_owned(),
        names => format!("give one of its speakers ({names}) or an embedding"),
    };
    let refuse =
        |why: String| Err(Refusal::new("unknown_speaker", format!("the server's voice {why}: {}", ways())));
    match speaker {
        Some(RemoteSpeaker::Name(name)) if !voice.speakers.contains(name) => {
            refuse(format!("has no speaker `{}`", Excerpt(name)))
        }
        None if !voice.has_default_speaker => refuse("has no default speaker".to_owned()),
        _ => Ok(()),
    }
}

/// The pronunciations of one line, if it has any.
fn parse_lexicon(text: Option<&str>) -> Result<Option<Lexicon>, Refusal> {
    let text = text.filter(|text| !text.is_empty());
    let lexicon = text.map(|text| Lexicon::parse_pairs(text, LEXICON)).transpose();
    lexicon.map_err(|error| Refusal::new("invalid_request", error.to_string()))
}

fn or_default(speaker: SpeakerChoice, defaults: &Defaults) -> SpeakerChoice {
    if speaker == SpeakerChoice::Default { defaults.speaker.clone() } else { speaker }
}

/// The embedding that `choice` means: [speaker_embedding_dim], of norm 1.
pub fn embedding(choice: SpeakerChoice, speakers: &Speakers) -> Result<Vec<f32>, Refusal> {
    let unknown = |error: Error| Refusal::new("unknown_speaker", error.to_string());
    match choice {
        SpeakerChoice::Default => speakers.named(None).map_err(unknown),
        SpeakerChoice::Name(name) => speakers.named(Some(&name)).map_err(unknown),
        SpeakerChoice::Number(number) => {
            let (names, voice) = (&speakers.embeddings, Excerpt(&speakers.voice));
            let found = usize::try_from(number).ok().and_then(|at| names.values().nth(at));
            let refuse = || format!("speaker_id {number}: voice `{voice}` has {} speakers", names.len());
            found.cloned().ok_or_else(|| Refusal::new("unknown_speaker", refuse()))
        }
        SpeakerChoice::Embedding(values) => {
            speakers.values(values).map_err(|error| Refusal::new("bad_embedding", error.to_string()))
        }
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A hash of what a voice directory holds, by the kinds of files that a voice is made of, or of the built-in voice.
pub fn voice_hash(directory: Option<&Path>) -> Result<String> {
    let mut hasher = Sha256::new();
    let Some(directory) = directory else {
        for (path, bytes) in embedded_files() {
            hasher.update(path.as_bytes());
            hasher.update(hex(&Sha256::digest(bytes)));
        }
        return Ok(hex(&hasher.finalize()));
    };
    for folder in [directory.to_path_buf(), directory.join("vocoder")] {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            if is_voice_file(&path) && path.is_file() {
                hasher.update(path.strip_prefix(directory).unwrap_or(&path).as_os_str().as_encoded_bytes());
                hasher.update(file_hash(&path)?);
            }
        }
    }
    Ok(hex(&hasher.finalize()))
}

/// Whether a file with the name of `path` may be part of a voice.
pub fn is_voice_file(path: &Path) -> bool {
    const KINDS: [&str; 7] = ["json", "toml", "safetensors", "bin", "model", "npy", "txt"];
    path.extension().and_then(|kind| kind.to_str()).is_some_and(|kind| KINDS.contains(&kind))
}

/// Whether `path` is a regular file, no link, of `bytes` with this SHA-256. One that cannot be read is not.
pub fn holds(path: &Path, bytes: u64, sha256: &str) -> bool {
    path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() == bytes)
        && file_hash(path).is_ok_and(|found| found == sha256)
}

/// The SHA-256 of a file, in hexadecimal.
pub fn file_hash(path: &Path) -> Result<String> {
    use std::io::Read;
    let fault = |error| Error::io(path, error);
    let mut file = std::fs::File::open(path).map_err(fault)?;
    let (mut hasher, mut block) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut block).map_err(fault)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(block.get(..read).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_voice_is_known_by_the_bytes_of_its_files() {
        let directory = tempfile::tempdir().unwrap();
        crate::voice::Voice::write_embedded(directory.path(), |_| true).unwrap();
        assert_eq!(voice_hash(None).unwrap(), voice_hash(Some(directory.path())).unwrap());
        let symbols = directory.path().join("symbols.json");
        let changed = std::fs::read_to_string(&symbols).unwrap() + " ";
        std::fs::write(&symbols, changed).unwrap();
        assert_ne!(voice_hash(None).unwrap(), voice_hash(Some(directory.path())).unwrap());
    }
}
