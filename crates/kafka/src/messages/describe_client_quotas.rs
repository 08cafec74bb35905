//! DescribeClientQuotas: lists quotas of clients.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Double;

message! {
    /// Filter.
    struct Request {
        components: Vec<Component>,
        strict: bool,
    }

    /// Filter by entity type: 0 matches the name, 1 the default entity, 2 any entity.
    struct Component {
        entity_type: String,
        match_type: i8,
        r#match: Option<String>,
    }

    /// Quotas of each matching entity.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        entries: Option<Vec<Entry>>,
    }

    /// Quotas of an entity.
    struct Entry {
        entity: Vec<Entity>,
        values: Vec<Value>,
    }

    /// Type and name of an entity.
    struct Entity {
        entity_type: String,
        entity_name: Option<String>,
    }

    /// A quota and its value.
    struct Value {
        key: String,
        value: Double,
    }
}
