//! A member that joins a consumer group, or joins again.

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// The member and the protocols it speaks, the one it likes best first.
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

    /// A protocol, and what the leader must know about the member to assign by it.
    struct Protocol {
        name: String,
        metadata: Bytes,
    }

    /// The generation that the member is part of.
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

    /// What the leader is told about a member.
    struct Member {
        member_id: String,
        group_instance_id: Option<String> [5..],
        metadata: Bytes,
    }
}
