//! DescribeConfigs: configuration of topics and brokers.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Resources and names of settings.
    struct Request {
        resources: Vec<Resource>,
        include_synonyms: bool,
        include_documentation: bool [3..],
    }

    /// A resource; without names of settings, all settings.
    struct Resource {
        resource_type: i8,
        resource_name: String,
        configuration_keys: Option<Vec<String>>,
    }

    /// The settings of each resource.
    struct Response {
        throttle_time_ms: i32,
        results: Vec<ResourceResponse>,
    }

    /// Result for a resource.
    struct ResourceResponse {
        error_code: ErrorCode,
        error_message: Option<String>,
        resource_type: i8,
        resource_name: String,
        configs: Vec<Config>,
    }

    /// A setting with its value and source.
    struct Config {
        name: String,
        value: Option<String>,
        read_only: bool,
        config_source: i8 = -1,
        is_sensitive: bool,
        synonyms: Vec<Synonym>,
        config_type: i8 [3..],
        documentation: Option<String> [3..],
    }

    /// Another source of the value, in order of precedence.
    struct Synonym {
        name: String,
        value: Option<String>,
        source: i8,
    }
}
