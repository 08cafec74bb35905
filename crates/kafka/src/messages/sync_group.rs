//! The leader hands in what each member gets; the others wait for theirs.

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Assignments, from the leader alone.
    struct Request {
        group_id: String,
        generation_id: i32,
        member_id: String,
        group_instance_id: Option<String> [3..],
        protocol_type: Option<String> [5..],
        protocol_name: Option<String> [5..],
        assignments: Vec<Assignment>,
    }

    /// What a member gets.
    struct Assignment {
        member_id: String,
        assignment: Bytes,
    }

    /// What the member gets.
    struct Response {
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode,
        protocol_type: Option<String> [5..],
        protocol_name: Option<String> [5..],
        assignment: Bytes,
    }
}
