//! The Kafka protocol: encoding and decoding of every supported message in every supported version.
//!
//! A frame is a size, a header and a body. [`take_frame`] splits it off the received bytes.
//! [`decode_request`] and [`encode_response`] are for the broker, [`encode_request`] and
//! [`decode_response`] for the client. Each API has a module with its `Request` and `Response`,
//! written in a small schema language (`message.rs`) from which decoding, encoding and comparing
//! are generated. [`ApiKey`] and its table define the versions.
//!
//! Invariant: *a size from the wire is compared with the available bytes before it is used.* A
//! count never reserves more memory than the bytes that follow it. The arrays of a message use at
//! most 1 MiB plus four times the frame size, although the shortest text has one byte on the wire
//! and 24 in memory. Texts are copied; bytes and records share the frame's memory, so keeping them
//! keeps the whole frame.
//!
//! This crate knows no sockets and no broker logic; records are opaque.

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
pub use frame::{
    EncodedResponse, encode_api_versions_refusal, encode_request, encode_response,
    encode_response_around, encode_response_with_errors,
};
pub use frame::{FrameError, RequestError, peek_api_key, peek_frame_size, take_frame};
pub use frame::{decode_request, decode_response, response_correlation_id};
pub use header::RequestHeader;
pub use leadership::{CurrentLeader, NodeEndpoint};
pub use messages::*;
pub use reader::{DecodeError, Fault};
pub use values::{Double, Records, Secret, Uuid};
pub use writer::{EncodeError, Gap};
