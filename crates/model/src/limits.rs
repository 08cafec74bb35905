//! Limits that both ends of a connection must agree on before any negotiation.

use crate::ByteSize;

/// Default limit on a frame's payload.
pub const FRAME_SIZE_MAX: ByteSize = ByteSize::mebibytes(8);

/// Highest value of `frame_size_max`. A larger length is never a frame.
pub const FRAME_SIZE_CEILING: ByteSize = ByteSize::gibibytes(1);

/// A frame of at most this many times the limit is answered with an error and skipped. A larger one
/// closes the connection after the error.
pub const FRAME_SKIP_FACTOR: u32 = 16;

/// Default limit on the calls in flight of a connection.
pub const CALLS_IN_FLIGHT_MAX: u32 = 65_536;

/// Limit on the routes of one side of a connection: a route is a `u16`, and 0 means "none".
pub const ROUTE_COUNT_MAX: u32 = u16::MAX as u32;

/// Default limit on the subscriptions of a connection.
pub const SUBSCRIPTIONS_PER_CONNECTION_MAX: u32 = 65_536;

/// Limit on the length of a method name, in bytes.
pub const METHOD_LENGTH_MAX: usize = 255;
