//! DescribeGroups: state and members of groups.

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Group ids.
    struct Request {
        groups: Vec<String>,
        include_authorized_operations: bool [3..],
    }

    /// Result for each group.
    struct Response {
        throttle_time_ms: i32 [1..],
        groups: Vec<Group>,
    }

    /// A group with its state and protocol.
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

    /// A member with its metadata and assignment.
    struct Member {
        member_id: String,
        group_instance_id: Option<String> [4..],
        client_id: String,
        client_host: String,
        member_metadata: Bytes,
        member_assignment: Bytes,
    }
}
