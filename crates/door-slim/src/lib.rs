//! The SLIM listener: serves applications on `slim-bindings`, unchanged (`docs/slim.md`).
//!
//! Each connection has one task. It reads received bytes and passes each message to the `Exchange`,
//! which puts copies into the queues of receivers. At the end of its pass over its connections the
//! thread writes the queues that it has begun to the sockets of the receivers whose tasks are idle,
//! and wakes the tasks of the others (`shared_client`). gRPC adds only a
//! prefix of five bytes and a final status, so the listener speaks HTTP/2 itself: a server
//! framework's codec would end the stream at a message that is too large, and needs three tasks
//! where one is enough. Clients that cannot speak HTTP/2 use WebSocket, on the same port, with
//! other framing and the same `ClientLink`.
//!
//! The exchange has its own table: names are hashes here, and any number of applications may hold
//! one instance. Connections are connections of the node like all others: counted, limited, listed,
//! drained and closed with them.

mod accept;
mod admission;
mod client;
mod client_link;
mod client_task;
mod ending_stream;
mod exchange;
mod handshake_error;
mod io;
mod jwt;
mod keepalive;
mod listener;
mod metrics;
mod outlet;
mod pressure;
mod refusals;
mod round;
mod scope;
mod shared_client;
mod status;
mod stream;
mod transport;
mod waiting_streams;
mod websocket;

pub use accept::Listeners;
pub use exchange::Exchange;
pub use jwt::{Jwt, JwtKeyError};
pub use listener::{Door, Options};
pub use metrics::encode_metrics;
pub use slim::{Act, Rules, Who};
