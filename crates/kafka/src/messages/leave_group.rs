//! LeaveGroup: members leave a group; one up to version 2, several in later versions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Group and members.
    struct Request {
        group_id: String,
        member_id: String [..=2],
        members: Vec<Member> [3..],
    }

    /// A member that leaves.
    struct Member {
        member_id: String,
        group_instance_id: Option<String>,
        reason: Option<String> [5..],
    }

    /// Result for each member.
    struct Response {
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode,
        members: Vec<MemberResponse> [3..],
    }

    /// Result for a member.
    struct MemberResponse {
        member_id: String,
        group_instance_id: Option<String>,
        error_code: ErrorCode,
    }
}
