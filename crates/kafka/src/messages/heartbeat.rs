//! A sign of life from a member of a group.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which member.
    struct Request {
        group_id: String,
        generation_id: i32,
        member_id: String,
        group_instance_id: Option<String> [3..],
    }

    /// Whether it is still one.
    struct Response {
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode,
    }
}
