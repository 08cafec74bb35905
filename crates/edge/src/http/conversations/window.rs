//! Messages of a window: some of their parts are left out, of others a few words are left.

use node::conversations::{Message, MessageView, Treatment};
use serde_json::value::RawValue;

use super::outgoing::push_message;
use crate::json;

/// What stands for a text that is left out.
const LEFT_OUT: &str = "\"[left out]\"";

/// Values up to this size are kept: types, ids, names.
const SMALL: usize = 64;

/// Appends a message as it is shown.
pub(super) fn push_shown(out: &mut Vec<u8>, message: &Message<'_>, treated: &[(u16, Treatment)]) {
    let Message { seq, at_ms, view } = message;
    let parts = match treated {
        [] => None,
        treated => serde_json::from_slice::<Vec<&RawValue>>(view.parts)
            .ok()
            .map(|parts| shown(&parts, treated)),
    };
    match parts {
        None => push_message(out, *seq, *at_ms, view),
        Some(parts) => {
            let parts = parts.as_bytes();
            let view = MessageView { parts, ..*view };
            push_message(out, *seq, *at_ms, &view);
        }
    }
}

fn shown(parts: &[&RawValue], treated: &[(u16, Treatment)]) -> String {
    let mut text = String::from("[");
    for (index, part) in parts.iter().enumerate() {
        let treatment = treated.iter().find(|(it, _)| usize::from(*it) == index);
        let shown = match treatment {
            Some((_, Treatment::Omit)) => continue,
            Some((_, Treatment::Stub)) => shrunk(part.get()),
            None => part.get().to_owned(),
        };
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&shown);
    }
    text.push(']');
    text
}

/// An object with whatever is large in it left out. What came out of a tool becomes a few words; what
/// went in becomes an empty object, for a model takes nothing else there.
fn shrunk(object: &str) -> String {
    json::map_fields(object, |key, value| {
        if value.len() <= SMALL {
            return value.to_owned();
        }
        match (key, value.as_bytes().first()) {
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
