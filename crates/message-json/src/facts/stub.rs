//! Stubs: the short form of a part that is too old to be shown in full in a window.
//!
//! The size of a stub is measured when the message is appended, so later versions may not make the
//! stubs of existing parts larger.

use conversation_service::Stub;

/// The replacement of a text that is left out.
const LEFT_OUT: &str = "\"[left out]\"";

/// Values up to this size stay, in bytes.
const SMALL: usize = 64;

/// Texts that stay whatever their size: without them a provider rejects the part, or the one that
/// belongs to it.
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

/// Returns the size of a part's stub. `long` is the size of the part's text.
pub(super) fn measure(part: &str, long: usize) -> Stub {
    if part.len() < Stub::PART_SIZE_MIN {
        return Stub::NONE;
    }
    // A part that is hardly more than its text needs no second pass.
    let rest = part.len().saturating_sub(long) + LEFT_OUT.len();
    let size = match long > SMALL && rest <= SMALL {
        true => rest,
        false => shrunk(part).len(),
    };
    Stub::new(part.len(), size)
}

/// Returns an object without its large values. The output of a tool becomes a short text; its input
/// becomes an empty object, because models accept nothing else there.
pub fn shrunk(object: &str) -> String {
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

/// Returns whether an output has a type, as in the AI SDK's model messages.
fn is_typed(output: &str) -> bool {
    let has = |name: &str| json::has_field(output, name);
    has("type") && has("value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stub_of_a_tool_part_keeps_its_call_id() {
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
