//! AlterUserScramCredentials: sets and deletes SCRAM credentials of users.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Secret;

message! {
    /// Credentials to delete and to set.
    struct Request {
        deletions: Vec<Deletion>,
        upsertions: Vec<Upsertion>,
    }

    /// Credentials to delete: 1 is SCRAM-SHA-256, 2 SCRAM-SHA-512.
    struct Deletion {
        name: String,
        mechanism: i8,
    }

    /// Credentials to set, with the password salted as in RFC 5802.
    struct Upsertion {
        name: String,
        mechanism: i8,
        iterations: i32,
        salt: Secret,
        salted_password: Secret,
    }

    /// Result for each user.
    struct Response {
        throttle_time_ms: i32,
        results: Vec<UserResponse>,
    }

    /// Result for a user.
    struct UserResponse {
        user: String,
        error_code: ErrorCode,
        error_message: Option<String>,
    }
}
