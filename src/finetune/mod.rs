//! A voice and recordings in, an adapted voice out.
//!
//! Never speaks to a device that inference uses.

mod atomic_file;
mod checkpoint;
pub mod dataset;
pub mod export;
pub mod features;
pub mod loss;
pub mod network;
pub mod optimizer;
pub mod recording;
pub mod schedule;
pub mod trainer;
