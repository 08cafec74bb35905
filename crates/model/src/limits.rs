//! Limits that both ends of a connection must agree on before they have negotiated anything.

use crate::ByteSize;

/// Largest frame body accepted unless configured otherwise.
pub const FRAME_SIZE_MAX: ByteSize = ByteSize::mebibytes(8);

/// Largest value `frame_size_max` may be configured to: a length above it is never a frame.
pub const FRAME_SIZE_CEILING: ByteSize = ByteSize::gibibytes(1);

/// A frame of at most this many times the limit is answered with an error and skipped; a larger
/// one closes the connection after the error.
pub const FRAME_SKIP_FACTOR: u32 = 16;

/// Calls one connection may have in flight unless configured otherwise.
pub const CALLS_IN_FLIGHT_MAX: u32 = 65_536;

/// Routes one side of a connection may bind: a route is a `u16` and 0 means "none".
pub const ROUTE_COUNT_MAX: u32 = u16::MAX as u32;

/// Subscriptions one connection may hold unless configured otherwise.
pub const SUBSCRIPTIONS_PER_CONNECTION_MAX: u32 = 65_536;

/// Length of a method name, in bytes.
pub const METHOD_LENGTH_MAX: usize = 255;
