//! Frames of the native protocol: layout and bounds, without any meaning.
//!
//! A frame is a 16-byte little-endian header and a payload:
//!
//! ```text
//!  0        4      5       6       8                16
//! +--------+------+-------+-------+----------------+- - - - - - - +
//! | length | kind | flags | route |  correlation   |   payload    |
//! |  u32   |  u8  |  u8   |  u16  | slot:u32 gen:u32|  length bytes|
//! +--------+------+-------+-------+----------------+- - - - - - - +
//! ```
//!
//! `docs/reference/protocol.md` describes every kind and pins each with golden bytes. The invariant
//! of this crate: *no length from the wire allocates anything; a decoder only borrows from the bytes
//! that are there.* It knows no sockets and no engine, so all SDKs and listeners share it.

mod bind;
mod control;
mod conversation;
mod cursor;
mod description;
mod failure;
mod header;
mod hello;
mod inbox;
mod mailbox;
mod metadata;
mod payload;
mod quota;
mod stream;
mod subscribe;
mod topic;

pub use bind::{Bind, Cast};
pub use control::{Credit, Goaway, Receipt, SubscriptionEnd, decode_copies, decode_flow};
pub use control::{encode_cancel, encode_copies, encode_flow, encode_ping, encode_pong};
pub use conversation::{AppendedMessages, MadeIds, Message, NewMessage};
pub use cursor::Malformed;
pub use description::{DescribedMethod, DescribedMethods, Description};
pub use failure::{DETAILS_SIZE_MAX, MESSAGE_LENGTH_MAX, decode_failure, encode_failure};
pub use header::{Correlation, Flags, HEADER_SIZE, Header, Kind, encode_frame};
pub use hello::{FEATURES, Hello, LONG_HOLDS, MAGIC, Role, VERSION, VERSION_MIN, Welcome, Window};
pub use inbox::{Frames, Inbox, Item, RUN_LENGTH_MAX, Run};
pub use mailbox::{Delivery, Key, Stored};
pub use metadata::{Metadata, SOURCE, TRACEPARENT, TRACESTATE, encode_metadata};
pub use payload::Payload;
pub use quota::{Admitted, Costs, Denied, Hold, LimitState, Outcome, Outcomes, Settle, TAKES_MAX};
pub use quota::{Take, Takes, Wait, decode_settled, encode_peek, encode_settled};
pub use stream::{Append, Appended, Extract, Read, Record};
pub use subscribe::encode_unsubscribe;
pub use subscribe::{SUBSCRIBE_DESCRIBED, SUBSCRIBE_WITH_SOURCE};
pub use subscribe::{Subscribe, decode_name, encode_subscribed};
pub use topic::{AppendedRecords, TopicHeaders, TopicRecord, encode_extracted, put_extracted};
