//! Authorization: which names a client has proven that it may use.
//!
//! A listener authenticates a client and makes its [`Principal`]. Every operation that names an
//! agent asks the principal: a claimed name in HELLO, a subscription, a purge, a take for a
//! subject, a delete. The decision depends only on the principal and the name. This module knows no
//! listener, token store or clock.

mod pattern;
mod principal;

pub use pattern::{Pattern, PatternError};
pub use principal::{Forbidden, Principal};

#[cfg(test)]
mod tests;
