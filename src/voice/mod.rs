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
mod training_config;
mod vocoder_config;
mod weights;

use std::collections::BTreeMap;
use std::path::Path;

use bounds::{attention, shortened};
use checkpoint::Checkpoint;
use config::{AcousticConfig, VocoderConfig};
pub use embedded::embedded_files;
pub use finite::FiniteCheck;
use manifest::{Manifest, Mel};
use source::{CONFIG_BYTES, Source};

pub use speaker::{Speakers, embedding_of_file, is_embedding_file};

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
    pub speakers: Speakers,
    /// What fine-tuning makes of sound; `None` when neither `voice.toml` nor the stock layout says.
    pub mel: Option<Mel>,
    /// Sum of the sigmoid stop values of one step at which a sentence ends.
    pub stop_threshold: f32,
    /// The longest sequence that is spoken in one go, in symbols, `max_text_positions` at most.
    pub segment_symbols: usize,
    /// A sentence is cut, and reported as cut, at this many mel frames per symbol.
    pub max_frames_per_symbol: f32,
}

/// Makes the acoustic weights that a configuration asks for.
pub type MakeWeights = dyn Fn(&AcousticConfig) -> Result<Checkpoint>;

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
        Self::from_directory(dir, vocoder_dir, None)
    }

    fn from_directory(dir: &Path, vocoder_dir: Option<&Path>, weights: Option<&MakeWeights>) -> Result<Self> {
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
        Self::from_source(name, Source::Directory(dir), vocoder, weights)
    }

    /// As [`Voice::load`], with what `weights` makes of the configuration in the place of the directory's own acoustic
    /// weights, which need not be there.
    ///
    /// # Errors
    /// As [`Voice::load`], and those of `weights`.
    pub fn load_with(dir: &Path, vocoder_dir: Option<&Path>, weights: &MakeWeights) -> Result<Self> {
        Self::from_directory(dir, vocoder_dir, Some(weights))
    }

    /// Loads a voice from files in the binary, given by their path in the voice; their bytes are not copied.
    ///
    /// # Errors
    /// As [`Voice::load`].
    pub fn from_files(name: &str, files: &[(&str, &'static [u8])]) -> Result<Self> {
        let source = Source::Embedded { name, files };
        Self::from_source(name.into(), source, (source, "vocoder/"), None)
    }

    fn from_source(
        name: String,
        source: Source,
        vocoder: (Source, &str),
        weights: Option<&MakeWeights>,
    ) -> Result<Self> {
        Self::read(name, source, vocoder, weights).map_err(|error| match error {
            Error::InvalidVoice { path, reason } => Error::voice(path, shortened(reason)),
            other => other,
        })
    }

    fn read(
        name: String,
        source: Source,
        vocoder: (Source, &str),
        weights: Option<&MakeWeights>,
    ) -> Result<Self> {
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
        let embeddings = speaker::load(source, &manifest, &config)?;
        let default = manifest.speaker.default;
        if let Some(name) = default.as_ref().filter(|name| !embeddings.contains_key(*name)) {
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

        let acoustic = match weights {
            Some(make) => make(&config)?,
            None => weights::load_acoustic(source, &config)?,
        };
        let name = manifest.voice.name.unwrap_or(name);
        let dimensions = config.speaker_embedding_dim;
        Ok(Self {
            speakers: Speakers { voice: name.clone(), embeddings, default, dimensions },
            name,
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
            mel,
            segment_symbols,
        })
    }

    /// The embedding that `requested` means: [speaker_embedding_dim], of norm 1. As [`Speakers::named`], or what is in
    /// the `.npy`, `.safetensors` or `.json` file that `requested` is the path of. For the command line: a path that a
    /// client sends is not to be opened.
    ///
    /// # Errors
    /// `InvalidRequest` also for a file that is missing or holds no embedding of this voice's length.
    pub fn speaker(&self, requested: Option<&str>) -> Result<Vec<f32>> {
        match requested {
            Some(path) if !self.speakers.embeddings.contains_key(path) && is_embedding_file(path) => {
                speaker::load_file(Path::new(path), self.speakers.dimensions)
            }
            _ => self.speakers.named(requested).map_err(|error| match error {
                Error::InvalidRequest(reason) => {
                    Error::InvalidRequest(format!("{reason} in a .npy, .safetensors or .json file"))
                }
                other => other,
            }),
        }
    }
}

/// What a stock directory says of its mel; nothing, where that is not what its vocoder takes.
fn stock_mel(source: Source, vocoder: &VocoderConfig) -> Result<Option<Mel>> {
    const FILE: &str = "preprocessor_config.json";
    let bytes = source.read(FILE, CONFIG_BYTES)?.unwrap_or(b"{}".into());
    let mel = Mel::speecht5(&bytes).map_err(|reason| Error::voice(source.path(FILE), reason))?;
    Ok(Some(mel).filter(|mel| mel.check(vocoder).is_ok()))
}
