//! Recorded messages of unmodified clients, edge cases, and properties of arbitrary bytes.

mod bad_input;
pub(crate) mod clients;
mod links;
mod oracle;
mod properties;
mod stream;
