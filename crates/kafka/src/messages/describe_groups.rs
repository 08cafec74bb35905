//! Groups with their members.

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which groups.
    struct Request {
        groups: Vec<String>,
        include_authorized_operations: bool [3..],
    }

    /// Each group.
    struct Response {
        throttle_time_ms: i32 [1..],
        groups: Vec<Group>,
    }

    /// A group, its state and its protocol.
    struct Group {
        error_code: ErrorCode,
        error_message: Option<String> [6..],
        group_id: String,
        group_state: String,
        protocol_type: String,
        protocol_data: String,
        members: Vec<Member>,
        authorized_operations: i32 [3..] = i32::MIN,
    }

    /// A member, what it said of itself and what it got.
    struct Member {
        member_id: String,
        group_instance_id: Option<String> [4..],
        client_id: String,
        client_host: String,
        member_metadata: Bytes,
        member_assignment: Bytes,
    }
}
