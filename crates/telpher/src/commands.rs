//! One file per command.

pub(crate) mod agents;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod bench_role;
pub(crate) mod body;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod conversation;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod idle;
pub(crate) mod inspect;
pub(crate) mod listen;
pub(crate) mod mailbox;
pub(crate) mod man;
pub(crate) mod ping;
pub(crate) mod quota;
pub(crate) mod request;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod stream;
pub(crate) mod target;
pub(crate) mod token;
pub(crate) mod version;
pub(crate) mod write;
