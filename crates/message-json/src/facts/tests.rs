use conversation_service::{Stub, call_hash};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn facts(parts: &str) -> Result<Vec<PartFact>, String> {
    let mut facts = Vec::new();
    extract(parts.as_bytes(), &mut facts).map_err(|error| error.to_string())?;
    Ok(facts)
}

/// Asserts the kind of one part and the id of its call.
#[track_caller]
fn check(part: &str, kind: PartKind, call: Option<&str>) {
    let size = u32::try_from(part.len()).unwrap();
    let call = call.map_or(0, call_hash);
    let expected = vec![PartFact {
        kind,
        size,
        call,
        stub: Stub::NONE,
    }];
    assert_eq!(facts(&format!("[{part}]")), Ok(expected), "{part}");
}

#[test]
fn parts_of_the_ai_sdk_are_classified() {
    check(r#"{"type":"text","text":"Hi\n"}"#, PartKind::Text, None);
    check(
        r#"{"type":"reasoning","text":""}"#,
        PartKind::Reasoning,
        None,
    );
    check(r#"{"type":"file","url":"data:,"}"#, PartKind::File, None);
    check(r#"{"type":"source-url","url":"x"}"#, PartKind::Source, None);
    check(
        r#"{"type":"data-weather","data":{"type":7},"id":5}"#,
        PartKind::Data,
        None,
    );
    check(r#"{"type":"step-start"}"#, PartKind::Other, None);
    let part = r#"{"type":"tool-search","toolCallId":"c1","state":"output-available","output":1}"#;
    check(part, PartKind::ToolPair, Some("c1"));
    let part = r#"{"type":"dynamic-tool","toolCallId":"c1","state":"input-streaming"}"#;
    check(part, PartKind::ToolCall, Some("c1"));
    let part = r#"{"type":"tool-invocation","toolInvocation":{"toolCallId":"c1"}}"#;
    check(part, PartKind::ToolPair, Some("c1"));
    // A model message has calls and results apart; a tool named `call` has a state.
    check(
        r#"{"type":"tool-call","toolCallId":"c1"}"#,
        PartKind::ToolCall,
        Some("c1"),
    );
    check(
        r#"{"type":"tool-result","toolCallId":"c1"}"#,
        PartKind::ToolResult,
        Some("c1"),
    );
    let part = r#"{"type":"tool-call","toolCallId":"c1","state":"input-available"}"#;
    check(part, PartKind::ToolCall, Some("c1"));
}

#[test]
fn parts_of_openai_and_anthropic_are_classified() {
    check(
        r#"{"id":"c1","type":"function","function":{}}"#,
        PartKind::ToolCall,
        Some("c1"),
    );
    check(
        r#"{"tool_calls":[{"id":"c1"}]}"#,
        PartKind::ToolCall,
        Some("c1"),
    );
    check(
        r#"{"tool_call_id":"c1","content":"4"}"#,
        PartKind::ToolResult,
        Some("c1"),
    );
    check(
        r#"{"type":"function_call","call_id":"c1"}"#,
        PartKind::ToolCall,
        Some("c1"),
    );
    let part = r#"{"type":"function_call_output","call_id":"c1"}"#;
    check(part, PartKind::ToolResult, Some("c1"));
    check(r#"{"type":"input_image"}"#, PartKind::File, None);
    check(
        r#"{"type":"tool_use","id":"c\u0031"}"#,
        PartKind::ToolCall,
        Some("c1"),
    );
    check(
        r#"{"type":"tool_result","tool_use_id":"c1"}"#,
        PartKind::ToolResult,
        Some("c1"),
    );
    let part = r#"{"type":"web_search_tool_result","tool_use_id":"c1"}"#;
    check(part, PartKind::ToolResult, Some("c1"));
    check(r#"{"type":"thinking"}"#, PartKind::Reasoning, None);
    check(r#"{"text":"no type"}"#, PartKind::Text, None);
    check(r#"{}"#, PartKind::Other, None);
}

#[test]
fn fields_of_unexpected_types_are_ignored() {
    let part = r#"{"type":"data-x","id":[[1]],"state":{"a":1},"toolCallId":null,"call_id":true}"#;
    check(part, PartKind::Data, None);
    check(r#"{"type":"tool_use","id":-7}"#, PartKind::ToolCall, None);
    check(r#"{"type":"x","tool_calls":"none"}"#, PartKind::Other, None);
    check(r#"{"type":"text","text":"\ud800"}"#, PartKind::Text, None);
}

#[test]
fn invalid_parts_are_refused_with_their_path() {
    let check = |parts: &str, expected: &str| {
        let error = facts(parts).unwrap_err();
        assert!(error.contains(expected), "{parts}: {error}");
    };
    check("{}", "parts is not an array");
    check("[{}", "parts is not an array");
    check("[{}] x", "parts is not an array");
    check(
        r#"[{},"a"]"#,
        "parts[1]: an object is expected, found a text",
    );
    check("[1]", "found a number");
    check(r#"[{"type":1}]"#, "parts[0].type: a text is expected");
    let two = r#"[{"tool_calls":[{"id":"a"},{"id":"b"}]}]"#;
    check(
        two,
        "parts[0].tool_calls holds 2 calls: write each as a part of its own",
    );
    check(
        &format!("[{}{}]", r#"{"a":"#.repeat(64), "1"),
        "65 objects and arrays deep",
    );
    check(
        &format!("[{}{{}}]", "{},".repeat(PARTS_MAX)),
        "too many parts (limit 1024)",
    );
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\\-_\"\\\\é\n]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map(key(), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("type".to_owned()),
        Just("id".to_owned()),
        Just("tool_calls".to_owned()),
        Just("toolCallId".to_owned()),
        Just("toolInvocation".to_owned()),
        "[a-z]{1,4}",
    ]
}

proptest! {
    #[test]
    fn facts_have_the_sizes_of_their_parts(parts in proptest::collection::vec(
        proptest::collection::btree_map(key(), value(), 0..6), 0..8))
    {
        let texts: Vec<String> = parts.iter().map(|part| json!(part).to_string()).collect();
        let several = |part: &Value| part.as_array().is_some_and(|calls| calls.len() > 1);
        match facts(&format!(" [ {} ] ", texts.join(" , "))) {
            Ok(facts) => {
                let sizes: Vec<_> = facts.iter().map(|fact| fact.size as usize).collect();
                let expected: Vec<_> = texts.iter().map(String::len).collect();
                prop_assert_eq!(sizes, expected);
            }
            Err(error) => prop_assert!(
                parts.iter().any(|part| part.get("type").is_some_and(|kind| !kind.is_string())
                    || part.get("tool_calls").is_some_and(several)),
                "{error}"
            ),
        }
    }

    #[test]
    fn any_bytes_at_all_are_parts_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut facts = Vec::new();
        if extract(&bytes, &mut facts).is_ok() {
            prop_assert!(serde_json::from_slice::<Vec<Value>>(&bytes).is_ok());
        }
    }
}

#[test]
fn a_tool_part_without_a_result_is_a_call() {
    let check = |rest: &str, expected: PartKind| {
        for kind in ["dynamic-tool", "tool-search"] {
            let part = format!(r#"{{"type":"{kind}","toolCallId":"c1"{rest}}}"#);
            assert_eq!(of_part(&part).unwrap().kind, expected, "{part}");
        }
    };
    for (rest, expected) in [
        (
            r#","state":"input-streaming","input":{}"#,
            PartKind::ToolCall,
        ),
        (
            r#","state":"input-available","input":{}"#,
            PartKind::ToolCall,
        ),
        (
            r#","state":"approval-requested","approval":{"id":"a"}"#,
            PartKind::ToolCall,
        ),
        (
            r#","state":"approval-responded","approval":{"id":"a","approved":true}"#,
            PartKind::ToolCall,
        ),
        (
            r#","state":"approval-responded","approval":{"id":"a","approved":false}"#,
            PartKind::ToolPair,
        ),
        (
            r#","state":"output-available","output":null"#,
            PartKind::ToolPair,
        ),
        (
            r#","state":"output-error","errorText":"no""#,
            PartKind::ToolPair,
        ),
        (r#","state":"output-denied""#, PartKind::ToolPair),
        (r#","output":1"#, PartKind::ToolPair),
        ("", PartKind::ToolCall),
    ] {
        check(rest, expected);
    }
    for (state, expected) in [("call", PartKind::ToolCall), ("result", PartKind::ToolPair)] {
        let part = format!(
            r#"{{"type":"tool-invocation","toolInvocation":{{"toolCallId":"c1","state":"{state}"}}}}"#
        );
        assert_eq!(of_part(&part).unwrap().kind, expected, "{part}");
    }
    for (part, expected) in [
        (
            r#"{"type":"computer_call","call_id":"c1"}"#,
            PartKind::ToolCall,
        ),
        (
            r#"{"type":"computer_call_output","call_id":"c1"}"#,
            PartKind::ToolResult,
        ),
        (r#"{"type":"web_search_call","id":"w"}"#, PartKind::Other),
    ] {
        assert_eq!(of_part(part).unwrap().kind, expected, "{part}");
    }
}

#[test]
fn plain_text_has_the_facts_that_the_parser_finds() {
    let long = "x".repeat(1_000);
    let check = |part: &str| {
        let valid: &serde_json::value::RawValue = serde_json::from_str(part).unwrap();
        assert_eq!(part::read_valid(valid), of_part(part), "{part}");
    };
    for text in [
        "",
        "Hi",
        "a \\ \" é \n",
        &long,
        "\\",
        "}",
        "\"}",
        "\",\"id\":\"c",
    ] {
        let text = json!(text).to_string();
        check(&format!(r#"{{"type":"text","text":{text}}}"#));
        check(&format!(r#"{{"type":"text","text":{text} }}"#));
        check(&format!(r#"{{"type":"text","text":{text},"id":"c"}}"#));
        check(&format!(
            r#"{{"type":"text","text":{text},"tool_call_id":"c"}}"#
        ));
        check(&format!(r#"{{"type":"text","text":{text},"type":"file"}}"#));
        check(&format!(r#"{{"text":{text},"type":"text"}}"#));
    }
    check(r#"{"type":"text","text":"\ud800"}"#);
    check(r#"{"type":"text","text":7}"#);
}

proptest! {
    #[test]
    fn any_text_has_the_facts_that_the_parser_finds(text in "[a-z\\\\\"{}é\n]{0,600}") {
        let part = json!({"type": "text", "text": text}).to_string();
        let sorted = format!(r#"{{"type":"text","text":{}}}"#, json!(text));
        for part in [part, sorted] {
            let valid: &serde_json::value::RawValue = serde_json::from_str(&part).unwrap();
            prop_assert_eq!(part::read_valid(valid), of_part(&part));
        }
    }
}

/// Returns the facts that the parser finds.
fn parsed(parts: &str) -> Result<Vec<PartFact>, String> {
    // A space in front keeps the parts from being read without the parser.
    facts(&format!(" {parts}"))
}

#[test]
fn single_text_is_valid_only_if_the_parser_accepts_it() {
    let long = "x".repeat(100);
    let end = r#""}]"#;
    for text in [
        "",
        "Hi",
        &long,
        r#"\n\"\\\/\b\f\r\t"#,
        r"\u00e9\ud800 é",
        r"\x",
        r"\u00g0",
        r"\u00",
        r"\",
        r"\\",
        "\n",
        "\u{1f}",
        "\u{7f}",
        "a\"b",
        end,
        &format!("{long}\t{long}"),
        &format!("{long}\\t{long}"),
    ] {
        for parts in [
            format!(r#"[{{"type":"text","text":"{text}"}}]"#),
            format!(r#"[{{"type":"text","text":"{text}"}}"#),
            format!(r#"[{{"type":"text","text":"{text}"]"#),
            format!(r#"[{{"type":"text","text":"{text}"}},{{"text":""}}]"#),
            format!(r#"[{{"type":"text","text":"{text}"}}{{"text":""}}]"#),
            format!(r#"[{{"type":"text","text":"{text}"}}]]"#),
            format!(r#"[{{"type":"text","text":"{text}"}}] "#),
            format!(r#"[{{"type":"text","text":"{text}","id":""}}]"#),
        ] {
            match (facts(&parts), parsed(&parts)) {
                (Err(_), Err(_)) => {}
                (read, expected) => assert_eq!(read, expected, "{parts}"),
            }
        }
    }
    let invalid = b"[{\"type\":\"text\",\"text\":\"\xff\"}]";
    assert!(extract(invalid, &mut Vec::new()).is_err());
}

proptest! {
    #[test]
    fn any_single_text_is_read_as_by_the_parser(text in r#"([a-zé]{0,40}|[\\"\x00-\x22/bfnrtu}\]]{0,3}|\\u[0-9a-g]{4}){0,4}"#) {
        let parts = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
        match (facts(&parts), parsed(&parts)) {
            (Err(_), Err(_)) => {}
            (read, expected) => prop_assert_eq!(read, expected),
        }
    }
}
