//! What a run has seen so far, as it is told at the end and as a checkpoint keeps it.
//!
//! Never holds a time: what is here is the same for a run that was interrupted.

use super::checkpoint::Notes;
use super::patience::{Patience, Verdict};
use super::report::Ended;
use crate::error::{Error, Result};

/// The course of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    pub patience: Patience,
    /// The step whose weights the voice has.
    pub exported_step: u64,
    pub first_loss: Option<f32>,
    pub last_loss: Option<f32>,
    pub first_validation: Option<f32>,
    pub last_validation: Option<f32>,
    pub ended: Option<Ended>,
}

const BEST: &str = "best";
const WITHOUT_IMPROVEMENT: &str = "without_improvement";
const EXPORTED_STEP: &str = "exported_step";
const PATIENCE_ENDED: &str = "patience_ended";
const LOSSES: [&str; 4] = ["first_loss", "last_loss", "first_validation", "last_validation"];

impl Course {
    pub fn new(patience: Option<u32>) -> Self {
        Self {
            patience: Patience::new(patience),
            exported_step: 0,
            first_loss: None,
            last_loss: None,
            first_validation: None,
            last_validation: None,
            ended: None,
        }
    }

    /// Hears the loss of a step.
    pub fn stepped(&mut self, loss: f32) {
        self.first_loss.get_or_insert(loss);
        self.last_loss = Some(loss);
    }

    /// Hears the loss of the validation clips. -> whether it is the lowest so far
    pub fn validated(&mut self, loss: f32, step: u64) -> bool {
        self.first_validation.get_or_insert(loss);
        self.last_validation = Some(loss);
        match self.patience.hear(loss) {
            Verdict::Improved => self.exported_step = step,
            Verdict::GoOn => return false,
            Verdict::Stop => {
                self.ended = Some(Ended::Patience);
                return false;
            }
        }
        true
    }

    /// The lowest loss of the validation clips.
    pub fn best_validation(&self) -> Option<f32> {
        Some(self.patience.best).filter(|best| best.is_finite())
    }

    pub fn notes(&self) -> Notes {
        let Self { first_loss, last_loss, first_validation, last_validation, .. } = *self;
        let losses = [first_loss, last_loss, first_validation, last_validation];
        let heard = LOSSES.iter().zip(losses).filter_map(|(name, loss)| Some((*name, bits(loss?))));
        let own = [
            (BEST, bits(self.patience.best)),
            (WITHOUT_IMPROVEMENT, self.patience.without_improvement.to_string()),
            (EXPORTED_STEP, self.exported_step.to_string()),
            (PATIENCE_ENDED, (self.ended == Some(Ended::Patience)).to_string()),
        ];
        own.into_iter().chain(heard).map(|(name, text)| (name.to_owned(), text)).collect()
    }

    /// This course as `notes` tell it.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] for notes that [`Self::notes`] has not written.
    pub fn resumed(self, notes: &Notes) -> Result<Self> {
        let broken = |name: &str| Error::InvalidRequest(format!("the checkpoint's note `{name}` is broken"));
        let text = |name: &str| notes.get(name).ok_or_else(|| broken(name));
        let float = |name: &str| text(name)?.parse().map(f32::from_bits).map_err(|_| broken(name));
        let heard = |name: &str| notes.contains_key(name).then(|| float(name)).transpose();
        let [first_loss, last_loss, first_validation, last_validation] = LOSSES;
        let ended: bool = text(PATIENCE_ENDED)?.parse().map_err(|_| broken(PATIENCE_ENDED))?;
        Ok(Self {
            patience: Patience {
                best: float(BEST)?,
                without_improvement: text(WITHOUT_IMPROVEMENT)?
                    .parse()
                    .map_err(|_| broken(WITHOUT_IMPROVEMENT))?,
                ..self.patience
            },
            exported_step: text(EXPORTED_STEP)?.parse().map_err(|_| broken(EXPORTED_STEP))?,
            first_loss: heard(first_loss)?,
            last_loss: heard(last_loss)?,
            first_validation: heard(first_validation)?,
            last_validation: heard(last_validation)?,
            ended: ended.then_some(Ended::Patience),
        })
    }
}

fn bits(value: f32) -> String {
    value.to_bits().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_goes_on_as_it_was() {
        let mut course = Course::new(Some(2));
        assert_eq!(Course::new(Some(2)).resumed(&course.notes()).unwrap(), course);
        course.stepped(0.1 + 0.2);
        assert!(course.validated(0.7, 5) && !course.validated(0.9, 10) && !course.validated(0.8, 15));
        assert_eq!((course.exported_step, course.ended), (5, Some(Ended::Patience)));
        assert_eq!(Course::new(Some(2)).resumed(&course.notes()).unwrap(), course);
        let mut notes = course.notes();
        notes.insert(BEST.to_owned(), "low".to_owned());
        assert!(Course::new(None).resumed(&notes).unwrap_err().to_string().contains("`best`"));
    }
}
