//! What a voice says next to each frame of a batch that it is told:
//! `cargo bench --bench teacher_forced -- <voice directory> <file>`.
//!
//! Writes the batch and the mel to a safetensors file, for `transformers_mel.py` to compare with. The batch is made up:
//! two rows of different lengths. Every dropout is off.

use std::path::Path;

use anyhow::{Context, Result};
use burn::tensor::Device;
use mezzavoce::finetune::network::{Arithmetic, Batch, Dropout, Network, Parameters, Speaker};
use mezzavoce::precision::{Dtype, Precision};
use mezzavoce::voice::Voice;
use mezzavoce::voice::config::AcousticConfig;
use safetensors::tensor::{Dtype as Stored, TensorView};

const STEPS: [usize; 2] = [60, 43];
const TOKENS: [usize; 2] = [50, 31];
/// Padding is this in labels and -100 in `transformers`.
const PADDING: f32 = -100.0;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [voice, file] = arguments.as_slice() else {
        anyhow::bail!("a voice directory and a file are needed")
    };
    let voice = Voice::load(Path::new(voice), None)?;
    let config = &voice.config;
    let batch = batch(config);
    let device = Device::flex().autodiff();
    let parameters = Parameters::of_voice(&voice, Dtype::F32, |_| true, &device)?;
    let network = Network { config, arithmetic: Arithmetic::new(Precision::F32), device };
    let outputs = network.forward(&parameters, &batch, &mut Dropout::none());
    let mel = outputs.after_postnet.into_data_as::<f32>().try_into_vec().context("the mel is f32")?;
    write(Path::new(file), &batch, &mel, config)
}

fn batch(config: &AcousticConfig) -> Batch {
    let value = |row: usize, at: usize| (at as f32 * 0.013 + row as f32).sin() - 1.0;
    let values = |row: usize, count: usize| (0..count).map(|at| value(row, at)).collect::<Vec<f32>>();
    let frame = config.reduction_factor * config.num_mel_bins;
    let id = |row: usize, at: usize| 4 + ((at * 7 + row * 3) % (config.vocab_size - 4)) as i64;
    Batch {
        ids: TOKENS.iter().enumerate().map(|(row, n)| (0..*n).map(|at| id(row, at)).collect()).collect(),
        mels: STEPS.iter().enumerate().map(|(row, steps)| values(row, steps * frame)).collect(),
        speakers: (0..2).map(|row| Speaker::Given(values(row + 5, config.speaker_embedding_dim))).collect(),
    }
}

fn write(path: &Path, batch: &Batch, mel: &[f32], config: &AcousticConfig) -> Result<()> {
    let (n_mels, tokens) = (config.num_mel_bins, batch.tokens());
    let frames = batch.frames(n_mels);
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let ids = batch.ids.iter().flat_map(|ids| {
        let padding = std::iter::repeat_n(config.pad_token_id, tokens - ids.len());
        ids.iter().copied().chain(padding).flat_map(i64::to_le_bytes)
    });
    let mask =
        batch.ids.iter().flat_map(|ids| (0..tokens).flat_map(|at| i64::from(at < ids.len()).to_le_bytes()));
    let labels = batch.mels.iter().flat_map(|mel| {
        mel.iter()
            .copied()
            .chain(std::iter::repeat_n(PADDING, frames * n_mels - mel.len()))
            .flat_map(f32::to_le_bytes)
    });
    let speakers = batch.speakers.iter().flat_map(|speaker| match speaker {
        Speaker::Given(embedding) => bytes(embedding),
        Speaker::Learned(_) => vec![],
    });
    let tensors = [
        ("input_ids", Stored::I64, vec![2, tokens], ids.collect::<Vec<u8>>()),
        ("attention_mask", Stored::I64, vec![2, tokens], mask.collect()),
        ("labels", Stored::F32, vec![2, frames, n_mels], labels.collect()),
        ("speaker_embeddings", Stored::F32, vec![2, config.speaker_embedding_dim], speakers.collect()),
        ("mel", Stored::F32, vec![2, frames, n_mels], bytes(mel)),
    ];
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, data)| Ok((*name, TensorView::new(*dtype, shape.clone(), data)?)))
        .collect::<Result<Vec<_>>>()?;
    std::fs::write(path, safetensors::serialize(views, None)?).with_context(|| path.display().to_string())
}
