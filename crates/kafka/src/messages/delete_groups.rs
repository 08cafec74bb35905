//! Groups to delete.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which groups.
    struct Request {
        groups_names: Vec<String>,
    }

    /// What became of each group.
    struct Response {
        throttle_time_ms: i32,
        results: Vec<GroupResponse>,
    }

    /// The answer for a group.
    struct GroupResponse {
        group_id: String,
        error_code: ErrorCode,
    }
}
