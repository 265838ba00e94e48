//! The files of a voice in, its two checkpoints out, each held against its configuration.
//!
//! Never keeps a weight that a stage would have to check again.

use super::checkpoint::Checkpoint;
use super::config::{AcousticConfig, VocoderConfig};
use super::names;
use super::source::{CHECKPOINT_BYTES, CONFIG_BYTES, Source};
use crate::error::{Error, Result};

const WEIGHTS: [&str; 2] = ["model.safetensors", "pytorch_model.bin"];

/// The acoustic model of the voice.
pub fn load_acoustic(source: Source, config: &AcousticConfig) -> Result<Checkpoint> {
    let checkpoint = load_checkpoint(source, "")?
        .ok_or_else(|| Error::voice(source.path(""), missing_weights(source, "")))?;
    checkpoint.check(&names::acoustic(config))?;
    Ok(checkpoint)
}

/// The vocoder in `folder`, which ends with `/` unless it is the whole source.
pub fn load_vocoder(
    source: Source,
    folder: &str,
    acoustic: &AcousticConfig,
) -> Result<(VocoderConfig, Checkpoint)> {
    let config_file = format!("{folder}config.json");
    let advice = "put a vocoder's config.json and weights (for a stock voice those of \
                  microsoft/speecht5_hifigan) into `vocoder/`, or name their directory with `--vocoder`";
    let Some(bytes) = source.read(&config_file, CONFIG_BYTES)? else {
        return Err(Error::voice(source.path(""), format!("`{config_file}` is missing: {advice}")));
    };
    let refuse = |reason: String| Error::voice(source.path(&config_file), reason);
    let config = VocoderConfig::parse(&bytes).map_err(refuse)?;
    let (found, expected) = (config.model_in_dim(), acoustic.num_mel_bins);
    if found != expected {
        return Err(refuse(format!("model_in_dim {found} is not the voice's num_mel_bins {expected}")));
    }
    let mut checkpoint = load_checkpoint(source, folder)?.ok_or_else(|| {
        Error::voice(source.path(folder), format!("{}: {advice}", missing_weights(source, folder)))
    })?;
    let required = names::vocoder(&config);
    checkpoint.fold_weight_norm(&required)?;
    checkpoint.check(&required)?;
    if matches!(&config, VocoderConfig::HifiGan(config) if config.normalize_before)
        && let Some(index) = checkpoint.f32(names::HIFIGAN_SCALE)?.iter().position(|scale| *scale == 0.0)
    {
        return Err(Error::voice(
            source.path(folder),
            format!("`scale` is 0 at index {index}: mels are divided by it"),
        ));
    }
    Ok((config, checkpoint))
}

fn load_checkpoint(source: Source, folder: &str) -> Result<Option<Checkpoint>> {
    for name in WEIGHTS {
        let file = format!("{folder}{name}");
        if let Some(bytes) = source.read(&file, CHECKPOINT_BYTES)? {
            return Checkpoint::parse(&source.path(&file), bytes).map(Some);
        }
    }
    Ok(None)
}

fn missing_weights(source: Source, folder: &str) -> String {
    let sharded = WEIGHTS
        .map(|name| format!("{folder}{name}.index.json"))
        .into_iter()
        .find(|index| source.read(index, CONFIG_BYTES).is_ok_and(|bytes| bytes.is_some()));
    match sharded {
        Some(index) => format!("the checkpoint is split (`{index}`): save it as one `{}`", WEIGHTS[0]),
        None => format!("neither `{}` nor `{}`", WEIGHTS[0], WEIGHTS[1]),
    }
}
