//! How one request wants its text read.
//!
//! Never says anything about the voice or its sound.

use std::str::FromStr;
use std::sync::Arc;

use super::Lexicon;
use crate::error::{Error, Excerpt};

/// What becomes of emoji and Markdown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Markup {
    /// Not spoken.
    #[default]
    Strip,
    /// Spoken by name.
    Speak,
    /// Left as it is: what the voice has no symbol for is reported.
    Keep,
}

/// Which number of `3/4/2025` is the month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DateOrder {
    #[default]
    MonthFirst,
    DayFirst,
}

/// The choices of one request.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub markup: Markup,
    pub date_order: DateOrder,
    /// Pronunciations of this request: before those of the server, which come before the built-in ones.
    pub lexicon: Option<Arc<Lexicon>>,
}

impl FromStr for Markup {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "strip" => Ok(Self::Strip),
            "speak" => Ok(Self::Speak),
            "keep" => Ok(Self::Keep),
            _ => {
                Err(Error::InvalidRequest(format!("markup `{}` is not strip, speak or keep", Excerpt(text))))
            }
        }
    }
}

impl FromStr for DateOrder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "month-first" => Ok(Self::MonthFirst),
            "day-first" => Ok(Self::DayFirst),
            _ => Err(Error::InvalidRequest(format!(
                "date order `{}` is not month-first or day-first",
                Excerpt(text)
            ))),
        }
    }
}
