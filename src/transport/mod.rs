//! Requests from the network in, audio to the network out.
//!
//! The one place that knows the messages generated from `proto/mezzavoce`. Never synthesises, and never opens a file.

pub mod client;
mod delivery;
mod describe;
pub mod feed;
pub mod grpc;
mod refusal;
mod request;
mod responses;

/// What `proto/mezzavoce/v1/mezzavoce.proto` generates.
pub mod pb {
    #![allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated")]

    tonic::include_proto!("mezzavoce.v1");

    /// The descriptors, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mezzavoce.v1.bin"));
}
