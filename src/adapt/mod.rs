//! What was typed after `finetune` in, a run carried out, told of and reported out.
//!
//! Never trains: see [`crate::finetune`].

mod audition;
mod progress;

use std::path::Path;

use audition::Audition;
use progress::Progress;

use crate::cli::{Finetune, RuntimeArgs, threads};
use crate::error::{Error, Result};
use crate::finetune::backend::use_threads;
use crate::finetune::check::check;
use crate::finetune::corpus::Corpus;
use crate::finetune::export::Origin;
use crate::finetune::given::{Backend, Given, Init};
use crate::finetune::run::{Door, Run};
use crate::finetune::settings::Settings;
use crate::finetune::{initial, run_directory};
use crate::runtime::Accelerator;
use crate::say::print;
use crate::signals::interruption_that_says;
use crate::voice::Voice;

/// Lines that are left out and named.
const LISTED: usize = 10;

/// Adapts a voice as `args` say.
///
/// # Errors
/// Those of the run: see [`Run::go`].
pub fn adapt(args: &Finetune) -> Result<()> {
    let given = args.given()?;
    let settings = given.settings()?;
    let voice = voice(&given, &settings)?;
    let plan = settings.plan(&voice)?;
    tracing::info!("{}", plan.summary());
    if args.explain {
        return print(&plan.to_string());
    }
    use_threads(given.threads.map(|count| threads(Some(count))).transpose()?)?;
    let options = given.corpus_options();
    if args.check {
        let found = check(&voice, &given.data()?, &options)?;
        print(&found.to_string())?;
        return match found.is_clean() {
            true => Ok(()),
            false => Err(Error::InvalidRequest(
                "the recordings are not clean: the table says what is wrong".to_owned(),
            )),
        };
    }
    let place = given.place()?;
    run_directory::RunDirectory::check_free(&place.out, args.resume)?;
    let speaks = (1..=settings.max_steps).contains(&settings.speak_every);
    let mut audition = match speaks {
        // Found before hours are spent, not after the first of them.
        true => Some(Audition::new(&runtime(args).lookup()?)?),
        false => None,
    };
    if let Some(half) = settings.precision.half().filter(|_| settings.backend == Backend::Cpu) {
        tracing::warn!(
            "{half} saves memory and is slower than 32 on a CPU: see docs/finetune.md for how much"
        );
    }
    let corpus = Corpus::load(&voice, &place.data, &options)?;
    for left in corpus.left_out.iter().take(LISTED) {
        tracing::warn!("line {} is left out, {}: {}", left.line, left.defect, left.reason);
    }
    if let Some(more) = corpus.left_out.len().checked_sub(LISTED).filter(|more| *more > 0) {
        tracing::warn!("and {more} more lines are left out: --check lists them");
    }
    let origin = match &given.voice {
        Some(voice) => Origin::Directory { voice, vocoder: given.vocoder.as_deref() },
        None => Origin::Embedded,
    };
    let run = Run::begin(&settings, &place, args.resume, (&voice, origin), &plan, corpus)?;
    let interrupted =
        interruption_that_says("saving once this step is taken; another Ctrl-C gives up what is not saved")?;
    let mut progress = Progress::new(settings.max_steps, args.quiet);
    let report = run.go(&mut Door {
        interrupted: &interrupted,
        tell: &mut |told| progress.tell(told),
        speak: &mut |directory: &Path, sentences| match &mut audition {
            Some(audition) => audition.speak(directory, sentences),
            None => Ok(()),
        },
    })?;
    progress.finish();
    print(&report.to_string())
}

/// The voice that is adapted, with weights that nobody has trained where that is asked for.
fn voice(given: &Given, settings: &Settings) -> Result<Voice> {
    let (directory, vocoder) = (given.voice.as_deref(), given.vocoder.as_deref());
    let seed = settings.recipe.seed;
    match (settings.init, directory) {
        (Init::Checkpoint, Some(directory)) => Voice::load(directory, vocoder),
        (Init::Checkpoint, None) => Voice::embedded(),
        (Init::Random, Some(directory)) => {
            Voice::load_with(directory, vocoder, &move |config| initial::weights(config, seed))
        }
        (Init::Random, None) => Voice::embedded_with(&move |config| initial::weights(config, seed)),
    }
}

/// What speaks is the CPU, whatever trains.
fn runtime(args: &Finetune) -> RuntimeArgs {
    let (onnxruntime, offline) = (args.onnxruntime.clone(), args.offline);
    RuntimeArgs { device: Accelerator::Cpu, onnxruntime, offline }
}
