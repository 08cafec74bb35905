//! Formats messages for a terminal; control characters are escaped.

use console::output::one_line;
use serde_json::Value;

use crate::commands::agents::{rows, text};

/// Indentation of continued lines.
const INDENT: &str = "    ";

/// Maximum number of characters of a tool's input or output.
const TOOL_LENGTH_MAX: usize = 200;

/// Formats a message on one or more lines.
pub(super) fn message(message: &Value) -> String {
    let mut out = format!("{}:", head(message));
    let parts = rows(message, "parts");
    let is_one = parts.len() == 1;
    for (index, part) in parts.iter().enumerate() {
        let said = part_text(part);
        let mut lines = said.lines();
        if index == 0 && (is_one || is_text(part)) {
            out.push(' ');
            out.push_str(lines.next().unwrap_or_default());
        }
        for line in lines {
            out.push('\n');
            out.push_str(INDENT);
            out.push_str(line);
        }
    }
    out.push('\n');
    out
}

/// Formats the head of a message: number, role, author and status.
pub(super) fn head(message: &Value) -> String {
    let mut head = text(&message["role"]);
    if let Some(seq) = message["seq"].as_u64() {
        head = format!("{seq} {head}");
    }
    if let Some(from) = message["from"].as_str() {
        head.push(' ');
        head.push_str(&one_line(from));
    }
    if let Some(status) = message["status"].as_str() {
        head.push_str(", ");
        head.push_str(&one_line(status));
    }
    head
}

/// Returns the text parts of a message, without the others.
pub(super) fn plain(message: &Value) -> String {
    let texts = rows(message, "parts").iter().filter(|part| is_text(part));
    texts
        .filter_map(|part| part["text"].as_str())
        .collect::<String>()
}

fn is_text(part: &Value) -> bool {
    part["type"] == "text"
}

fn part_text(part: &Value) -> String {
    let kind = text(&part["type"]);
    let said = part["text"].as_str();
    match (&kind[..], said) {
        ("text", Some(said)) => lines(said),
        ("reasoning", Some(said)) => format!("[reasoning] {}", lines(said)),
        _ if is_tool(part) => tool(&kind, part),
        ("file", _) => bracketed(
            "file",
            &[&part["filename"], &part["mediaType"], &part["url"]],
        ),
        ("source-url", _) => bracketed("source", &[&part["title"], &part["url"]]),
        _ => format!("[{kind}]"),
    }
}

/// True for tool parts of the AI SDK, calls of OpenAI, and uses and results of Anthropic.
fn is_tool(part: &Value) -> bool {
    let kind = part["type"].as_str().unwrap_or_default();
    kind.starts_with("tool-")
        || matches!(
            kind,
            "dynamic-tool" | "tool_use" | "tool_result" | "function"
        )
}

fn tool(kind: &str, part: &Value) -> String {
    let names = [&part["toolName"], &part["name"], &part["function"]["name"]];
    let name = names.iter().find_map(|name| name.as_str());
    let name = name.map(one_line).unwrap_or_else(|| {
        let kind = kind.strip_prefix("tool-").unwrap_or(kind);
        kind.to_owned()
    });
    let mut out = format!("[tool {name}");
    for (mark, members) in [
        ("", &["input", "arguments"][..]),
        ("→ ", &["output", "errorText", "content"]),
    ] {
        let function = &part["function"];
        let values = members.iter().flat_map(|it| [&part[it], &function[it]]);
        if let Some(value) = values.into_iter().find(|value| !value.is_null()) {
            out.push_str(&format!(" {mark}{}", brief(value)));
        }
    }
    out.push(']');
    out
}

/// Formats a value on one line, shortened to [`TOOL_LENGTH_MAX`].
pub(super) fn brief(value: &Value) -> String {
    let line = text(value);
    match line.char_indices().nth(TOOL_LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn bracketed(kind: &str, values: &[&Value]) -> String {
    let values = values.iter().filter(|value| value.is_string());
    let values: String = values.map(|value| format!(" {}", brief(value))).collect();
    format!("[{kind}{values}]")
}

/// Escapes the control characters of a text, except line feeds.
pub(super) fn lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(one_line).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(parts: Value, expected: &str) {
        let value = json!({ "seq": 2, "role": "user", "from": "al\x1bice", "parts": parts });
        assert_eq!(message(&value), expected);
    }

    #[test]
    fn further_lines_of_a_message_are_indented() {
        check(
            json!([{ "type": "text", "text": "one" }]),
            "2 user al\\u{1b}ice: one\n",
        );
        check(
            json!([{ "type": "text", "text": "one\n\x1b[2Jtwo" }, { "type": "text", "text": "three" }]),
            "2 user al\\u{1b}ice: one\n    \\u{1b}[2Jtwo\n    three\n",
        );
        check(json!([]), "2 user al\\u{1b}ice:\n");
    }

    #[test]
    fn tools_are_shortened() {
        check(
            json!([{ "type": "tool-weather", "input": { "city": "Ulm" }, "output": "x".repeat(300) }]),
            &format!(
                "2 user al\\u{{1b}}ice: [tool weather {{\"city\":\"Ulm\"}} → {}…]\n",
                "x".repeat(200)
            ),
        );
        check(
            json!([
                { "type": "text", "text": "Let me see" },
                { "type": "function", "id": "c", "function": { "name": "f", "arguments": "{}" } },
                { "type": "file", "filename": "a.png", "mediaType": "image/png" },
                { "type": "data-x" },
            ]),
            "2 user al\\u{1b}ice: Let me see\n    [tool f {}]\n    [file a.png image/png]\n    [data-x]\n",
        );
    }

    #[test]
    fn the_head_has_the_status_and_plain_has_only_text() {
        let value = json!({
            "seq": 3, "role": "assistant", "status": "interrupted",
            "parts": [{ "type": "text", "text": "On its" }, { "type": "reasoning", "text": "hm" }],
        });
        assert_eq!(head(&value), "3 assistant, interrupted");
        assert_eq!(plain(&value), "On its");
    }
}
