//! ListGroups: lists groups, optionally by state.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Filter.
    struct Request {
        states_filter: Vec<String> [4..],
        types_filter: Vec<String> [5..],
    }

    /// Matching groups.
    struct Response {
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode,
        groups: Vec<Group>,
    }

    /// A group with its state.
    struct Group {
        group_id: String,
        protocol_type: String,
        group_state: String [4..],
        group_type: String [5..],
    }
}
