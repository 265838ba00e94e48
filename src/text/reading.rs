//! How one request wants its text read.
//!
//! Never says anything about the voice or its sound.

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
}
