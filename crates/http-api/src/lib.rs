//! The parts that the resources of the HTTP API share: problem documents, request bodies, replies,
//! event streams, the client of a request, and the connections whose limits apply to all.
//!
//! A resource is a crate `http-*` with handlers and routes; `door-http` composes them and owns the
//! sockets. This crate knows no path of the API and decides nothing.
//!
//! Invariant: *every error that a client sees is a problem document with a code of Telpher.*

pub mod body;
mod client;
mod connections;
mod fast_path;
mod operations;
mod problem;
mod problem_document;
mod query;
pub mod reply;
mod routes;
mod shared;
pub mod sse;
pub mod time;
mod work;

pub use client::{Admin, Client, bearer_of, check_halt, check_subject, requester, unauthenticated};
pub use connections::{Connection, Connections, Handle, Limits, Refusal, Room, Shortage};
pub use fast_path::{FastPath, FastRequest, Later, Method, Verdict, Version, WrittenReply};
pub use operations::{CheckDocument, Operations, OptionDocument};
pub use problem::{Problem, completed};
pub use problem_document::{BinaryDocument, ProblemDocument};
pub use query::query;
pub use routes::{Peer, Routes};
pub use shared::Shared;
pub use work::{listed, off_thread, within_write_limit};
