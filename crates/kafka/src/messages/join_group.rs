//! JoinGroup: a member joins or rejoins a consumer group.

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Member and its protocols, in order of preference.
    struct Request {
        group_id: String,
        session_timeout_ms: i32,
        rebalance_timeout_ms: i32 [1..] = -1,
        member_id: String,
        group_instance_id: Option<String> [5..],
        protocol_type: String,
        protocols: Vec<Protocol>,
        reason: Option<String> [8..],
    }

    /// A protocol with the member's metadata for the assignment.
    struct Protocol {
        name: String,
        metadata: Bytes,
    }

    /// Generation, leader and, for the leader, members.
    struct Response {
        throttle_time_ms: i32 [2..],
        error_code: ErrorCode,
        generation_id: i32 = -1,
        protocol_type: Option<String> [7..],
        protocol_name: Option<String> [0.., null 7..],
        leader: String,
        skip_assignment: bool [9..],
        member_id: String,
        members: Vec<Member>,
    }

    /// Metadata of a member, for the leader.
    struct Member {
        member_id: String,
        group_instance_id: Option<String> [5..],
        metadata: Bytes,
    }
}
