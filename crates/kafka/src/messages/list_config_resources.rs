//! ListConfigResources: lists resources that have a configuration.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Resource types; none means all.
    struct Request {
        resource_types: Vec<i8> [1..],
    }

    /// Resources. Version 0 supports client metrics only.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        config_resources: Vec<ConfigResource>,
    }

    /// A topic, broker, client metrics subscription or group.
    struct ConfigResource {
        resource_name: String,
        resource_type: i8 [1..] = 16,
    }
}
