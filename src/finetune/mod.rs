//! A voice and recordings in, an adapted voice out.
//!
//! Never speaks to a device that inference uses.

mod atomic_file;
pub mod average;
pub mod backend;
mod casting;
pub mod check;
pub mod checkpoint;
mod clips;
pub mod config_file;
pub mod corpus;
mod course;
pub mod dataset;
pub mod defect;
pub mod event_file;
pub mod export;
mod feature_cache;
pub mod features;
pub mod given;
pub mod heat_map;
pub mod initial;
mod intake;
pub mod journal;
mod learner;
pub mod lora;
pub mod loss;
pub mod memory;
pub mod network;
mod observation;
pub mod optimizer;
pub mod order;
pub mod patience;
mod preparation;
pub mod recording;
pub mod report;
pub mod run;
pub mod run_directory;
pub mod schedule;
pub mod selection;
pub mod settings;
mod tensor_file;
pub mod trainer;
mod unique_json;
