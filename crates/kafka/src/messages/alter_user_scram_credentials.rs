//! What users' passwords are to be known by.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Secret;

message! {
    /// What is to be gone, and what is to be kept.
    struct Request {
        deletions: Vec<Deletion>,
        upsertions: Vec<Upsertion>,
    }

    /// What is to be gone: 1 is SCRAM-SHA-256, 2 SCRAM-SHA-512.
    struct Deletion {
        name: String,
        mechanism: i8,
    }

    /// What is to be kept: the password as RFC 5802 salts it.
    struct Upsertion {
        name: String,
        mechanism: i8,
        iterations: i32,
        salt: Secret,
        salted_password: Secret,
    }

    /// What became of each user.
    struct Response {
        throttle_time_ms: i32,
        results: Vec<UserResponse>,
    }

    /// The answer for a user.
    struct UserResponse {
        user: String,
        error_code: ErrorCode,
        error_message: Option<String>,
    }
}
