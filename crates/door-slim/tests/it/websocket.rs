//! The WebSocket transport: handshake, frames and close. The rest is the same as over gRPC.

use std::sync::Arc;
use std::time::Duration;

use door_slim::Options;
use messaging::Limits;
use platform::Counter;
use slim::Name;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as RawFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message as Frame};

use crate::agent::{Carrier, connect_websocket};
use crate::links::Password;
use crate::{Agent, Bench, PATIENCE, until};

async fn linked(bench: &Bench, agent: &'static str, id: u128) -> Agent {
    Agent::linked_over(bench, Carrier::WebSocket, agent, id).await
}

async fn subscribed(bench: &Bench, agent: &'static str, id: u128) -> Agent {
    Agent::subscribed_over(bench, Carrier::WebSocket, agent, id).await
}

/// The messages of one go through to the other.
async fn pass(from: &mut Agent, to: &mut Agent, payload: &[u8]) {
    from.publish(to.name(), 1, payload);
    assert_eq!(to.received().await.payload, payload);
}

#[tokio::test]
async fn applications_over_grpc_and_websockets_exchange_messages() {
    let bench = Bench::new().await;
    let mut over_grpc = Agent::subscribed(&bench, "grpc", 1).await;
    let mut one = subscribed(&bench, "one", 2).await;
    let mut other = subscribed(&bench, "other", 3).await;
    for size in [0, 1, 100, 65_000, 70_000, 1_000_000] {
        let payload = vec![7; size];
        pass(&mut one, &mut other, &payload).await;
        pass(&mut over_grpc, &mut one, &payload).await;
        pass(&mut other, &mut over_grpc, &payload).await;
    }
    let shown = bench.node.messaging().connections();
    assert!(shown.iter().all(|connection| connection.door == "slim"));
    assert_eq!(shown.len(), 3);
}

#[tokio::test]
async fn messages_of_mixed_sizes_arrive_in_order() {
    let bench = Bench::new().await;
    let mut a = linked(&bench, "a", 1).await;
    let mut b = subscribed(&bench, "b", 2).await;
    let size = |index: u8| if index.is_multiple_of(3) { 40_000 } else { 20 };
    for index in 0..60 {
        a.publish(b.name(), 1, &vec![index; size(index)]);
    }
    for index in 0..60 {
        assert_eq!(b.received().await.payload, vec![index; size(index)]);
    }
}

#[tokio::test]
async fn a_message_may_come_in_several_frames_with_a_ping_between_them() {
    let bench = Bench::new().await;
    let mut a = linked(&bench, "a", 1).await;
    let mut b = subscribed(&bench, "b", 2).await;
    let message = a.publication(b.name(), b"in pieces");
    let (first, second) = message.split_at(10);
    let part = |bytes: &[u8], data, is_final| {
        let bytes = Bytes::copy_from_slice(bytes);
        Frame::Frame(RawFrame::message(bytes, OpCode::Data(data), is_final))
    };
    a.send_frame(part(first, Data::Binary, false));
    a.send_frame(Frame::Ping(Bytes::from_static(b"there?")));
    a.send_frame(part(second, Data::Continue, true));
    assert_eq!(b.received().await.payload, b"in pieces");
    assert_eq!(a.frame().await, Frame::Pong(Bytes::from_static(b"there?")));
}

#[tokio::test]
async fn a_text_frame_ends_only_its_own_websocket() {
    let bench = Bench::new().await;
    let mut a = linked(&bench, "a", 1).await;
    let mut b = linked(&bench, "b", 2).await;
    let mut c = subscribed(&bench, "c", 3).await;
    a.send_frame(Frame::text("hello"));
    // Unsupported data.
    assert_eq!(a.end().await, "1003");
    bench.counted(Counter::ProtocolErrors, 1).await;
    pass(&mut b, &mut c, b"unharmed").await;
}

#[tokio::test]
async fn invalid_websocket_frames_end_the_websocket() {
    let bench = Bench::new().await;
    let bad: [&[u8]; 4] = [
        // Without a mask, with a reserved bit, the end of nothing, more than any memory holds.
        &[0x82, 1, 7],
        &[0xc2, 0x80, 0, 0, 0, 0],
        &[0x80, 0x80, 0, 0, 0, 0],
        &[0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    for (count, bytes) in (1..).zip(bad) {
        let mut socket = connect_websocket(&bench, "/", ("", "")).await.unwrap();
        socket.get_mut().write_all(bytes).await.unwrap();
        // Protocol error.
        assert_eq!(Agent::of_socket(socket).end().await, "1002");
        bench.counted(Counter::ProtocolErrors, count).await;
    }
    until("all to have gone", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
}

#[tokio::test]
async fn a_message_above_the_limit_is_counted_and_skipped() {
    let options = Options {
        message_size_max: 1000,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut a = linked(&bench, "a", 1).await;
    let mut b = subscribed(&bench, "b", 2).await;
    a.publish(b.name(), 1, &[7; 100_000]);
    pass(&mut a, &mut b, b"small").await;
    assert_eq!(bench.count(Counter::Oversize), 1);
}

#[tokio::test]
async fn a_websocket_without_a_valid_negotiation_is_closed() {
    let bench = Bench::new().await;
    let mut agent = Agent::open_socket(&bench).await;
    agent.send(b"no message");
    // Protocol error.
    assert_eq!(agent.end().await, "1002");
    assert_eq!(bench.count(Counter::ProtocolErrors), 1);
    let negotiation_timeout = Duration::from_secs(1);
    let options = Options {
        negotiation_timeout,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    // Policy.
    assert_eq!(Agent::open_socket(&bench).await.end().await, "1008");
    // Nor does the node wait for an incomplete handshake.
    let mut silent = TcpStream::connect(bench.address).await.unwrap();
    silent.write_all(b"GET / HT").await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, silent.read_buf(&mut answer));
    assert!(matches!(read.await.unwrap(), Ok(0) | Err(_)));
    until("all to have gone", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
}

#[tokio::test]
async fn requests_other_than_websocket_upgrades_are_answered_426() {
    let bench = Bench::new().await;
    let page = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let asked = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\n\
                 Upgrade: websocket\r\nSec-WebSocket-Version: 8\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    for (request, count) in [(page, 1), (asked, 2)] {
        let answer = response_head(&bench, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
        assert!(answer.contains("sec-websocket-version: 13"), "{answer}");
        bench.counted(Counter::ProtocolErrors, count).await;
    }
    let endless = [b"GET /".as_slice(), &[b'a'; 64 << 10]].concat();
    let answer = response_head(&bench, &endless).await;
    assert!(!answer.starts_with("HTTP/1.1 1"), "{answer}");
    bench.counted(Counter::ProtocolErrors, 3).await;
    // What a specification gives as an example (RFC 6455, 1.3).
    let answer = response_head(
        &bench,
        asked.replace("Version: 8", "Version: 13").as_bytes(),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    let accepted = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    assert!(answer.contains(accepted), "{answer}");
}

/// The head of what the door says to those bytes, if it says anything before it hangs up.
async fn response_head(bench: &Bench, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(bench.address).await.unwrap();
    // It may have hung up before it has read all of it.
    let _ = socket.write_all(bytes).await;
    let mut answer = Vec::new();
    let reading = async {
        while !has_head(&answer) && socket.read_buf(&mut answer).await.unwrap_or(0) > 0 {}
    };
    timeout(PATIENCE, reading).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn has_head(answer: &[u8]) -> bool {
    answer.windows(4).any(|bytes| bytes == b"\r\n\r\n")
}

fn refused(error: &Error) -> u16 {
    match error {
        Error::Http(response) => response.status().as_u16(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_token_is_accepted_in_the_header_or_the_query() {
    let bench = Bench::with(Options::default(), Limits::default(), Arc::new(Password)).await;
    for (path, shown) in [("/", ""), ("/", "Bearer wrong"), ("/?token=wrong", "")] {
        let error = match shown {
            "" => connect_websocket(&bench, path, ("", "")).await.unwrap_err(),
            shown => connect_websocket(&bench, path, ("authorization", shown))
                .await
                .unwrap_err(),
        };
        assert_eq!(refused(&error), 401, "{path} {shown}");
    }
    assert_eq!(bench.count(Counter::Unauthenticated), 3);
    for (path, header) in [
        ("/", ("authorization", "Bearer secret")),
        ("/data?for=us&token=secret", ("", "")),
        ("/?token=secret", ("origin", "https://elsewhere.example")),
    ] {
        let socket = connect_websocket(&bench, path, header).await.unwrap();
        Agent::of_socket(socket).negotiated("a", 1).await;
    }
}

#[tokio::test]
async fn without_tokens_only_pages_of_loopback_origins_are_accepted() {
    let bench = Bench::new().await;
    for origin in [
        "https://elsewhere.example",
        "http://localhost.example:80",
        "null",
    ] {
        for path in ["/", "/?token=anything"] {
            let error = connect_websocket(&bench, path, ("origin", origin))
                .await
                .unwrap_err();
            assert_eq!(refused(&error), 403, "{origin}");
        }
    }
    for origin in [
        "http://localhost:3000",
        "http://127.0.0.1",
        "https://[::1]:8443",
    ] {
        connect_websocket(&bench, "/", ("origin", origin))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_full_node_answers_503_and_a_shutdown_closes_with_1001() {
    let limits = Limits {
        connections_max: 1,
        ..Limits::default()
    };
    let bench = Bench::with(Options::default(), limits, Arc::new(door::Open)).await;
    let agent = subscribed(&bench, "a", 1).await;
    let error = connect_websocket(&bench, "/", ("", "")).await.unwrap_err();
    assert_eq!(refused(&error), 503);
    bench.node.messaging().drain(1000);
    // Going away.
    assert_eq!(agent.end().await, "1001");
    until("it to have gone", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
}

#[tokio::test]
async fn a_close_is_answered_and_a_lost_websocket_is_unsubscribed() {
    let bench = Bench::new().await;
    let mut closing = subscribed(&bench, "closing", 1).await;
    let mut vanishing = subscribed(&bench, "vanishing", 2).await;
    closing.send_frame(Frame::Close(None));
    let Frame::Close(Some(answer)) = closing.frame().await else {
        panic!("no end");
    };
    assert_eq!(answer.code, CloseCode::Normal);
    drop(closing);
    until("its subscription to end", || {
        bench.door.subscription_count() == 1
    })
    .await;
    let begun = RawFrame::message(vec![7; 100], OpCode::Data(Data::Binary), false);
    vanishing.send_frame(Frame::Frame(begun));
    drop(vanishing);
    until("its subscription to end", || {
        bench.door.subscription_count() == 0
    })
    .await;
    until("both to have gone", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
}

#[tokio::test]
async fn a_client_that_answers_no_pings_is_closed_and_others_stay() {
    let keepalive = Duration::from_millis(50);
    let options = Options {
        keepalive,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut there = linked(&bench, "there", 1).await;
    // Its frames are not read, so no ping is answered.
    let gone = subscribed(&bench, "gone", 2).await;
    while bench.count(Counter::Silent) == 0 {
        assert!(there.frame().await.is_ping());
    }
    assert_eq!(bench.count(Counter::Silent), 1);
    assert_eq!(
        there
            .subscribe(Name::new(["org", "ns", "still"], None))
            .await,
        None
    );
    until("its subscription to end", || {
        bench.door.subscription_count() == 1
    })
    .await;
    drop(gone);
}

#[tokio::test]
async fn a_websocket_left_open_after_its_close_frame_is_cut_off() {
    let options = Options {
        negotiation_timeout: Duration::from_secs(1),
        // It is never asked for a sign of life.
        keepalive: Duration::from_secs(24 * 60 * 60),
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut closing = subscribed(&bench, "closing", 1).await;
    let mut refused = linked(&bench, "refused", 2).await;
    let mut dismissed = linked(&bench, "dismissed", 3).await;
    closing.send_frame(Frame::Close(None));
    refused.send_frame(Frame::text("hello"));
    bench.counted(Counter::ProtocolErrors, 1).await;
    bench.node.messaging().close_all();
    // Each has its end, and keeps its side open.
    for agent in [&mut closing, &mut refused, &mut dismissed] {
        assert!(agent.frame().await.is_close());
    }
    until("all to have gone", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
    assert_eq!(bench.count(Counter::Silent), 0);
}
