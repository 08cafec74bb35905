//! Checks of the journal.

pub mod kill;
pub mod restart;
