//! A command at a terminal: results, notes and failures, the exit status, signals, and environment
//! variables.
//!
//! Every command of the binary and the running process speak to their user through this crate. It
//! knows no command, no configuration and no node. Invariant: *results go to the standard
//! output, and everything else to the standard error.*

pub mod body;
mod calls;
mod environment;
mod failure;
pub mod output;
mod signals;
pub mod url;
pub mod utc;

pub use calls::{ConnectionNotes, call_failure};
pub use environment::Environment;
pub use failure::{ErrorReport, Exit, Failure};
pub use signals::{SignalAction, Signals};
