//! What unmodified clients sent, what is easily got wrong, and what holds for any bytes.

mod bad_input;
pub(crate) mod clients;
mod links;
mod oracle;
mod properties;
mod stream;
