//! A voice, recordings and settings in, the adapted voice in its directory out, and an account of how it went.
//!
//! One loop for every mode: a step, the watch over what is not finite, validation, a checkpoint. What a step does follows
//! from its number, so a run that was killed and goes on ends with the same weights. The voice is written when validation
//! improves, or at the end where nothing validates. Never speaks, draws a bar or catches a signal: see [`Door`].

mod hearing;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::atomic_file;
use super::backend;
use super::casting::Casting;
use super::clips::Clips;
use super::corpus::Corpus;
use super::course::Course;
use super::event_file::EventFile;
use super::export::Origin;
use super::journal::{Journal, Row};
use super::network::Batch;
use super::order::{Order, split};
use super::report::{Ended, Report, peak_rss_bytes};
use super::run_directory::RunDirectory;
use super::settings::{Place, Settings};
use super::trainer::{StepReport, Trainer};
use crate::error::{Error, Result};
use crate::precision::Plan;
use crate::voice::Voice;
use crate::voice::names::acoustic;

/// What a run needs of the world.
pub struct Door<'a> {
    /// Once set, the run saves itself and ends.
    pub interrupted: &'a AtomicBool,
    /// Hears of every step.
    pub tell: &'a mut dyn FnMut(&Told),
    /// Speaks sentences with the voice in a directory into files.
    pub speak: &'a mut dyn FnMut(&Path, &[Sentence]) -> Result<()>,
}

/// What is told of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Told {
    pub taken: u64,
    pub max_steps: u64,
    pub loss: f32,
    pub learning_rate: f32,
    pub seconds: f64,
    /// Of this step, where it was heard.
    pub validation: Option<f32>,
}

/// A sentence that a voice in training speaks.
#[derive(Debug, Clone, PartialEq)]
pub struct Sentence {
    pub text: String,
    /// [speaker_embedding_dim]
    pub speaker: Vec<f32>,
    pub wav: PathBuf,
}

/// A run.
pub struct Run<'a> {
    settings: &'a Settings,
    voice: &'a Voice,
    origin: Origin<'a>,
    device: String,
    left_out: usize,
    home: RunDirectory,
    identity: String,
    clips: Clips,
    training: Vec<usize>,
    validating: Vec<usize>,
    validation: Vec<Batch>,
    order: Order,
    added: Vec<(String, Vec<f32>)>,
    default_speaker: Option<String>,
    trainer: Trainer,
    course: Course,
    journal: Journal,
    events: EventFile,
    laid_out: bool,
    saved_at: Option<u64>,
    began: Instant,
    /// Of the steps of this process.
    seconds: f64,
    steps: u64,
}

impl<'a> Run<'a> {
    /// Sets a run up, at its beginning or where it stopped; `origin` is where `voice` comes from.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] when there is nothing to learn, or what is in the directory must not be touched;
    /// [`Error::Io`] when the disk refuses.
    pub fn begin(
        settings: &'a Settings,
        place: &Place,
        resume: bool,
        (voice, origin): (&'a Voice, Origin<'a>),
        plan: &Plan,
        corpus: Corpus,
    ) -> Result<Self> {
        let casting = Casting::new(voice, settings.speaker.as_deref(), &corpus.utterances)?;
        casting.notices.iter().for_each(|notice| tracing::warn!("{notice}"));
        let left_out = corpus.left_out.len();
        if corpus.utterances.is_empty() {
            let first = corpus.left_out.first();
            let first = first.map(|left| format!(", the first, line {}: {}", left.line, left.reason));
            return Err(Error::InvalidRequest(format!(
                "there is nothing to learn: {left_out} lines are left out{}",
                first.unwrap_or_default()
            )));
        }
        let clips = Clips::new(corpus.utterances, casting.speakers, &voice.config)?;
        let (training, mut validating) =
            split(clips.len(), settings.validation.of(clips.len()), settings.recipe.seed);
        validating.sort_by_key(|clip| (clips.get(*clip).map(|(utterance, _)| utterance.frames), *clip));
        let validation =
            validating.chunks(settings.batch_size).map(|clips_of| clips.batch(clips_of)).collect();
        let order = Order::new(settings.recipe.seed, settings.batch_size, clips.lengths(&training));

        let training_plan =
            plan.training.ok_or_else(|| Error::Internal("a plan without training".to_owned()))?;
        let device = backend::device(settings.backend)?;
        let trains = |name: &str| settings.selection.trains(name);
        let mut trainer =
            Trainer::new(voice, settings.precision, &training_plan, settings.recipe, &device, trains)?;
        if settings.precision.is_flash()
            && let Some(coarse) = trainer.coarse_weights(training_plan.master_weights)?
        {
            tracing::info!("{coarse}; --master-weight-bits 32 keeps it");
        }
        casting.learned.iter().for_each(|(name, embedding)| trainer.add_speaker(name, embedding));

        let identity = settings.identity(&clips.digest(), &digest(voice)?);
        let home = RunDirectory::open(&place.out, resume, &identity)?;
        let identity = text(&identity)?;
        let mut course = Course::new(settings.patience);
        if home.checkpoint().is_file() {
            course = course.resumed(&trainer.restore(&home.checkpoint(), &identity)?)?;
            tracing::info!("going on after step {}", trainer.progress().taken);
        } else if resume {
            home.check_unsaved(settings.save_every)?;
        }
        let tried = trainer.progress().tried;
        Ok(Self {
            journal: Journal::open(&home.metrics(), tried)?,
            events: EventFile::create(&home.run(), tried)?,
            settings,
            voice,
            origin,
            device: plan.device.clone(),
            left_out,
            home,
            identity,
            clips,
            training,
            validating,
            validation,
            order,
            added: casting.added.into_iter().collect(),
            default_speaker: casting.default,
            trainer,
            course,
            laid_out: false,
            saved_at: (tried > 0).then_some(tried),
            began: Instant::now(),
            seconds: 0.0,
            steps: 0,
        })
    }

    /// Takes every step, and writes the voice and the report.
    ///
    /// # Errors
    /// [`Error::Io`] of the kind `Interrupted` when the run was told to end, once it is saved; of another kind when the
    /// disk refuses; [`Error::InvalidRequest`] when training cannot go on, for the reason that it names.
    pub fn go(mut self, door: &mut Door) -> Result<Report> {
        if self.trainer.progress().tried == 0 {
            self.validate()?;
        }
        let ended = loop {
            let max_steps = self.trainer.progress().taken >= self.settings.max_steps;
            if let Some(ended) = self.course.ended.or(max_steps.then_some(Ended::MaxSteps)) {
                break ended;
            }
            if door.interrupted.load(Ordering::Relaxed) {
                self.save()?;
                let place = self.home.run();
                tracing::warn!(
                    "interrupted and saved: --resume goes on after step {}",
                    self.trainer.progress().taken
                );
                return Err(Error::io(place, std::io::ErrorKind::Interrupted.into()));
            }
            self.step(door)?;
        };
        self.save()?;
        if self.validation.is_empty() {
            self.course.exported_step = self.trainer.progress().taken;
            self.export()?;
        }
        self.report(ended)
    }

    fn step(&mut self, door: &mut Door) -> Result<()> {
        let first = self.trainer.progress().tried * self.settings.accumulate_grad_batches as u64;
        let numbers = first..first + self.settings.accumulate_grad_batches as u64;
        let heard: Vec<Vec<usize>> = numbers.map(|number| self.clips_of(number)).collect();
        let batches: Vec<Batch> = heard.iter().map(|clips| self.clips.batch(clips)).collect();
        let began = Instant::now();
        let report = self.trainer.step(&batches)?;
        let seconds = began.elapsed().as_secs_f64();
        (self.seconds, self.steps) = (self.seconds + seconds, self.steps + 1);
        let (taken, tried) = (self.trainer.progress().taken, self.trainer.progress().tried);
        let moved = report.skipped.is_none();
        if moved {
            self.course.stepped(report.losses.total());
        } else {
            self.warn(&report, &heard.concat());
        }
        let is_last = taken == self.settings.max_steps;
        let validation = match moved && (is_due(self.settings.validate_every, taken) || is_last) {
            true => self.validate()?,
            false => None,
        };
        self.write(&report, validation, seconds)?;
        if moved && is_due(self.settings.speak_every, taken) {
            self.speak(door)?;
        }
        if is_due(self.settings.save_every, tried) {
            self.save()?;
        }
        (door.tell)(&Told {
            taken,
            max_steps: self.settings.max_steps,
            loss: report.losses.total(),
            learning_rate: report.learning_rate,
            seconds,
            validation,
        });
        Ok(())
    }

    /// The clips of batch `number` of the run.
    fn clips_of(&mut self, number: u64) -> Vec<usize> {
        let of_training = self.order.batch(number).iter();
        of_training.filter_map(|at| self.training.get(*at).copied()).collect()
    }

    /// Says what was not finite, and what was being heard.
    fn warn(&self, report: &StepReport, heard: &[usize]) {
        let Some(tensor) = &report.skipped else { return };
        let lines = heard.iter().filter_map(|clip| Some(self.clips.get(*clip)?.0.line.to_string()));
        let moved = match report.moved_before_skip {
            0 => String::new(),
            moved => format!("; {moved} tensors nearer to the loss had moved already"),
        };
        tracing::warn!(
            "step {} was skipped: {tensor} was not finite, at a loss scale of {}, over lines {}{moved}",
            self.trainer.progress().tried,
            report.loss_scale,
            lines.collect::<Vec<_>>().join(", ")
        );
    }

    fn write(&mut self, report: &StepReport, validation: Option<f32>, seconds: f64) -> Result<()> {
        let (losses, progress) = (report.losses, self.trainer.progress());
        self.journal.write(&Row {
            tried: progress.tried,
            taken: progress.taken,
            total: losses.total(),
            before_postnet: losses.before_postnet,
            after_postnet: losses.after_postnet,
            stop: losses.stop,
            guided_attention: losses.guided_attention,
            validation,
            learning_rate: report.learning_rate,
            gradient_norm: report.gradient_norm,
            loss_scale: report.loss_scale,
            seconds,
            skipped: report.skipped.clone(),
        })?;
        let scalars = [
            ("loss/total", losses.total()),
            ("loss/before_postnet", losses.before_postnet),
            ("loss/after_postnet", losses.after_postnet),
            ("loss/stop", losses.stop),
            ("loss/guided_attention", losses.guided_attention),
            ("step/learning_rate", report.learning_rate),
            ("step/gradient_norm", report.gradient_norm),
            ("step/loss_scale", report.loss_scale),
        ];
        self.events.scalars(progress.tried, &scalars)
    }

    /// Writes a checkpoint, unless the last one is of this step.
    fn save(&mut self) -> Result<()> {
        let tried = self.trainer.progress().tried;
        if self.saved_at == Some(tried) && self.home.checkpoint().is_file() {
            return Ok(());
        }
        self.trainer.save(&self.home.checkpoint(), &self.identity, &self.course.notes())?;
        self.saved_at = Some(tried);
        Ok(())
    }

    fn report(self, ended: Ended) -> Result<Report> {
        let checkpoint = self.home.checkpoint();
        let progress = self.trainer.progress();
        let report = Report {
            precision: self.settings.precision.to_string(),
            device: self.device,
            ended,
            clips: self.training.len(),
            validation_clips: self.validating.len(),
            left_out: self.left_out,
            steps: progress.taken,
            skipped: progress.tried - progress.taken,
            first_loss: self.course.first_loss,
            last_loss: self.course.last_loss,
            first_validation: self.course.first_validation,
            last_validation: self.course.last_validation,
            best_validation: self.course.best_validation(),
            exported_step: self.course.exported_step,
            seconds_per_step: self.seconds / self.steps.max(1) as f64,
            wall_seconds: self.began.elapsed().as_secs_f64(),
            peak_rss_bytes: peak_rss_bytes(),
            trained_parameters: self.trainer.trained_parameters()?,
            bytes_per_parameter: self.trainer.bytes_per_parameter()?,
            checkpoint_bytes: fs::metadata(&checkpoint).map_err(|e| Error::io(&checkpoint, e))?.len(),
        };
        let text =
            serde_json::to_vec_pretty(&report).map_err(|e| Error::Internal(format!("a report: {e}")))?;
        atomic_file::write(&self.home.report(), &text)?;
        Ok(report)
    }
}

/// Whether something that is done every `every` steps is due after `step` of them.
fn is_due(every: u64, step: u64) -> bool {
    every > 0 && step.is_multiple_of(every)
}

fn text(identity: &Map<String, Value>) -> Result<String> {
    serde_json::to_string(identity).map_err(|e| Error::Internal(format!("an identity: {e}")))
}

/// What identifies the weights that a run begins with.
fn digest(voice: &Voice) -> Result<String> {
    let mut hash = Sha256::new();
    for required in acoustic(&voice.config) {
        hash.update(voice.acoustic.tensor(&required.name)?.data);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
