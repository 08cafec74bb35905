//! Invalid requests are refused with the path of the field, and nothing is appended.

use serde_json::{Value, json};

use crate::{Door, text_batch};

const PATH: &str = "/v1/conversations/c-1/messages";
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

async fn check(door: &Door, body: &str, expected: &str) {
    let answer = door.ask_with("POST", PATH, &JSON, body.as_bytes()).await;
    let detail = answer.problem(400, "invalid_argument");
    assert!(detail.contains(expected), "{body}: {detail}");
}

#[tokio::test]
async fn malformed_and_misspelt_bodies_are_refused_with_the_path() {
    let door = Door::open().await;
    for (body, expected) in [
        ("", "malformed JSON"),
        ("{\"messages\":[", "malformed JSON"),
        ("{\"messages\":[]} {}", "malformed JSON"),
        ("{\"messages\":[]}", "the batch is empty"),
        (
            "{\"mesages\":[]}",
            "`mesages`: there is no field `mesages`; is `messages` meant?",
        ),
        ("{\"messages\":{}}", "`messages`: invalid type"),
        (
            "{\"messages\":[{\"content\":\"x\"}]}",
            "`messages[0]`: missing field `role`",
        ),
        (
            "{\"messages\":[{\"role\":\"user\"}]}",
            "`messages[0]`: `parts` or `content` is missing",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":5}]}",
            "`content` must be a string or an array",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"parts\":\"x\"}]}",
            "`messages[0].parts`: parts is not an array",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"parts\":[{},7]}]}",
            "parts[1]: an object is expected",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"parts\":[],\"content\":\"x\"}]}",
            "cannot be combined",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"tokens\":-1}]}",
            "`messages[0].tokens`",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"metadata\":[]}]}",
            "metadata must be a JSON object",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"form\":\"a\"}]}",
            "is `from` meant?",
        ),
        (
            "{\"messages\":[{\"role\":\"User\",\"content\":\"x\"}]}",
            "invalid role",
        ),
        (
            "{\"messages\":[{\"id\":\"a b\",\"role\":\"user\",\"content\":\"x\"}]}",
            "invalid id",
        ),
        (
            "{\"messages\":[{\"id\":\"\",\"role\":\"user\",\"content\":\"x\"}]}",
            "invalid id",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"from\":\"a\\u0007\",\"content\":\"x\"}]}",
            "invalid author",
        ),
    ] {
        check(&door, body, expected).await;
    }
    let bytes = b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}";
    let answer = door.ask_with("POST", PATH, &JSON, bytes).await;
    answer.problem(400, "invalid_argument");
    door.get(PATH).await.problem(404, "not_found");
}

#[tokio::test]
async fn deep_json_is_refused_and_never_read_recursively() {
    let door = Door::open().await;
    let deep = |depth: usize| {
        let open = "[".repeat(depth);
        let shut = "]".repeat(depth);
        format!("{{\"messages\":[{{\"role\":\"user\",\"parts\":[{{\"x\":{open}{shut}}}]}}]}}")
    };
    check(&door, &deep(63), "objects and arrays deep").await;
    check(&door, &deep(400_000), "objects and arrays deep").await;
    let taken = door
        .ask_with("POST", PATH, &JSON, deep(62).as_bytes())
        .await;
    assert_eq!(taken.status, 201);
    let metadata = format!("{}1{}", "{\"a\":".repeat(65), "}".repeat(65));
    let body = format!(
        "{{\"messages\":[{{\"role\":\"user\",\"content\":\"x\",\"metadata\":{metadata}}}]}}"
    );
    check(&door, &body, "objects and arrays deep (limit").await;
}

#[tokio::test]
async fn batches_and_messages_above_their_limits_are_refused_with_the_limit() {
    let door = Door::open().await;
    let many: Vec<_> = (0..257)
        .map(|_| json!({"role": "user", "content": "x"}))
        .collect();
    let answer = door.ask("POST", PATH, &json!({"messages": many})).await;
    let detail = answer.problem(413, "too_large");
    assert!(
        detail.contains("too many messages in the batch (limit 256"),
        "{detail}"
    );
    let large = text_batch(&"x".repeat(1 << 20));
    door.ask("POST", PATH, &large)
        .await
        .problem(413, "too_large");
    let parts: Vec<_> = (0..1025).map(|_| json!({})).collect();
    let body = json!({"messages": [{"role": "user", "parts": parts}]});
    let answer = door.ask("POST", PATH, &body).await;
    let detail = answer.problem(400, "invalid_argument");
    assert!(detail.contains("too many parts (limit 1024)"), "{detail}");
    let metadata = json!({"a": "x".repeat(16 << 10)});
    let body = json!({"messages": [{"role": "user", "content": "x", "metadata": metadata}]});
    door.ask("POST", PATH, &body)
        .await
        .problem(413, "too_large");
    // A body is refused by what it says of itself, or when it goes on.
    let huge = vec![b' '; 10 << 20];
    door.ask_with("POST", PATH, &JSON, &huge)
        .await
        .problem(413, "too_large");
    let headers = [
        ("content-type", "application/json"),
        ("transfer-encoding", "chunked"),
    ];
    let mut chunked = format!("{:x}\r\n", huge.len()).into_bytes();
    chunked.extend_from_slice(&huge);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let answer = door.ask_with("POST", PATH, &headers, &chunked).await;
    answer.problem(413, "too_large");
    door.get(PATH).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_body_of_another_type_is_refused() {
    let door = Door::open().await;
    let body = text_batch("hi").to_string();
    let send = async |content_type: &str| {
        let headers = [("content-type", content_type)];
        door.ask_with("POST", PATH, &headers, body.as_bytes()).await
    };
    let detail = send("application/x-www-form-urlencoded")
        .await
        .problem(415, "invalid_argument");
    assert!(detail.contains("application/json"), "{detail}");
    send("text/plain").await.problem(415, "invalid_argument");
    assert_eq!(send("Application/JSON; charset=utf-8").await.status, 201);
    let untyped = door.ask_with("POST", PATH, &[], body.as_bytes()).await;
    let detail = untyped.problem(415, "invalid_argument");
    assert!(detail.contains("missing `content-type`"), "{detail}");
}

#[tokio::test]
async fn invalid_conversation_names_are_refused_and_percent_encoding_is_decoded() {
    let door = Door::open().await;
    let long = "x".repeat(129);
    for id in ["a%20b", "%c3%a9", "a%2Fb", "%00", "%ff", "a+b", "", &long] {
        let path = format!("/v1/conversations/{id}/messages");
        let answer = door.ask("POST", &path, &text_batch("x")).await;
        assert!(
            matches!(answer.status, 400 | 404),
            "{id}: {}",
            answer.text()
        );
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{id}"
        );
    }
    let path = "/v1/conversations/%41%3Ab.c_d-1/messages";
    assert_eq!(door.ask("POST", path, &text_batch("x")).await.status, 201);
    assert_eq!(
        door.get("/v1/conversations/A:b.c_d-1/messages")
            .await
            .status,
        200
    );
    let path = "/v1/telpher/system/conversations/x/messages";
    door.ask("POST", path, &text_batch("x"))
        .await
        .problem(400, "invalid_argument");
    // A namespace may be called like a route.
    let path = "/v1/conversations/messages/conversations/x/messages";
    assert_eq!(door.ask("POST", path, &text_batch("x")).await.status, 201);
}

#[tokio::test]
async fn unknown_methods_and_paths_are_answered_with_problems() {
    let door = Door::open().await;
    let answer = door.ask("PUT", PATH, &Value::Null).await;
    answer.problem(405, "invalid_argument");
    let allowed = answer.header("allow").unwrap();
    assert!(
        allowed.contains("GET") && allowed.contains("POST"),
        "{allowed}"
    );
    let answer = door.ask("OPTIONS", PATH, &Value::Null).await;
    assert_eq!(answer.status, 204);
    assert!(answer.header("allow").unwrap().contains("POST"));
    door.get("/v1/conversations/c-1/massages")
        .await
        .problem(404, "not_found");
    door.get("/v2").await.problem(404, "not_found");
    let headers = [
        ("content-type", "application/json"),
        ("transfer-encoding", "chunked"),
    ];
    let torn = door.ask_with("POST", PATH, &headers, b"zz\r\n").await;
    torn.problem(400, "invalid_argument");
}
