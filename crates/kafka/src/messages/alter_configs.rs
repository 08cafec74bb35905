//! Settings to replace as a whole: what is not named becomes the default again.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// All settings of each resource.
    struct Request {
        resources: Vec<Resource>,
        validate_only: bool,
    }

    /// All settings of a resource.
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

    /// What became of each resource.
    struct Response {
        throttle_time_ms: i32,
        responses: Vec<ResourceResponse>,
    }

    /// The answer for a resource.
    struct ResourceResponse {
        error_code: ErrorCode,
        error_message: Option<String>,
        resource_type: i8,
        resource_name: String,
    }
}
