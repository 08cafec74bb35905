//! Drives the real executable as people and programs do.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what goes wrong in a test ends it, and a test that hangs ends by the real clock"
)]

mod config;
mod outputs;
mod serve;
mod shutdown;
mod support;
mod tokens;
