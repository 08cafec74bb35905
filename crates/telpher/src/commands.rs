//! One file per command.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod explain;
pub(crate) mod man;
pub(crate) mod serve;
pub(crate) mod token;
pub(crate) mod version;
