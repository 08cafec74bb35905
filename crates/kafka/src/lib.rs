//! The Kafka protocol: every message at every version that is served, in both directions.
//!
//! A frame is a size, a header and a body. [`take_frame`] cuts it out of what has arrived,
//! [`decode_request`] and [`encode_response`] are the broker's side, [`encode_request`] and
//! [`decode_response`] the client's. Each API has a module with its `Request` and `Response`, written
//! in a small schema language (`message.rs`) from which reading, writing and comparing follow;
//! [`ApiKey`] and its table say which versions there are.
//!
//! Invariant: *a size from the wire is compared with the bytes that are there before anything is
//! done with it.* A count never reserves more memory than the bytes that follow it; the arrays
//! of a message take at most 1 MiB and four times its frame, though the shortest text is one byte on
//! the wire and 24 in memory. Texts are copied, bytes and records share the frame's memory: whoever
//! keeps them for long keeps the frame.
//!
//! It knows no sockets and nothing of what a broker does with a message; records are opaque here.

mod api;
pub mod consumer_protocol;
mod error_code;
mod field;
mod frame;
mod header;
mod leadership;
mod message;
mod messages;
#[cfg(test)]
mod oracle;
mod reader;
#[cfg(test)]
mod sample;
mod values;
mod writer;

pub use api::{API_KEYS, Api, ApiKey, Request, RequestBody, ResponseBody};
pub use error_code::ErrorCode;
pub use frame::{FrameError, RequestError, peek_api_key, take_frame};
pub use frame::{decode_request, decode_response, response_correlation_id};
pub use frame::{
    encode_api_versions_refusal, encode_request, encode_response, encode_response_with_errors,
};
pub use header::RequestHeader;
pub use leadership::{CurrentLeader, NodeEndpoint};
pub use messages::*;
pub use reader::{DecodeError, Fault};
pub use values::{Double, Records, Secret, Uuid};
pub use writer::EncodeError;
