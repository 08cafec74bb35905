//! The configuration of a process: one tree with a documented `Options` struct per component.
//!
//! Every option is declared once, in its component's file. Its key in the TOML file, its
//! environment variable, its flag, its documentation and "did you mean" are derived from that
//! declaration. Values come in layers (defaults, file, environment, flags). All layers are read
//! before any mistake is reported, so that all mistakes are reported at once, with their origins.
//!
//! A component does not know this crate: it takes plain options of its own, which have defaults.
//! The default of an option here is read from them, so no default is written twice.
//!
//! The crate does no I/O: the caller passes the file's text, the environment and the flags in,
//! and hands plain values on.

#[macro_use]
mod options;

pub mod archive;
pub mod auth;
pub mod cluster;
pub mod conversation;
pub mod data;
mod exposure;
mod file;
mod host_port;
pub mod http;
pub mod journal;
pub mod kafka;
mod limits;
mod load;
pub mod log;
pub mod mailbox;
mod mistake;
pub mod namespace;
pub mod native;
pub mod quota;
pub mod quota_store;
pub mod runtime;
pub mod shutdown;
pub mod slim;
pub mod stream;
pub mod telemetry;
mod template;
pub mod tls;
pub mod topics;
mod units;
mod value;
pub mod views;
pub mod webhook;

pub use exposure::check_exposure;
pub use host_port::{HostPort, HostPortError};
pub use load::{Loaded, RESERVED_VARIABLES, load};
pub use mistake::{Mistake, Mistakes, Origin};
pub use options::{Section, Spec, find, specs};
pub use template::template;
pub use value::Value;

/// All options, by component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The data directory.
    pub data: data::Options,
    /// Authentication.
    pub auth: auth::Options,
    /// The journal.
    pub journal: journal::Options,
    /// Mailboxes.
    pub mailbox: mailbox::Options,
    /// Namespaces.
    pub namespace: namespace::Options,
    /// Raw streams.
    pub stream: stream::Options,
    /// Conversations.
    pub conversation: conversation::Options,
    /// Views, which are derived from conversations.
    pub views: views::Options,
    /// Webhooks.
    pub webhook: webhook::Options,
    /// The archive of conversations.
    pub archive: archive::Options,
    /// Quotas.
    pub quota: quota::Options,
    /// The Redis in which several nodes share quotas.
    pub quota_store: quota_store::Options,
    /// The limits, which are `[[limit]]` tables in the file.
    pub limits: Vec<::quota::Limit>,
    /// Topics.
    pub topics: topics::Options,
    /// The native listener.
    pub native: native::Options,
    /// The HTTP listener.
    pub http: http::Options,
    /// The Kafka listener.
    pub kafka: kafka::Options,
    /// The SLIM listener.
    pub slim: slim::Options,
    /// The cluster.
    pub cluster: cluster::Options,
    /// TLS.
    pub tls: tls::Options,
    /// The log.
    pub log: log::Options,
    /// Traces.
    pub telemetry: telemetry::Options,
    /// Threads.
    pub runtime: runtime::Options,
    /// The shutdown.
    pub shutdown: shutdown::Options,
}

/// All components, in the order of documentation; those without a table of their own in the TOML
/// file come first, as TOML demands.
pub const SECTIONS: [&Section; 23] = [
    &data::SECTION,
    &auth::SECTION,
    &journal::SECTION,
    &mailbox::SECTION,
    &namespace::SECTION,
    &stream::SECTION,
    &conversation::SECTION,
    &views::SECTION,
    &webhook::SECTION,
    &archive::SECTION,
    &quota::SECTION,
    &quota_store::SECTION,
    &topics::SECTION,
    &native::SECTION,
    &http::SECTION,
    &kafka::SECTION,
    &slim::SECTION,
    &cluster::SECTION,
    &tls::SECTION,
    &log::SECTION,
    &telemetry::SECTION,
    &runtime::SECTION,
    &shutdown::SECTION,
];

#[cfg(test)]
mod tests;
