//! What clients may take of a broker.

use crate::error_code::ErrorCode;
use crate::message::message;
use crate::values::Double;

message! {
    /// Of whom.
    struct Request {
        components: Vec<Component>,
        strict: bool,
    }

    /// Those of a kind: 0 is the one of that name, 1 what counts for all others, 2 any.
    struct Component {
        entity_type: String,
        match_type: i8,
        r#match: Option<String>,
    }

    /// What counts of each.
    struct Response {
        throttle_time_ms: i32,
        error_code: ErrorCode,
        error_message: Option<String>,
        entries: Option<Vec<Entry>>,
    }

    /// What counts of one.
    struct Entry {
        entity: Vec<Entity>,
        values: Vec<Value>,
    }

    /// Who it is.
    struct Entity {
        entity_type: String,
        entity_name: Option<String>,
    }

    /// How much it may take.
    struct Value {
        key: String,
        value: Double,
    }
}
