//! FindCoordinator: coordinators of groups and transactions.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Group ids (key type 0) or transactional ids (1); one up to version 3, several in later
    /// versions.
    struct Request {
        key: String [..=3],
        key_type: i8 [1..],
        coordinator_keys: Vec<String> [4..],
    }

    /// Coordinator of each key.
    struct Response {
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [..=3],
        error_message: Option<String> [1..=3],
        node_id: i32 [..=3],
        host: String [..=3],
        port: i32 [..=3],
        coordinators: Vec<Coordinator> [4..],
    }

    /// Coordinator of a key.
    struct Coordinator {
        key: String,
        node_id: i32,
        host: String,
        port: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
    }
}
