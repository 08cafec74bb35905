//! Comparison of the engine with published reports: every figure that follows from their runs is
//! computed again and compared. The figures that this project publishes are made here too.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod published;
mod slim_suite;
mod uvrpc;
