//! Calls and one-way messages over HTTP.

use door_testing::until;
use model::{ErrorCode, Failure};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use wire::{Metadata, encode_metadata};

use super::Worker;
use crate::{Door, Events};

const REQUEST: &str = "/v1/acme/demo/agents/upper/request";

#[tokio::test]
async fn a_call_passes_body_and_metadata_unchanged_in_both_directions() {
    let door = Door::open().await;
    let mut worker = Worker::subscribe(&door, "acme/demo/upper");
    let headers = [
        ("content-type", "application/x-thing"),
        ("telpher-name", "acme/demo/asker"),
        ("telpher-metadata-tenant", "seven"),
    ];
    let path = format!("{REQUEST}/shout?timeout_ms=5000");
    let asking = door.ask_with("POST", &path, &headers, b"\x00{not json");
    let answering = async {
        let request = worker.next().await;
        assert_eq!((request.kind, &*request.method), ("request", "shout"));
        assert_eq!(request.source.as_deref(), Some("acme/demo/asker"));
        assert_eq!(request.body, b"\x00{not json");
        assert_eq!(request.deadline_ms, Some(5_000));
        let metadata = Metadata::new(&request.metadata);
        assert_eq!(metadata.get("content-type"), Some(headers[0].1.as_bytes()));
        assert_eq!(metadata.get("tenant"), Some(&b"seven"[..]));
        let mut metadata = Vec::new();
        encode_metadata("content-type", b"text/csv", &mut metadata);
        encode_metadata("mood", b"loud", &mut metadata);
        worker.reply(request.ticket, false, &metadata, b"a,b\xff");
    };
    let (answer, ()) = tokio::join!(asking, answering);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/csv"));
    assert_eq!(answer.header("telpher-metadata-mood"), Some("loud"));
    assert_eq!(answer.body, b"a,b\xff");
    assert_eq!(door.node.messaging().connection_count(), 1);
}

#[tokio::test]
async fn a_failed_call_has_the_code_of_its_failure() {
    let door = Door::open().await;
    let ask = || door.ask_with("POST", REQUEST, &[], b"x");
    ask().await.problem(404, "no_responder");
    let mut worker = Worker::with_calls(&door, "acme/demo/upper", 1);
    let answering = async {
        let request = worker.next().await;
        // The only call that the worker accepts is taken.
        ask().await.problem(503, "busy");
        let failure = Failure {
            retry_after_ms: 250,
            details: b"{\"line\":7}",
            ..Failure::new(ErrorCode::HandlerError, "no such thing")
        };
        worker.fail(request.ticket, failure);
    };
    let (answer, ()) = tokio::join!(ask(), answering);
    assert_eq!(answer.problem(502, "handler_error"), "no such thing");
    let problem = answer.json();
    assert_eq!(
        (&problem["sent"], &problem["retry_ms"]),
        (&true.into(), &250.into())
    );
    assert_eq!(problem["details"], "{\"line\":7}");
    for (path, detail) in [
        ("?timeout_ms=0", "`timeout_ms` is 0: use 1 to 600000"),
        (
            "?timeout_ms=600001",
            "`timeout_ms` is 600001: use 1 to 600000",
        ),
        (
            "?timeout=1",
            "the query: there is no field `timeout`; is `timeout_ms` meant?",
        ),
    ] {
        let path = format!("{REQUEST}{path}");
        let answer = door.ask_with("POST", &path, &[], b"").await;
        assert_eq!(answer.problem(400, "invalid_argument"), detail);
    }
    let path = format!("{REQUEST}/{}", "m".repeat(256));
    let answer = door.ask_with("POST", &path, &[], b"").await;
    answer.problem(400, "invalid_argument");
}

#[tokio::test]
async fn a_call_ends_at_its_deadline_and_the_responder_gets_cancel() {
    let door = Door::open().await;
    let worker = Worker::subscribe(&door, "acme/demo/upper");
    let headers = [("telpher-timeout-ms", "700")];
    let asking = door.ask_with("POST", REQUEST, &headers, b"x");
    let passing = async {
        let request = worker.next().await;
        assert_eq!(request.deadline_ms, Some(700));
        door.pass_ms(701);
        door.node.sweep();
        let cancel = worker.next().await;
        assert_eq!((cancel.kind, cancel.ticket), ("cancel", request.ticket));
    };
    let (answer, ()) = tokio::join!(asking, passing);
    answer.problem(504, "deadline_exceeded");
    assert_eq!(answer.json()["sent"], true);
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_call() {
    let door = Door::open().await;
    let worker = Worker::subscribe(&door, "acme/demo/upper");
    for accept in ["*/*", "text/event-stream"] {
        let mut stream = TcpStream::connect(door.address).await.unwrap();
        let head = format!(
            "POST {REQUEST} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n\
             content-length: 1\r\n\r\nx"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let request = worker.next().await;
        drop(stream);
        let cancel = worker.next().await;
        assert_eq!((cancel.kind, cancel.ticket), ("cancel", request.ticket));
    }
    let messaging = door.node.messaging();
    until("the end of the callers", || {
        messaging.connection_count() == 1
    })
    .await;
}

#[tokio::test]
async fn a_streamed_answer_is_events_and_returns_credit() {
    let door = Door::open().await;
    let mut worker = Worker::subscribe(&door, "acme/demo/upper");
    let headers = [("accept", "text/event-stream"), ("content-length", "0")];
    let opening = Events::open_with(door.address, "POST", REQUEST, &headers);
    let (mut events, request) = tokio::join!(opening, worker.next());
    assert_eq!(request.kind, "stream");
    for index in 0..32_u8 {
        worker.reply(request.ticket, true, &[], &[b'a', index]);
    }
    for index in 0..32_u8 {
        let event = events.next().await;
        assert_eq!(event.kind, "item");
        let body = String::from_utf8(vec![b'a', index]).unwrap();
        assert_eq!(event.json(), serde_json::json!({ "body": body }));
    }
    let credit = worker.next().await;
    assert_eq!((credit.kind, credit.items), ("credit", 32));
    let mut metadata = Vec::new();
    encode_metadata("n", b"1", &mut metadata);
    worker.reply(request.ticket, true, &metadata, b"\xff");
    let expected = serde_json::json!({"metadata": {"n": "1"}, "body_base64": "/w=="});
    assert_eq!(events.next().await.json(), expected);
    worker.reply(request.ticket, false, &[], b"");
    assert_eq!(events.next().await.kind, "end");
}

#[tokio::test]
async fn a_streamed_answer_may_be_whole_or_fail() {
    let door = Door::open().await;
    let mut worker = Worker::subscribe(&door, "acme/demo/upper");
    let headers = [("accept", "text/event-stream"), ("content-length", "0")];
    let open = || Events::open_with(door.address, "POST", REQUEST, &headers);
    let (mut events, request) = tokio::join!(open(), worker.next());
    worker.reply(request.ticket, false, &[], b"all of it");
    assert_eq!(events.next().await.json()["body"], "all of it");
    assert_eq!(events.next().await.kind, "end");
    let (mut events, request) = tokio::join!(open(), worker.next());
    worker.fail(request.ticket, Failure::new(ErrorCode::Busy, "later"));
    let event = events.next().await;
    assert_eq!(
        (&*event.kind, &event.json()["code"]),
        ("error", &"busy".into())
    );
    // Without the header, an agent that streams its answer is told apart.
    let asking = door.ask_with("POST", REQUEST, &[], b"");
    let answering = async {
        let request = worker.next().await;
        worker.reply(request.ticket, true, &[], b"one");
        let cancel = worker.next().await;
        assert_eq!((cancel.kind, cancel.ticket), ("cancel", request.ticket));
    };
    let (answer, ()) = tokio::join!(asking, answering);
    answer.problem(400, "invalid_argument");
}

#[tokio::test]
async fn a_one_way_message_reaches_one_or_all_instances() {
    let door = Door::open().await;
    let workers = ["a", "b"].map(|it| Worker::subscribe(&door, &format!("acme/demo/upper/{it}")));
    let send = async |query: &str| {
        let path = format!("/v1/acme/demo/agents/upper/send{query}");
        let answer = door.ask_with("POST", &path, &[], b"hi").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let copies = |delivered: u32| serde_json::json!({"delivered": delivered, "dropped": 0});
    assert_eq!(send("?all=true&method=note").await, copies(2));
    for worker in &workers {
        let message = worker.next().await;
        assert_eq!((message.kind, &*message.method), ("send", "note"));
        assert_eq!(message.body, b"hi");
    }
    assert_eq!(send("?instance=b").await, copies(1));
    assert_eq!(workers[1].next().await.kind, "send");
    assert_eq!(send("").await, copies(1));
    assert_eq!(send("?instance=c").await, copies(0));
}
