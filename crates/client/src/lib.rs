//! Rust client and RPC server of Telpher.
//!
//! A client calls a method of a server that it is connected to, or of an agent behind a node. Only
//! the address differs.
//!
//! ```
//! use telpher_client::{Caller, Server};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::new()
//!     .handle("greet", |request: telpher_client::Request| async move {
//!         let name = std::str::from_utf8(&request.body)?;
//!         Ok(format!("hello, {name}"))
//!     });
//! let listening = server.listen("tcp://127.0.0.1:0").await?;
//!
//! let caller = Caller::connect(listening.address()).await?;
//! assert_eq!(caller.call("greet", "Ada").await?, "hello, Ada");
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | call a method and wait for the reply | [`Caller::call`] |
//! | make many calls, a bounded number at a time, replies in order | [`Caller::call_all`] |
//! | make many calls at once | [`Caller::call_batch`] |
//! | pass replies to a function, without a future per call | [`Caller::callbacks`] |
//! | the same, with one function call for all replies of a read | [`Caller::callbacks_in_batches`] |
//! | send a message without a reply | [`Caller::one_way`] |
//! | receive a stream of replies | [`Caller::stream`] |
//! | use the first reply of several callees | [`race`] |
//! | send typed values, or define a service as a Rust trait | [`Caller::typed`], [`service!`] |
//! | call without an async runtime, at the lowest latency | [`blocking::Client`] |
//! | send messages to agents by name, and receive them | [`Client::send`], [`Client::subscribe`] |
//! | write a durable message to a mailbox | [`Client::write`] |
//! | append to, read and follow a stream of records | [`Client::stream`] |
//! | append to, read and follow Kafka-compatible topics | [`Client::topic`] |
//! | append to, read and follow a conversation | [`Client::conversation`] |
//! | take from quotas | [`Client::quota`] |
//! | answer without a copy of the request or of the reply | [`Server::handle_borrowed`] |
//! | serve methods, directly or through a node | [`Server::listen`], [`Server::attach`] |
//!
//! Every operation has a deadline (10 s unless it sets another) and exactly one outcome. A
//! [`CallError`] says what failed, whether the call may have been executed, and what to do next.
//!
//! A connection is one task on the caller's runtime; the client starts no threads. Frames that
//! several callers queue before the task runs leave in one write, and all replies of one read
//! complete under one lock. Memory is bounded: both sides limit calls, messages and bytes in
//! flight, and a full window makes the caller wait or fail with `busy`.

mod agents;
pub mod blocking;
mod builder;
mod calls;
mod client;
mod connect_error;
mod connection;
mod context;
mod error;
mod events;
mod fault;
mod metadata;
mod options;
pub mod quota;
mod retry;
mod server;
mod state;
mod streams;

pub use bytes::Bytes;
pub use model::{ByteSize, ErrorCode, Name, Retry};
pub use wire::{Cast, Receipt};

pub use agents::description::{Description, Method};
pub use agents::envelope::Envelope;
pub use agents::one_way::OneWay;
pub use agents::subscription::{SubscribeOptions, Subscription};
pub use agents::write::{Write, WriteReceipt};
pub use builder::Builder;
pub use calls::call::Call;
pub use calls::call_all::CallAll;
pub use calls::callbacks::{Callbacks, RefusedCall};
pub use calls::caller::Caller;
pub use calls::race::race;
pub use calls::replies::Replies;
pub use calls::typed::{Codec, Json, MessagePack, TypedCall, TypedCaller};
pub use client::Client;
pub use connect_error::ConnectError;
pub use context::{Context, Delivery};
pub use error::{CallError, CallErrorParts, Sent};
pub use events::{ConnectionState, Events};
pub use fault::{Fault, FaultParts};
pub use metadata::Metadata;
pub use options::{Connecting, Connector};
pub use retry::RetryPolicy;
pub use server::{Attachment, BorrowedRequest, ItemSender, ListenError, ListeningServer};
pub use server::{ReplyBody, Request, Server};
pub use state::exchange::WhenFull;
pub use state::reply_batch::ReplyBatch;
pub use streams::conversation::{AppendedBatch, Conversation, FollowMessages, Message};
pub use streams::conversation::{MessagePage, MessageStatus, NewMessage};
pub use streams::follow::Follow;
pub use streams::page::{ReadLimit, Record, RecordPage};
pub use streams::record_stream::{AppendedOffsets, RecordStream};
pub use streams::topic;
