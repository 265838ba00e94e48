//! Numbers of one dtype in, the same numbers in another out.
