//! What stands for a part in a window in which it is too old to be shown as it is.
//!
//! How large that is is measured when the message is appended, so what is written here may never
//! become larger for parts that are kept already.

use node::conversations::Stub;

use crate::json;

/// What stands for a text that is left out.
const LEFT_OUT: &str = "\"[left out]\"";

/// Values up to this size are kept, whatever they are.
const SMALL: usize = 64;

/// Texts that are kept however long they are: without them a provider takes neither the part nor
/// what belongs to it.
const KEPT: [&str; 9] = [
    "type",
    "id",
    "name",
    "state",
    "toolName",
    "toolCallId",
    "tool_call_id",
    "call_id",
    "tool_use_id",
];

/// How large what stands for a part is. Of its bytes `long` are those of its text.
pub(super) fn measure(part: &str, long: usize) -> Stub {
    if part.len() < Stub::PART_SIZE_MIN {
        return Stub::NONE;
    }
    // A part that is hardly more than its text needs no second look.
    let rest = part.len().saturating_sub(long) + LEFT_OUT.len();
    let size = match long > SMALL && rest <= SMALL {
        true => rest,
        false => shrunk(part).len(),
    };
    Stub::new(part.len(), size)
}

/// An object with whatever is large in it left out. What came out of a tool becomes a few words; what
/// went in becomes an empty object, for a model takes nothing else there.
pub(crate) fn shrunk(object: &str) -> String {
    json::map_fields(object, |key, value| {
        let first = value.as_bytes().first();
        if value.len() <= SMALL || (first == Some(&b'"') && KEPT.contains(&key)) {
            return value.to_owned();
        }
        match (key, first) {
            ("arguments", Some(b'"')) => "\"{}\"".to_owned(),
            ("function" | "toolInvocation", Some(b'{')) => shrunk(value),
            ("output", Some(b'{')) if is_typed(value) => {
                format!("{{\"type\":\"text\",\"value\":{LEFT_OUT}}}")
            }
            ("output" | "result" | "content", _) | (_, Some(b'"')) => LEFT_OUT.to_owned(),
            (_, Some(b'[')) => "[]".to_owned(),
            (_, Some(b'{')) => "{}".to_owned(),
            _ => "null".to_owned(),
        }
    })
}

/// Whether an output says what it is, as those of the AI SDK's model messages do.
fn is_typed(output: &str) -> bool {
    let has = |name: &str| json::has_field(output, name);
    has("type") && has("value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_keeps_what_binds_a_call_to_its_result() {
        let long = "x".repeat(100);
        let check = |part: String, expected: &str| assert_eq!(shrunk(&part), expected);
        check(
            format!(
                r#"{{"type":"tool-f","toolCallId":"c","input":{{"a":"{long}"}},"output":["{long}"]}}"#
            ),
            r#"{"type":"tool-f","toolCallId":"c","input":{},"output":"[left out]"}"#,
        );
        check(
            format!(
                r#"{{"id":"c","type":"function","function":{{"name":"f","arguments":"{long}"}}}}"#
            ),
            r#"{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}"#,
        );
        check(
            format!(
                r#"{{"type":"tool-result","toolCallId":"c","output":{{"type":"json","value":"{long}"}}}}"#
            ),
            r#"{"type":"tool-result","toolCallId":"c","output":{"type":"text","value":"[left out]"}}"#,
        );
        check(
            format!(
                r#"{{"type":"tool_result","tool_use_id":"c","content":[{{"text":"{long}"}}]}}"#
            ),
            r#"{"type":"tool_result","tool_use_id":"c","content":"[left out]"}"#,
        );
        check(
            format!(
                r#"{{"type":"reasoning","text":"{long}","n":{}}}"#,
                "1".repeat(100)
            ),
            r#"{"type":"reasoning","text":"[left out]","n":null}"#,
        );
    }
}
