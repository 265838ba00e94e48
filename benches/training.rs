//! What a training step of every mode costs: `cargo bench --bench training -- [voice directory] [mode …]`.
//!
//! One synthetic batch of fixed size, each mode in a process of its own so that its peak memory is its own. Losses say
//! that a mode learns, not how it sounds.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use burn::tensor::Device as BurnDevice;
use mezzavoce::finetune::network::{Batch, Speaker};
use mezzavoce::finetune::optimizer::AdamW;
use mezzavoce::finetune::schedule::Schedule;
use mezzavoce::finetune::trainer::{Recipe, Trainer};
use mezzavoce::precision::{Device, Dtype, Precision, Purpose, resolve};
use mezzavoce::voice::Voice;

const ROWS: usize = 4;
const FRAMES: usize = 200;
const TOKENS: usize = 60;
const STEPS: usize = 3;
const MODES: [&str; 7] =
    ["32", "16-mixed", "bf16-mixed", "fp16-true", "bf16-true", "fp16-flash", "bf16-flash"];
const ONE: &str = "--one";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, voice, mode] = arguments.as_slice()
        && flag == ONE
    {
        return measure(Path::new(voice), mode);
    }
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default");
    let voice = arguments.first().map_or(default, String::as_str);
    let named: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    for mode in if named.is_empty() { MODES.to_vec() } else { named } {
        Command::new(std::env::current_exe()?).args([ONE, voice, mode]).status()?;
    }
    Ok(())
}

fn measure(directory: &Path, mode: &str) -> Result<()> {
    let voice = Voice::load(directory, None)?;
    let (precision, _) = Precision::parse(mode)?;
    let plan = resolve(Purpose::Training, precision, Dtype::F32, &Device::this_cpu())?;
    let recipe = Recipe {
        adamw: AdamW::default(),
        schedule: Schedule { peak: 1e-4, warmup_steps: 0, max_steps: 1000 },
        clip_norm: 0.0,
        seed: 7,
        lora_rank: None,
        average_decay: None,
    };
    let device = BurnDevice::flex().autodiff();
    let plan = plan.training.context("a plan of training")?;
    let mut trainer = Trainer::new(&voice, precision, &plan, recipe, &device, |_| true)?;
    let batch = [batch(&voice)];
    let before = trainer.validate(&batch).total();
    let mut best = f64::INFINITY;
    for _ in 0..STEPS {
        let began = Instant::now();
        trainer.step(&batch)?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    let after = trainer.validate(&batch).total();
    let bytes = trainer.bytes_per_parameter()?;
    let all = bytes.weights + bytes.gradients + bytes.residual + bytes.states;
    println!(
        "{mode:>10}: {best:.3} s a step, peak {} MB, bytes a parameter {:.2} + {:.2} + {:.2} + {:.2} = {all:.2}, \
         loss {before:.3} -> {after:.3}",
        peak_rss_mb(),
        bytes.weights,
        bytes.gradients,
        bytes.residual,
        bytes.states
    );
    Ok(())
}

fn batch(voice: &Voice) -> Batch {
    let config = &voice.config;
    let frames = FRAMES / config.reduction_factor * config.reduction_factor;
    let wave =
        |row: usize| (0..frames * config.num_mel_bins).map(move |at| ((at * 13 + row) as f32 * 0.01).sin());
    Batch {
        ids: (0..ROWS).map(|row| (0..TOKENS).map(|at| 4 + ((at * 7 + row) % 20) as i64).collect()).collect(),
        mels: (0..ROWS).map(|row| wave(row).collect()).collect(),
        speakers: vec![Speaker::Given(vec![0.1; config.speaker_embedding_dim]); ROWS],
    }
}

/// The most memory that this process had, where the system says it as Linux does; 0 elsewhere.
fn peak_rss_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
