//! A voice and recordings in, an adapted voice out.
//!
//! Never speaks to a device that inference uses.

pub mod optimizer;
