//! SyncGroup: the group leader sends the assignments, the other members wait for theirs.

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Member and, from the leader only, assignments.
    struct Request {
        group_id: String,
        generation_id: i32,
        member_id: String,
        group_instance_id: Option<String> [3..],
        protocol_type: Option<String> [5..],
        protocol_name: Option<String> [5..],
        assignments: Vec<Assignment>,
    }

    /// Assignment of a member.
    struct Assignment {
        member_id: String,
        assignment: Bytes,
    }

    /// Assignment of the requesting member.
    struct Response {
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode,
        protocol_type: Option<String> [5..],
        protocol_name: Option<String> [5..],
        assignment: Bytes,
    }
}
