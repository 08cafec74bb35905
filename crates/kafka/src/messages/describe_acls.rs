//! DescribeAcls: lists access control entries.

use crate::error_code::ErrorCode;
use crate::message::message;

message! {
    /// Filter.
    struct Request {
        resource_type_filter: i8,
        resource_name_filter: Option<String>,
        pattern_type_filter: i8 = 3,
        principal_filter: Option<String>,
        host_filter: Option<String>,
        operation: i8,
        permission_type: i8,
    }

    /// Matching entries.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        resources: Vec<Resource>,
    }

    /// Entries of a resource.
    struct Resource {
        resource_type: i8,
        resource_name: String,
        pattern_type: i8 = 3,
        acls: Vec<Acl>,
    }

    /// An access control entry.
    struct Acl {
        principal: String,
        host: String,
        operation: i8,
        permission_type: i8,
    }
}
