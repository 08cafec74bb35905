//! Resources that have a configuration.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Types of resources; none means all of them.
    struct Request {
        resource_types: Vec<i8> [1..],
    }

    /// The resources. Version 0 knows client metrics only.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        config_resources: Vec<ConfigResource>,
    }

    /// A resource: a topic, a broker, a client metrics subscription or a group.
    struct ConfigResource {
        resource_name: String,
        resource_type: i8 [1..] = 16,
    }
}
