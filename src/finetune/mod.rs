//! A voice and recordings in, an adapted voice out.
//!
//! Never speaks to a device that inference uses.

pub mod average;
pub mod event_file;
pub mod heat_map;
pub mod journal;
pub mod lora;
pub mod optimizer;
pub mod patience;
pub mod selection;
