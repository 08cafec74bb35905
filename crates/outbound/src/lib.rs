//! Outgoing connections of a node, behind ports that the node defines.
//!
//! The remote systems may be slow, unreachable or faulty at any time. The node must not suffer from
//! that: every request is answered within a bounded time, if only with the error that the system is
//! unreachable.
//!
//! This crate knows SQL, Redis, HTTP and the network. It does not know the listeners and makes no
//! decisions about conversations.

pub mod archive;
pub mod otlp;
pub mod redis;
pub mod webhook;
