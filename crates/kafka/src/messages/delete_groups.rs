//! DeleteGroups: deletes consumer groups.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Group ids.
    struct Request {
        groups_names: Vec<String>,
    }

    /// Result for each group.
    struct Response {
        throttle_time_ms: i32,
        results: Vec<GroupResponse>,
    }

    /// Result for a group.
    struct GroupResponse {
        group_id: String,
        error_code: ErrorCode,
    }
}
