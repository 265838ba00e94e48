//! A voice and recordings in, an adapted voice out.
//!
//! Never speaks to a device that inference uses.

mod atomic_file;
pub mod average;
mod checkpoint;
pub mod dataset;
pub mod defect;
pub mod event_file;
pub mod export;
pub mod features;
pub mod heat_map;
pub mod journal;
pub mod lora;
pub mod loss;
pub mod network;
pub mod optimizer;
pub mod patience;
pub mod recording;
pub mod schedule;
pub mod selection;
mod tensor_file;
pub mod trainer;
