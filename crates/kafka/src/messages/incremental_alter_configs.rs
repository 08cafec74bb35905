//! IncrementalAlterConfigs: changes single settings.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Changes by resource.
    struct Request {
        resources: Vec<Resource>,
        validate_only: bool,
    }

    /// Changes to a resource.
    struct Resource {
        resource_type: i8,
        resource_name: String,
        configs: Vec<Config>,
    }

    /// Change of a setting: 0 sets, 1 deletes, 2 appends to a list, 3 removes from a list.
    struct Config {
        name: String,
        config_operation: i8,
        value: Option<String>,
    }

    /// Result for each resource.
    struct Response {
        throttle_time_ms: i32,
        responses: Vec<ResourceResponse>,
    }

    /// Result for a resource.
    struct ResourceResponse {
        error_code: ErrorCode,
        error_message: Option<String>,
        resource_type: i8,
        resource_name: String,
    }
}
