//! DescribeUserScramCredentials: users with SCRAM credentials, without the credentials.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// User names; null or none means all.
    struct Request {
        users: Option<Vec<UserName>>,
    }

    /// A user name.
    struct UserName {
        name: String,
    }

    /// Credentials of each user.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        results: Vec<UserResponse>,
    }

    /// Result for a user.
    struct UserResponse {
        user: String,
        error_code: ErrorCode,
        error_message: Option<String>,
        credential_infos: Vec<CredentialInfo>,
    }

    /// Mechanism of a credential: 1 is SCRAM-SHA-256, 2 SCRAM-SHA-512.
    struct CredentialInfo {
        mechanism: i8,
        iterations: i32,
    }
}
