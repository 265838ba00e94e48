//! A voice and recordings in, an adapted voice out.
//!
//! Never speaks to a device that inference uses.

mod atomic_file;
pub mod average;
pub mod check;
mod checkpoint;
pub mod corpus;
pub mod dataset;
pub mod defect;
pub mod event_file;
pub mod export;
mod feature_cache;
pub mod features;
pub mod heat_map;
mod intake;
pub mod journal;
pub mod lora;
pub mod loss;
pub mod network;
pub mod optimizer;
pub mod patience;
mod preparation;
pub mod recording;
pub mod schedule;
pub mod selection;
mod tensor_file;
pub mod trainer;
