//! Authorization: which names a client has proven that it may use.
//!
//! A door authenticates a client and makes its [`Principal`]. Everything that names an agent asks the
//! principal: a claimed name in HELLO, a subscription, a purge, a take for a subject, a delete. The
//! decision has no input but the principal and the name. It knows no door, token store or clock.

mod pattern;
mod principal;

pub use pattern::{Pattern, PatternError};
pub use principal::{Forbidden, Principal};

#[cfg(test)]
mod tests;
