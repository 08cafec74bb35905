//! Heartbeat: keeps a member in its group.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Member and generation.
    struct Request {
        group_id: String,
        generation_id: i32,
        member_id: String,
        group_instance_id: Option<String> [3..],
    }

    /// Error code.
    struct Response {
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode,
    }
}
