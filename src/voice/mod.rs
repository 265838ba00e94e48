//! A voice directory in, a validated [`Voice`] out.
//!
//! A voice is a Hugging Face SpeechT5 directory (`models/README.md`). What is here has been held against its
//! own `config.json`: no stage checks a name, shape or size again. Never runs anything that a file holds.

mod allow_list;
mod bounds;
pub mod checkpoint;
pub mod config;
mod embedded;
mod finite;
pub mod manifest;
pub mod names;
mod pickle;
mod source;
mod speaker;
mod symbols;
mod torch_zip;
mod vocoder_config;
mod weights;

use std::collections::BTreeMap;
use std::path::Path;

use bounds::{attention, shortened};
use checkpoint::Checkpoint;
use config::{AcousticConfig, VocoderConfig};
pub use finite::FiniteCheck;
use manifest::{Manifest, Mel};
use source::{CONFIG_BYTES, Source};

pub use speaker::Speakers;

use crate::error::{Error, Result};

/// The least that a voice may take in one go, in symbols: start, end, a mark, and room for one character however
/// it is spelled.
pub const MIN_SEGMENT_SYMBOLS: usize = 24;

/// Everything a voice is, validated against its own configuration.
#[derive(Debug)]
pub struct Voice {
    pub name: String,
    pub config: AcousticConfig,
    pub acoustic: Checkpoint,
    pub vocoder_config: VocoderConfig,
    pub vocoder: Checkpoint,
    pub language: String,
    pub licence: Option<String>,
    pub description: Option<String>,
    pub symbols: SymbolTable,
    /// By name, each of norm 1.
    pub speakers: BTreeMap<String, Vec<f32>>,
    pub default_speaker: Option<String>,
    /// What fine-tuning makes of sound; `None` when neither `voice.toml` nor the stock layout says.
    pub mel: Option<Mel>,
    /// Sum of the sigmoid stop values of one step at which a sentence ends.
    pub stop_threshold: f32,
    /// The longest sequence that is spoken in one go, in symbols, `max_text_positions` at most.
    pub segment_symbols: usize,
    /// A sentence is cut, and reported as cut, at this many mel frames per symbol.
    pub max_frames_per_symbol: f32,
}

/// How a voice spells text.
#[derive(Debug)]
pub enum SymbolTable {
    /// IPA characters: `^`, the characters, `$`.
    Ipa(BTreeMap<char, i64>),
    /// A SentencePiece character model (`spm_char.model`), its bytes.
    Characters(Vec<u8>),
}

impl Voice {
    /// Loads the voice in `dir`; its vocoder from `vocoder_dir`, or else from `dir/vocoder`.
    ///
    /// # Errors
    /// `InvalidVoice` names the file and what does not hold; `Io` when the disk refuses.
    pub fn load(dir: &Path, vocoder_dir: Option<&Path>) -> Result<Self> {
        if !dir.is_dir() {
            return Err(Error::voice(dir, "not a directory"));
        }
        let absolute = std::path::absolute(dir).map_err(|error| Error::io(dir, error))?;
        let name =
            absolute.file_name().map_or_else(|| "voice".into(), |name| name.to_string_lossy().into_owned());
        let vocoder = match vocoder_dir {
            Some(dir) => (Source::Directory(dir), ""),
            None => (Source::Directory(dir), "vocoder/"),
        };
        Self::from_source(name, Source::Directory(dir), vocoder)
    }

    /// Loads a voice from files in the binary, given by their path in the voice; their bytes are not copied.
    ///
    /// # Errors
    /// As [`Voice::load`].
    pub fn from_files(name: &str, files: &[(&str, &'static [u8])]) -> Result<Self> {
        let source = Source::Embedded { name, files };
        Self::from_source(name.into(), source, (source, "vocoder/"))
    }

    fn from_source(name: String, source: Source, vocoder: (Source, &str)) -> Result<Self> {
        Self::read(name, source, vocoder).map_err(|error| match error {
            Error::InvalidVoice { path, reason } => Error::voice(path, shortened(reason)),
            other => other,
        })
    }

    fn read(name: String, source: Source, vocoder: (Source, &str)) -> Result<Self> {
        let config_bytes = source.require("config.json", CONFIG_BYTES)?;
        let config = AcousticConfig::parse(&config_bytes)
            .map_err(|reason| Error::voice(source.path("config.json"), reason))?;
        let manifest = match source.read("voice.toml", CONFIG_BYTES)? {
            None => Manifest::default(),
            Some(bytes) => std::str::from_utf8(&bytes)
                .map_err(|error| error.to_string())
                .and_then(Manifest::parse)
                .map_err(|reason| Error::voice(source.path("voice.toml"), reason))?,
        };
        let refuse = |reason: String| Error::voice(source.path("voice.toml"), reason);
        manifest.decoder.check(config.reduction_factor).map_err(refuse)?;
        let segment_symbols = manifest.text.segment_symbols.unwrap_or(config.max_text_positions);
        if !(MIN_SEGMENT_SYMBOLS..=config.max_text_positions).contains(&segment_symbols) {
            return Err(refuse(format!(
                "segment_symbols {segment_symbols} is not in {MIN_SEGMENT_SYMBOLS}..={} (max_text_positions)",
                config.max_text_positions
            )));
        }
        let (heads, relative) = (config.encoder_attention_heads, config.encoder_max_relative_position);
        match manifest.text.segment_symbols {
            Some(symbols) => attention("segment_symbols", symbols, heads, relative).map_err(refuse)?,
            None => attention("max_text_positions", segment_symbols, heads, relative).map_err(|reason| {
                let advice = "set a smaller segment_symbols in voice.toml";
                Error::voice(source.path("config.json"), format!("{reason}: {advice}"))
            })?,
        }
        let symbols = symbols::load(source, &manifest, &config)?;
        let speakers = speaker::load(source, &manifest, &config)?;
        let default_speaker = manifest.speaker.default;
        if let Some(name) = default_speaker.as_ref().filter(|name| !speakers.contains_key(*name)) {
            return Err(refuse(format!("the default speaker `{name}` is not among [speakers]")));
        }

        let (vocoder_config, vocoder) = weights::load_vocoder(vocoder.0, vocoder.1, &config)?;
        let mel = match (manifest.mel, &symbols) {
            (None, SymbolTable::Characters(_)) => stock_mel(source, &vocoder_config)?,
            (mel, _) => mel,
        };
        if let Some(mel) = &mel {
            mel.check(&vocoder_config).map_err(|reason| refuse(format!("[mel]: {reason}")))?;
        }

        let acoustic = weights::load_acoustic(source, &config)?;
        Ok(Self {
            name: manifest.voice.name.unwrap_or(name),
            language: manifest.voice.language.unwrap_or_else(|| "en".into()),
            licence: manifest.voice.licence,
            description: manifest.voice.description,
            stop_threshold: manifest.decoder.stop_threshold,
            max_frames_per_symbol: manifest.decoder.max_frames_per_symbol,
            config,
            acoustic,
            vocoder_config,
            vocoder,
            symbols,
            speakers,
            default_speaker,
            mel,
            segment_symbols,
        })
    }

    /// The speaker embedding of one of the voice's speakers, or of its default: `[speaker_embedding_dim]`, of
    /// norm 1. Opens no file, so a name may come from anyone.
    ///
    /// # Errors
    /// `InvalidRequest` for a name that the voice lacks, or when none is given and none is the default.
    pub fn named_speaker(&self, requested: Option<&str>) -> Result<Vec<f32>> {
        let Some(name) = requested.or(self.default_speaker.as_deref()) else {
            return Err(Error::InvalidRequest(format!(
                "voice `{}` needs a speaker embedding of {} values and has no default speaker: give {}",
                self.name,
                self.config.speaker_embedding_dim,
                self.ways_to_name_a_speaker()
            )));
        };
        self.speakers.get(name).cloned().ok_or_else(|| {
            Error::InvalidRequest(format!(
                "voice `{}` has no speaker `{name}`: give {}",
                self.name,
                self.ways_to_name_a_speaker()
            ))
        })
    }

    /// As [`Voice::named_speaker`], or the embedding in the `.npy`, `.safetensors` or `.json` file that
    /// `requested` is the path of. For the command line: a path that a client sends is not to be opened.
    ///
    /// # Errors
    /// `InvalidRequest` also for a file that is missing or holds no embedding of this voice's length.
    pub fn speaker(&self, requested: Option<&str>) -> Result<Vec<f32>> {
        let path = requested.filter(|text| !self.speakers.contains_key(*text) && speaker::is_file_name(text));
        let Some(path) = path.map(Path::new) else { return self.named_speaker(requested) };
        speaker::load_file(path, self.config.speaker_embedding_dim)
    }

    /// An embedding that the caller brings, held against the voice and normalised.
    ///
    /// # Errors
    /// `InvalidRequest` with the number of values, the index of one that is not finite, or the norm.
    pub fn speaker_values(&self, values: Vec<f32>) -> Result<Vec<f32>> {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        speaker::unit(&values, self.config.speaker_embedding_dim).map_err(Error::InvalidRequest)
    }

    /// The speakers, apart from the weights, which may be dropped once the graphs are built.
    pub fn speakers_alone(&self) -> Speakers {
        Speakers {
            voice: self.name.clone(),
            embeddings: self.speakers.clone(),
            default: self.default_speaker.clone(),
            dimensions: self.config.speaker_embedding_dim,
        }
    }

    fn ways_to_name_a_speaker(&self) -> String {
        let file = "a .npy, .safetensors or .json file that holds one";
        if self.speakers.is_empty() {
            return file.into();
        }
        let names: Vec<&str> = self.speakers.keys().map(String::as_str).collect();
        format!("one of its speakers ({}) or {file}", names.join(", "))
    }
}

/// What a stock directory says of its mel; nothing, where that is not what its vocoder takes.
fn stock_mel(source: Source, vocoder: &VocoderConfig) -> Result<Option<Mel>> {
    const FILE: &str = "preprocessor_config.json";
    let bytes = source.read(FILE, CONFIG_BYTES)?.unwrap_or(b"{}".into());
    let mel = Mel::speecht5(&bytes).map_err(|reason| Error::voice(source.path(FILE), reason))?;
    Ok(Some(mel).filter(|mel| mel.check(vocoder).is_ok()))
}
