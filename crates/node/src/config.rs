//! The configuration: one tree, a documented `Options` struct per component.
//!
//! Every option is declared once, in its component's file; its place in the TOML file, its
//! environment variable, its flag, its documentation and "did you mean" all derive from that
//! declaration. Values come in layers (defaults, file, environment, flags), are all read before
//! anything is refused, and every mistake is reported at once with its place.
//!
//! Nothing here touches the outside: the caller passes the file's text, the environment and the
//! flags in, and hands plain values on.

#[macro_use]
mod options;

pub mod archive;
pub mod auth;
pub mod conversation;
pub mod data;
pub mod duration;
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
mod template;
pub mod tls;
pub mod topics;
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

/// Everything that can be set, by component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Where everything durable lies.
    pub data: data::Options,
    /// Who may connect.
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
    /// What is derived from conversations.
    pub views: views::Options,
    /// Agents that are called when somebody writes.
    pub webhook: webhook::Options,
    /// The archive of conversations.
    pub archive: archive::Options,
    /// Quotas.
    pub quota: quota::Options,
    /// The store that they lie in, if they do not lie in the node.
    pub quota_store: quota_store::Options,
    /// The limits, which are tables of their own in the file.
    pub limits: Vec<::quota::Limit>,
    /// Topics.
    pub topics: topics::Options,
    /// The native door.
    pub native: native::Options,
    /// The HTTP door.
    pub http: http::Options,
    /// The Kafka door.
    pub kafka: kafka::Options,
    /// The SLIM door.
    pub slim: slim::Options,
    /// Encryption of all doors.
    pub tls: tls::Options,
    /// What the node logs.
    pub log: log::Options,
    /// Threads.
    pub runtime: runtime::Options,
    /// How the node goes down.
    pub shutdown: shutdown::Options,
}

/// Every component, in the order of documentation; those without a table of their own in the
/// TOML file come first, as TOML demands.
pub const SECTIONS: [&Section; 21] = [
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
    &tls::SECTION,
    &log::SECTION,
    &runtime::SECTION,
    &shutdown::SECTION,
];

#[cfg(test)]
mod tests;
