pub mod error;
pub mod precision;
pub mod voice;
