//! Authentication and authorization: tokens, and the names that a client has proven that it may use.
//!
//! A listener authenticates a client and makes its [`Principal`]. Every operation that names an
//! agent asks the principal: a claimed name in HELLO, a subscription, a purge, a take for a
//! subject, a delete. The decision depends only on the principal and the name. This crate
//! knows no listener and no clock; [`tokens`] stores the digests of tokens in a small file.
//! Invariant: *a token itself is never stored, and a name is used only by a client that has proven it
//! or may use any.*

mod pattern;
mod principal;
pub mod tokens;

pub use pattern::{Pattern, PatternError};
pub use principal::{Forbidden, Principal};

#[cfg(test)]
mod tests;
