//! Checks of conversations.

pub mod idle;
pub mod kill;
pub mod soak;
