//! Appends on the fast path: the same answers as those of the router, and the same time for a body.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::{Answer, Door, client, text_batch};

/// A conversation for each way, so that both get the same sequence numbers.
const FAST: &str = "/v1/acme/fast/conversations/c-1/messages";
const ROUTED: &str = "/v1/acme/routed/conversations/c-1/messages";

/// The header fields and the body of a request, and the status of its answer.
type Case<'a> = (&'a [(&'a str, &'a str)], String, u16);

/// Sends a request that the fast path answers.
async fn send_fast(door: &Door, headers: &[(&str, &str)], body: &str) -> Answer {
    client::ask(door.address, "POST", FAST, headers, body.as_bytes()).await
}

/// Sends the same request to the router: the fast path reads no chunked bodies.
async fn send_routed(door: &Door, headers: &[(&str, &str)], body: &str) -> Answer {
    let chunked = match body.len() {
        0 => "0\r\n\r\n".to_owned(),
        size => format!("{size:x}\r\n{body}\r\n0\r\n\r\n"),
    };
    let headers = [headers, &[("transfer-encoding", "chunked")]].concat();
    client::ask(door.address, "POST", ROUTED, &headers, chunked.as_bytes()).await
}

/// Returns everything of an answer that both ways must have in common.
fn comparable(answer: &Answer) -> (u16, Vec<(String, String)>, Value) {
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| name != "date");
    headers.sort();
    (answer.status, headers, answer.json())
}

#[tokio::test]
async fn appends_get_the_same_answers_on_the_fast_path_and_from_the_router() {
    let door = Door::open().await;
    let of_ids = |ids: &[&str]| {
        let message = |id: &&str| json!({"id": id, "role": "user", "content": "hi"});
        let messages: Vec<_> = ids.iter().map(message).collect();
        json!({ "messages": messages }).to_string()
    };
    let with_expect = |expect: u64| {
        let mut batch = text_batch("next");
        batch["expect"] = json!(expect);
        batch.to_string()
    };
    let reused = json!({"messages": [{"id": "a", "role": "user", "content": "other"}]});
    let cases: [Case<'_>; 14] = [
        (&[], of_ids(&["a"]), 201),
        (&[], of_ids(&["a"]), 200),
        (&[], of_ids(&["b", "c"]), 201),
        (&[], reused.to_string(), 409),
        (&[("if-match", "\"3\"")], of_ids(&["d"]), 201),
        (&[("if-match", "\"3\"")], of_ids(&["e"]), 412),
        (&[("if-match", "x")], of_ids(&["e"]), 400),
        (&[], with_expect(9), 412),
        (
            &[("idempotency-key", "\"k\"")],
            text_batch("x").to_string(),
            201,
        ),
        (
            &[("idempotency-key", "k")],
            text_batch("x").to_string(),
            200,
        ),
        (
            &[("idempotency-key", "a b")],
            text_batch("x").to_string(),
            400,
        ),
        (&[], "{\"messages\":[{\"rolle\":\"user\"}]}".to_owned(), 400),
        (&[], "{\"messages\":[".to_owned(), 400),
        (&[], "{\"messages\":[]}".to_owned(), 400),
    ];
    for (headers, body, status) in cases {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        let fast = send_fast(&door, &headers, &body).await;
        let routed = send_routed(&door, &headers, &body).await;
        assert_eq!(fast.status, status, "{body}: {}", fast.text());
        assert_eq!(comparable(&fast), comparable(&routed), "{headers:?} {body}");
    }
    let odd = [("content-type", "text/plain")];
    send_fast(&door, &odd, &of_ids(&["z"]))
        .await
        .problem(415, "invalid_argument");
}

#[tokio::test]
async fn pipelined_appends_are_answered_in_order_across_fast_path_and_router() {
    let door = Door::open().await;
    let append = |text: &str, rest: &str| {
        let body = text_batch(text).to_string();
        format!(
            "POST {FAST} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n{rest}\r\n{body}",
            body.len()
        )
    };
    let read = format!("GET {FAST}?limit=1 HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let all = [
        append("one", ""),
        append("two", ""),
        read,
        append("three", "connection: close\r\n"),
    ];
    let mut stream = tokio::net::TcpStream::connect(door.address).await.unwrap();
    stream.write_all(all.concat().as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let positions: Vec<_> = [
        "\"first_seq\":1,",
        "\"first_seq\":2,",
        "\"text\":\"one\"",
        "\"first_seq\":3,",
    ]
    .into_iter()
    .map(|part| text.find(part))
    .collect();
    assert!(positions.iter().all(Option::is_some), "{text}");
    assert!(positions.is_sorted(), "{text}");
}

/// Returns a connection to the node that no socket delays, so that a test can pause the time.
fn connect(door: &Door) -> DuplexStream {
    let (node, gate) = (door.node.clone(), Arc::new(door::Open));
    let routes = door_http::routes(node, gate, Arc::default(), &[], None);
    let (near, far) = tokio::io::duplex(64 << 10);
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let options = door_http::Options::default();
    tokio::spawn(door_http::serve_stream(far, peer, routes, options));
    near
}

const HEAD: &str = "POST /v1/conversations/c/messages HTTP/1.1\r\nhost: localhost\r\n\
                    content-type: application/json\r\nconnection: close\r\n\
                    content-length: 20\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_slow_head_of_an_append_ends_the_connection() {
    let mut stream = connect(&Door::open().await);
    stream.write_all(&HEAD.as_bytes()[..40]).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    assert!(bytes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_of_an_append_has_more_time_than_its_head() {
    let mut stream = connect(&Door::open().await);
    stream.write_all(HEAD.as_bytes()).await.unwrap();
    stream.write_all(b"{\"messages\"").await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    stream.write_all(b":[],,,,,}").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_an_append_that_never_arrives_is_a_timeout() {
    let mut stream = connect(&Door::open().await);
    stream.write_all(HEAD.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
}
