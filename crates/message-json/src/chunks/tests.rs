use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Returns the message of these lines.
fn assemble(lines: &[u8], sizes: Sizes) -> conversation_service::AssembledContent {
    let lines = lines.split(|byte| *byte == b'\n');
    super::assemble(sizes, &mut lines.filter(|line| !line.is_empty()))
}
use conversation_service::Status;

const SIZES: Sizes = Sizes {
    parts_max: 64 << 10,
    metadata_max: 1 << 10,
};

/// Adds the chunks; returns how the message ended, if it did.
fn push_all(chunks: &[Value]) -> (Assembly, Option<AuthorEnding>) {
    let mut assembly = Assembly::new(SIZES);
    let mut ended = None;
    for chunk in chunks {
        ended = assembly.push(&chunk.to_string()).unwrap();
    }
    (assembly, ended)
}

#[track_caller]
fn check(chunks: Value, parts: Value) {
    let (assembly, _) = push_all(chunks.as_array().unwrap());
    let message = assembly.message();
    let found: Value = serde_json::from_str(&message.parts).unwrap();
    assert_eq!(found, parts);
    assert_eq!(message.facts.len(), parts.as_array().unwrap().len());
}

#[test]
fn text_reasoning_and_step_chunks_become_parts() {
    check(
        json!([
            {"type": "start", "messageId": "m"},
            {"type": "start-step"},
            {"type": "reasoning-start", "id": "r"},
            {"type": "reasoning-delta", "id": "r", "delta": "Hm"},
            {"type": "reasoning-end", "id": "r", "providerMetadata": {"p": {"s": 1}}},
            {"type": "text-start", "id": "t"},
            {"type": "text-start", "id": "u"},
            {"type": "text-delta", "id": "t", "delta": "Hel\"lo"},
            {"type": "text-delta", "id": "u", "delta": "other"},
            {"type": "text-delta", "id": "t", "delta": "\n"},
            {"type": "text-end", "id": "t"},
            {"type": "finish-step"},
            {"type": "finish"},
        ]),
        json!([
            {"type": "step-start"},
            {"type": "reasoning", "id": "r", "text": "Hm", "state": "done",
                "providerMetadata": {"p": {"s": 1}}},
            {"type": "text", "text": "Hel\"lo\n", "state": "done"},
            {"type": "text", "text": "other", "state": "streaming"},
        ]),
    );
}

#[test]
fn surrogate_pair_split_across_chunks_is_joined() {
    let mut assembly = Assembly::new(SIZES);
    for chunk in [
        r#"{"type":"text-start","id":"t"}"#,
        r#"{"type":"text-delta","id":"t","delta":"\ud83d"}"#,
        r#"{"type":"text-delta","id":"t","delta":"\ude00"}"#,
    ] {
        assembly.push(chunk).unwrap();
    }
    let parts: Value = serde_json::from_str(&assembly.message().parts).unwrap();
    assert_eq!(parts[0]["text"], "😀");
}

#[test]
fn a_call_of_a_tool_becomes_one_part() {
    let begun = json!([
        {"type": "tool-input-start", "toolCallId": "c", "toolName": "weather"},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{\"city\":"},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "\"Ulm\"}"},
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "weather",
            "input": {"city": "Ulm"}, "providerExecuted": true},
        {"type": "tool-output-available", "toolCallId": "c", "output": null},
    ]);
    check(
        begun.clone(),
        json!([{"type": "tool-weather", "toolCallId": "c", "state": "output-available",
            "input": {"city": "Ulm"}, "output": null, "providerExecuted": true}]),
    );
    let part = |count: usize| json!(begun.as_array().unwrap()[..count]);
    let cut = json!([{"type": "tool-weather", "toolCallId": "c", "state": "input-streaming",
        "input": {}, "rawInput": "{\"city\":"}]);
    check(part(2), cut);
    let whole = json!([{"type": "tool-weather", "toolCallId": "c", "state": "input-streaming",
        "input": {"city": "Ulm"}, "rawInput": "{\"city\":\"Ulm\"}"}]);
    check(part(3), whole);
}

#[test]
fn tool_call_errors_denials_and_approvals_become_part_states() {
    check(
        json!([
            {"type": "tool-input-available", "toolCallId": "a", "toolName": "x", "input": 1},
            {"type": "tool-output-error", "toolCallId": "a", "errorText": "no"},
            {"type": "tool-input-error", "toolCallId": "b", "toolName": "y", "input": 2,
                "errorText": "bad", "dynamic": true},
            {"type": "tool-input-error", "toolCallId": "c", "toolName": "z", "input": 3,
                "errorText": "bad"},
            {"type": "tool-input-available", "toolCallId": "d", "toolName": "x", "input": 4},
            {"type": "tool-approval-request", "toolCallId": "d", "approvalId": "p"},
            {"type": "tool-output-denied", "toolCallId": "d"},
        ]),
        json!([
            {"type": "tool-x", "toolCallId": "a", "state": "output-error", "input": 1,
                "errorText": "no"},
            {"type": "dynamic-tool", "toolName": "y", "toolCallId": "b", "state": "output-error",
                "input": 2, "errorText": "bad"},
            {"type": "tool-z", "toolCallId": "c", "state": "output-error", "input": 3,
                "errorText": "bad"},
            {"type": "tool-x", "toolCallId": "d", "state": "output-denied", "input": 4,
                "approval": {"id": "p"}},
        ]),
    );
}

#[test]
fn data_with_an_id_replaces_earlier_data_with_that_id() {
    check(
        json!([
            {"type": "data-progress", "id": "p", "data": 1},
            {"type": "file", "url": "u", "mediaType": "image/png"},
            {"type": "data-unheard-of", "data": {"deep": [1]}},
            {"type": "data-progress", "id": "p", "data": 2},
            {"type": "data-note", "data": "gone", "transient": true},
            {"type": "something-later", "value": 7},
        ]),
        json!([
            {"type": "data-progress", "id": "p", "data": 2},
            {"type": "file", "url": "u", "mediaType": "image/png"},
            {"type": "data-unheard-of", "data": {"deep": [1]}},
            {"type": "something-later", "value": 7},
        ]),
    );
}

#[test]
fn message_metadata_are_merged_and_include_the_error() {
    let (assembly, ended) = push_all(&[
        json!({"type": "start", "messageMetadata": {"model": "m", "usage": {"in": 1}}}),
        json!({"type": "error", "errorText": "the model is gone"}),
        json!({"type": "finish", "messageMetadata": {"usage": {"out": 2}}}),
    ]);
    assert_eq!(ended.map(AuthorEnding::status), Some(Status::Aborted));
    assert_eq!(
        assembly.message().metadata,
        r#"{"error":"the model is gone","model":"m","usage":{"in":1,"out":2}}"#
    );
    let (_, ended) = push_all(&[json!({"type": "abort", "reason": "enough"})]);
    assert_eq!(ended.map(AuthorEnding::status), Some(Status::Aborted));
}

#[test]
fn metadata_other_than_objects_are_stored_as_a_value() {
    let metadata = |chunks: &[Value]| push_all(chunks).0.message().metadata;
    let start = json!({"type": "start", "messageMetadata": [7]});
    assert_eq!(metadata(std::slice::from_ref(&start)), r#"{"value":[7]}"#);
    let finish = json!({"type": "finish", "messageMetadata": {"a": 1}});
    assert_eq!(metadata(&[start, finish]), r#"{"0":7,"a":1}"#);
}

#[test]
fn a_reset_step_removes_its_parts() {
    check(
        json!([
            {"type": "start-step"},
            {"type": "text-start", "id": "t"},
            {"type": "text-delta", "id": "t", "delta": "wrong"},
            {"type": "tool-input-start", "toolCallId": "c", "toolName": "x"},
            {"type": "reset-step"},
            {"type": "text-start", "id": "t"},
            {"type": "text-delta", "id": "t", "delta": "right"},
            {"type": "text-end", "id": "t"},
        ]),
        json!([
            {"type": "step-start"},
            {"type": "text", "text": "right", "state": "done"},
        ]),
    );
}

#[test]
fn an_invalid_chunk_is_refused_and_leaves_the_message_unchanged() {
    let check = |chunk: &str, expected: &str| {
        let mut assembly = Assembly::new(SIZES);
        let before = assembly.message();
        let error = assembly.push(chunk).unwrap_err().to_string();
        assert!(error.contains(expected), "{chunk}: {error}");
        assert_eq!(assembly.message(), before);
    };
    check("[]", "invalid");
    check("{}", "missing field `type`");
    check(
        r#"{"type":"text-delat","id":"t"}"#,
        "is `text-delta` meant?",
    );
    check(
        r#"{"type":"text-delta","id":"t","delta":"x"}"#,
        "send `text-start` first",
    );
    check(r#"{"type":"text-start"}"#, "missing field `id`");
    check(
        r#"{"type":"tool-output-available","toolCallId":"c"}"#,
        "unknown tool call `c`",
    );
    check(
        r#"{"type":"tool-input-start","toolCallId":"c"}"#,
        "`toolName` is missing",
    );
    check(r#"{"type":"something-later","id":"\ud800"}"#, "chunk: ");
    check(
        r#"{"type":"tool-approval-response","approvalId":"p","approved":true}"#,
        "unknown approval request `p`",
    );
    let deep = format!(
        r#"{{"type":"data-x","data":{}1{}}}"#,
        "[".repeat(63),
        "]".repeat(63)
    );
    check(&deep, "more than 63 deep");
}

#[test]
fn chunks_beyond_the_size_limits_of_a_message_are_refused() {
    let mut assembly = Assembly::new(SIZES);
    assembly.push(r#"{"type":"text-start","id":"t"}"#).unwrap();
    let delta = json!({"type": "text-delta", "id": "t", "delta": "x".repeat(1000)}).to_string();
    let pushed = (0..100)
        .take_while(|_| assembly.push(&delta).is_ok())
        .count();
    let size_max = SIZES.parts_max;
    assert_eq!(
        assembly.push(&delta),
        Err(ChunkError::TooLarge { size_max })
    );
    let size = assembly.message().parts.len();
    assert!(size <= size_max && size > pushed * 1000 && size > size_max - 3000);

    let metadata = json!({"type": "start", "messageMetadata": {"k": "v".repeat(1 << 10)}});
    let size_max = SIZES.metadata_max;
    let refused = assembly.push(&metadata.to_string());
    assert_eq!(refused, Err(ChunkError::TooLarge { size_max }));

    let mut assembly = Assembly::new(Sizes {
        parts_max: 1 << 30,
        ..SIZES
    });
    let step = r#"{"type":"start-step"}"#;
    assert_eq!(
        (0..2000)
            .take_while(|_| assembly.push(step).is_ok())
            .count(),
        1024
    );
    assert_eq!(assembly.push(step), Err(ChunkError::TooManyParts));
}

#[test]
fn replaced_data_does_not_count_against_the_message_size() {
    let mut assembly = Assembly::new(SIZES);
    for number in 0..10_000 {
        let chunk = json!({"type": "data-progress", "id": "p", "data": number});
        assembly.push(&chunk.to_string()).unwrap();
    }
    assert!(assembly.message().parts.len() < 100);
}

#[test]
fn a_truncated_last_line_is_ignored() {
    let whole = "{\"type\":\"text-start\",\"id\":\"t\"}\n\
                 {\"type\":\"text-delta\",\"id\":\"t\",\"delta\":\"so far\"}\n";
    let expected = assemble(whole.as_bytes(), SIZES);
    let parts = String::from_utf8(expected.parts.clone()).unwrap();
    assert!(parts.contains("so far"));
    let torn = format!("{whole}{{\"type\":\"text-del");
    assert_eq!(assemble(torn.as_bytes(), SIZES), expected);
}

/// Splits a body into pieces of these sizes, repeatedly, and returns the documents.
fn split(framing: Framing, body: &[u8], sizes: &[usize]) -> Result<Vec<String>, TooLong> {
    let mut splitter = Splitter::new(framing, 64);
    let mut documents = Vec::new();
    let mut each = |document: &[u8]| {
        documents.push(String::from_utf8_lossy(document).into_owned());
        Ok(())
    };
    let (mut rest, mut sizes) = (body, sizes.iter().cycle());
    while !rest.is_empty() {
        let size = sizes.next().map_or(1, |size| (*size).clamp(1, rest.len()));
        splitter.feed(&rest[..size], &mut each)?;
        rest = &rest[size..];
    }
    splitter.finish(&mut each)?;
    Ok(documents)
}

#[test]
fn bodies_are_cut_into_documents() {
    let check = |framing, body: &str, expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
        assert_eq!(
            split(framing, body.as_bytes(), &[body.len().max(1)]),
            Ok(expected),
            "{body:?}"
        );
    };
    check(
        Framing::Lines,
        "{}\r\n\n {\"a\":1} \n[]",
        &["{}", "{\"a\":1}", "[]"],
    );
    check(
        Framing::Events,
        "data: {}\n\ndata:1\r\n\r\ndata: 2\r\rdata: 3",
        &["{}", "1", "2", "3"],
    );
    check(
        Framing::Events,
        ": hi\nevent: x\nid: 1\ndata: {\ndata: }\n\n\n",
        &["{ }"],
    );
    check(
        Framing::Events,
        "data: 1\n\ndata: [DONE]\n\ndata: 2\n\n",
        &["1"],
    );
    check(Framing::Events, "data\n\ndata: \n\nevent: x\n\n", &[]);
}

#[test]
fn a_document_above_the_size_limit_is_refused() {
    for framing in [Framing::Lines, Framing::Events] {
        let body = format!("data:{}", "x".repeat(65));
        assert_eq!(
            split(framing, body.as_bytes(), &[3]),
            Err(TooLong { size_max: 64 })
        );
        let many = "data:xxxxxxxx\n".repeat(20);
        let whole = framing == Framing::Lines;
        assert_eq!(split(framing, many.as_bytes(), &[5]).is_ok(), whole);
    }
}

/// A stream of chunks of an agent, valid or not.
fn chunk() -> impl Strategy<Value = Value> {
    let id = "[ab\\\\\"\u{1}]{1,2}";
    let text = "[a-z\\\\\"\u{1}é😀\n]{0,6}";
    prop_oneof![
        Just(json!({"type": "start-step"})),
        Just(json!({"type": "finish-step"})),
        (any::<bool>(), 0..3, id, text).prop_map(|(is_text, step, id, delta)| {
            let kind = if is_text { "text" } else { "reasoning" };
            let step = ["start", "delta", "end"][step as usize];
            json!({"type": format!("{kind}-{step}"), "id": id, "delta": delta})
        }),
        (0..8, id, text, any::<bool>()).prop_map(|(step, id, text, dynamic)| {
            let step = [
                "input-start",
                "input-delta",
                "input-available",
                "input-error",
                "approval-request",
                "output-available",
                "output-error",
                "output-denied",
            ][step as usize];
            json!({"type": format!("tool-{step}"), "toolCallId": id, "toolName": text,
                "inputTextDelta": text, "input": {"a": text}, "output": [text], "dynamic": dynamic,
                "errorText": text, "approvalId": id, "title": text, "preliminary": dynamic,
                "providerMetadata": {"p": {}}, "providerExecuted": dynamic, "toolMetadata": {}})
        }),
        (id, text).prop_map(|(id, text)| json!({"type": "data-x", "id": id, "data": text})),
        text.prop_map(|text| json!({"type": "file", "url": text})),
        text.prop_map(|text| json!({"type": "error", "errorText": text})),
        text.prop_map(|text| json!({"type": "start", "messageMetadata": {"a": text}})),
    ]
}

proptest! {
    #[test]
    fn any_chunks_leave_a_valid_message_within_its_limits(
        chunks in proptest::collection::vec(chunk(), 0..60), parts_max in 400_usize..4000,
    ) {
        let sizes = Sizes { parts_max, ..SIZES };
        let mut assembly = Assembly::new(sizes);
        let mut lines = String::new();
        for chunk in &chunks {
            let before = assembly.message();
            match assembly.push(&chunk.to_string()) {
                Ok(_) => lines += &format!("{chunk}\n"),
                Err(_) => prop_assert_eq!(assembly.message(), before),
            }
            let message = assembly.message();
            prop_assert!(message.parts.len() <= parts_max);
            let parts: Vec<Value> = serde_json::from_str(&message.parts).unwrap();
            prop_assert_eq!(parts.len(), message.facts.len());
        }
        prop_assert_eq!(assemble(lines.as_bytes(), sizes), assembly.message().into());
    }

    #[test]
    fn a_body_is_split_alike_in_pieces_of_any_size(
        body in "(data: |data:|\\{\\}|[a-c]|\n|\r|\r\n|: |\\[DONE\\]){0,40}",
        sizes in proptest::collection::vec(1_usize..9, 1..5),
        is_events in any::<bool>(),
    ) {
        let framing = if is_events { Framing::Events } else { Framing::Lines };
        let whole = split(framing, body.as_bytes(), &[body.len().max(1)]);
        prop_assert_eq!(split(framing, body.as_bytes(), &sizes), whole);
    }

    #[test]
    fn any_text_at_all_is_a_chunk_or_an_error(text in "\\PC{0,80}") {
        let mut assembly = Assembly::new(SIZES);
        if assembly.push(&text).is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
