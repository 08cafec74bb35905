//! Handlers that borrow their request and write their reply in place.

use std::io::Write;

use client::{CallError, Caller, Client, ErrorCode, Fault, Metadata, Sent, Server};
use model::ByteSize;

use crate::support::{Probe, bounded, over_every_transport};

/// A server whose handlers write a part of their reply before they fail.
fn server(noted: &Probe) -> Server {
    let noted = noted.clone();
    Server::new()
        .handle_borrowed("echo", |request, reply| {
            assert_eq!(request.method(), "echo");
            reply.extend_from_slice(request.body());
            assert_eq!(reply.size(), request.body().len());
            Ok(())
        })
        .handle_borrowed("describe", |request, reply| {
            let has_deadline = request.deadline().is_some();
            let request = request.to_request();
            let run = request.metadata().text("run").unwrap_or("none");
            write!(reply, "{} {run} {has_deadline}", request.body.len())?;
            Ok(())
        })
        .handle_borrowed("fail", |request, reply| {
            reply.extend_from_slice(request.body());
            Err(Fault::new("after the body"))
        })
        .handle_borrowed("panic", |request, reply| {
            reply.extend_from_slice(request.body());
            panic!("after the body")
        })
        .handle_borrowed("inflate", |request, reply| {
            let size: usize = std::str::from_utf8(request.body())?.parse()?;
            reply.extend_from_slice(&vec![7; size]);
            Ok(())
        })
        .handle_borrowed("note", move |_, reply| {
            reply.extend_from_slice(b"dropped");
            noted.add(1);
            Ok(())
        })
}

#[tokio::test]
async fn borrowing_handlers_answer_in_order() {
    let server = server(&Probe::default());
    bounded(over_every_transport(&server, async |caller: Caller| {
        let bodies = (0..200_usize).map(|number| vec![number as u8; number * 7]);
        let mut replies = caller.call_all("echo", bodies, 32);
        for number in 0..200_usize {
            let reply = replies.next().await.unwrap().unwrap();
            assert_eq!(reply, vec![number as u8; number * 7]);
        }
        let call = caller.call("describe", "abc");
        let reply = call.metadata(Metadata::new().with("run", "42")).await;
        assert_eq!(reply.unwrap(), "3 42 true");
    }))
    .await;
}

#[tokio::test]
async fn nothing_of_a_failed_borrowing_handlers_reply_is_sent() {
    let server = server(&Probe::default());
    bounded(over_every_transport(&server, async |caller: Caller| {
        // All are in flight at once, so that their replies lie side by side.
        let (before, failed, panicked, after) = tokio::join!(
            caller.call("echo", "before"),
            caller.call("fail", "xxxxxxxxxxxxxxxxxxxx"),
            caller.call("panic", "xxxxxxxxxxxxxxxxxxxx"),
            caller.call("echo", "after"),
        );
        let told = |error: CallError| (error.code, error.sent, error.message.clone());
        let expected = |code, message: &str| (code, Sent::Yes, message.to_owned());
        assert_eq!(before.unwrap(), "before");
        assert_eq!(
            told(failed.unwrap_err()),
            expected(ErrorCode::HandlerError, "after the body")
        );
        assert_eq!(
            told(panicked.unwrap_err()),
            expected(ErrorCode::Internal, "the handler panicked")
        );
        assert_eq!(after.unwrap(), "after");
    }))
    .await;
}

#[tokio::test]
async fn a_borrowing_handlers_reply_above_the_callers_limit_is_an_error() {
    bounded(async {
        let server = server(&Probe::default());
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let builder = Client::builder().frame_size_max(ByteSize::bytes(1000));
        let caller = builder.connect_caller(listening.address()).await.unwrap();
        let (largest, error, after) = tokio::join!(
            caller.call("inflate", "1000"),
            caller.call("inflate", "1001"),
            caller.call("echo", "after"),
        );
        assert_eq!(largest.unwrap(), [7; 1000][..]);
        assert_eq!(error.unwrap_err().code, ErrorCode::TooLarge);
        assert_eq!(after.unwrap(), "after");
    })
    .await;
}

#[tokio::test]
async fn a_stream_of_a_borrowing_handler_is_one_item() {
    let server = server(&Probe::default());
    bounded(over_every_transport(&server, async |caller: Caller| {
        let mut items = caller.stream("echo", "one");
        assert_eq!(items.next().await.unwrap().unwrap(), "one");
        assert!(items.next().await.is_none());
        let mut items = caller.stream("fail", "one");
        let error = items.next().await.unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::HandlerError);
        assert!(items.next().await.is_none());
    }))
    .await;
}

#[tokio::test]
async fn a_one_way_message_to_a_borrowing_handler_has_no_reply() {
    let noted = Probe::default();
    let server = server(&noted);
    bounded(over_every_transport(&server, async |caller: Caller| {
        let before = noted.count();
        for method in ["note", "fail", "panic", "note"] {
            caller.one_way(method, "x").await.unwrap();
        }
        noted.reaches(before + 2).await;
        assert_eq!(caller.call("echo", "after").await.unwrap(), "after");
    }))
    .await;
}
