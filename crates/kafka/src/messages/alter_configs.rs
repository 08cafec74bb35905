//! AlterConfigs: replaces all settings of a resource; settings not in the request return to their
//! default.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// New settings by resource.
    struct Request {
        resources: Vec<Resource>,
        validate_only: bool,
    }

    /// New settings of a resource.
    struct Resource {
        resource_type: i8,
        resource_name: String,
        configs: Vec<Config>,
    }

    /// A setting.
    struct Config {
        name: String,
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
