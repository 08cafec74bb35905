//! Which users there are, without what their passwords are known by.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Which users; all if there are none, or null.
    struct Request {
        users: Option<Vec<UserName>>,
    }

    /// One of them.
    struct UserName {
        name: String,
    }

    /// What is kept of each.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        results: Vec<UserResponse>,
    }

    /// The answer for a user.
    struct UserResponse {
        user: String,
        error_code: ErrorCode,
        error_message: Option<String>,
        credential_infos: Vec<CredentialInfo>,
    }

    /// For which mechanism something is kept: 1 is SCRAM-SHA-256, 2 SCRAM-SHA-512.
    struct CredentialInfo {
        mechanism: i8,
        iterations: i32,
    }
}
