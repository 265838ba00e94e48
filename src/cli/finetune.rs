//! What `finetune` can be told.
//!
//! Everything here may stand in `--config` too, and what is typed wins over the file. Never does the work.

use std::path::PathBuf;

use clap::Args;

use super::VoiceArgs;
use super::values::parse_betas;
use crate::error::Result;
use crate::finetune::config_file;
use crate::finetune::given::{Backend, Given, Init, MasterBits, Validation};
use crate::precision::Precision;

#[derive(Debug, Args)]
pub struct Finetune {
    /// The recordings: a directory as LJSpeech, Piper, audiofolder or NeMo lay it out, or the listing itself
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Where the new voice goes, and in `finetune` below it what the run leaves
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// A YAML, TOML or JSON file with any of these options; what is typed wins over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub voice: VoiceArgs,

    /// 32, 16-mixed, bf16-mixed, fp16-true, bf16-true, fp16-flash or bf16-flash [default: 32]
    #[arg(long, value_name = "MODE")]
    pub precision: Option<Precision>,

    /// Steps that move the weights [default: 1000]
    #[arg(long, value_name = "N")]
    pub max_steps: Option<u64>,

    /// Clips that are heard together [default: 8]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<usize>,

    /// Batches whose gradients make one step [default: 1]
    #[arg(long, value_name = "N")]
    pub accumulate_grad_batches: Option<usize>,

    /// The largest norm of all gradients together; 0 is no limit, and lets bf16-flash release gradients [default: 1]
    #[arg(long, value_name = "NORM")]
    pub gradient_clip_val: Option<f32>,

    /// The highest learning rate [default: 1e-4]
    #[arg(long, value_name = "RATE")]
    pub lr: Option<f32>,

    /// AdamW's two betas [default: 0.9,0.999]
    #[arg(long, value_name = "A,B", value_parser = parse_betas)]
    pub betas: Option<[f32; 2]>,

    /// What a weight shrinks by, times the learning rate [default: 0.01]
    #[arg(long, value_name = "X")]
    pub weight_decay: Option<f32>,

    /// Steps in which the learning rate rises; it falls to 0 by a half cosine afterwards [default: a tenth, 100 at most]
    #[arg(long, value_name = "N")]
    pub warmup_steps: Option<u64>,

    /// Decides the order of clips, what is dropped out and which clips validate [default: 42]
    #[arg(long)]
    pub seed: Option<u64>,

    /// What does not learn: embedding, encoder, decoder, prenet, speaker, heads, postnet
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    pub freeze: Option<Vec<String>>,

    /// Learn adapters of this rank for the attention alone; the voice has them merged
    #[arg(long, value_name = "RANK")]
    pub lora: Option<usize>,

    /// Validate, speak and write the moving average of the weights, with this limit of its decay
    #[arg(long, value_name = "DECAY")]
    pub ema: Option<f32>,

    /// Clips that validate: a share such as 0.05, or a number [default: 0.05]
    #[arg(long, value_name = "SHARE|N")]
    pub validation_share: Option<Validation>,

    /// End after so many validations without a better one
    #[arg(long, value_name = "N")]
    pub patience: Option<u32>,

    /// Steps from checkpoint to checkpoint; 0 writes one at the end alone [default: 100]
    #[arg(long, value_name = "N")]
    pub save_every: Option<u64>,

    /// Steps from validation to validation; 0 validates at the beginning and the end alone [default: 100]
    #[arg(long, value_name = "N")]
    pub validate_every: Option<u64>,

    /// Steps after which validation clips are spoken into files; 0 is never [default: 500]
    #[arg(long, value_name = "N")]
    pub speak_every: Option<u64>,

    /// Go on with the run in --out where it was saved last
    #[arg(long)]
    pub resume: bool,

    /// checkpoint, or random: weights of the sizes in config.json that nobody has trained [default: checkpoint]
    #[arg(long, value_name = "FROM")]
    pub init: Option<Init>,

    /// Who speaks all clips: a speaker of the voice, a file with an embedding, or `learned`: an embedding for each new
    /// speaker is trained [default: each clip's own, else the voice's default]
    #[arg(long, value_name = "NAME|FILE|learned")]
    pub speaker: Option<String>,

    /// Bits that a flash mode keeps of a weight: 24, 32 or none [default: 24]
    #[arg(long, value_name = "BITS")]
    pub master_weight_bits: Option<MasterBits>,

    /// Cut the silence before and after the speech of every clip
    #[arg(long)]
    pub trim: bool,

    /// Bring every clip to this loudness
    #[arg(long, value_name = "LUFS", allow_negative_numbers = true)]
    pub level: Option<f32>,

    /// Shorter clips are left out [default: 0.3]
    #[arg(long, value_name = "S")]
    pub min_seconds: Option<f32>,

    /// Longer clips are left out [default: 20]
    #[arg(long, value_name = "S")]
    pub max_seconds: Option<f32>,

    /// A directory that keeps mels from one run to the next
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,

    /// Threads [default: the processors there are]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,

    /// cpu, cuda, metal or vulkan, where this program was built with it [default: cpu]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<Backend>,

    /// Print what the precision means here, stage by stage, and stop
    #[arg(long)]
    pub explain: bool,

    /// Look at the recordings, say what is wrong with them, and stop
    #[arg(long)]
    pub check: bool,

    /// Say nothing of a run but its report
    #[arg(short, long)]
    pub quiet: bool,

    /// The ONNX Runtime library that speaks validation clips, or a directory that holds it [env: ORT_DYLIB_PATH]
    /// [default: fetched once]
    #[arg(long, value_name = "PATH")]
    pub onnxruntime: Option<PathBuf>,

    /// Never fetch the ONNX Runtime library
    #[arg(long)]
    pub offline: bool,
}

impl Finetune {
    /// What was typed, and of the rest what the configuration says.
    ///
    /// # Errors
    /// Those of [`config_file::load`].
    pub fn given(&self) -> Result<Given> {
        let file = self.config.as_deref().map(config_file::load).transpose()?.unwrap_or_default();
        let typed = Given {
            voice: self.voice.voice.clone(),
            vocoder: self.voice.vocoder.clone(),
            data: self.data.clone(),
            out: self.out.clone(),
            precision: self.precision,
            optimizer: None,
            max_steps: self.max_steps,
            batch_size: self.batch_size,
            accumulate_grad_batches: self.accumulate_grad_batches,
            gradient_clip_val: self.gradient_clip_val,
            learning_rate: self.lr,
            betas: self.betas,
            eps: None,
            weight_decay: self.weight_decay,
            warmup_steps: self.warmup_steps,
            seed: self.seed,
            freeze: self.freeze.clone(),
            lora: self.lora,
            ema: self.ema,
            validation: self.validation_share,
            patience: self.patience,
            save_every: self.save_every,
            validate_every: self.validate_every,
            speak_every: self.speak_every,
            init: self.init,
            speaker: self.speaker.clone(),
            master_weight_bits: self.master_weight_bits,
            threads: self.threads,
            device: self.device,
            trim: self.trim.then_some(true),
            level: self.level,
            min_seconds: self.min_seconds,
            max_seconds: self.max_seconds,
            cache: self.cache.clone(),
        };
        Ok(typed.or(file))
    }
}
