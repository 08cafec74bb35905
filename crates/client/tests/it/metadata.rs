//! Metadata of calls: trace context, the sender's name, error details.

use std::time::Duration;

use client::{Caller, Cast, ErrorCode, Fault, Metadata, Sent, Server, SubscribeOptions};

use crate::support::{Node, Probe, bounded, echo, name, over_every_transport};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Replies with the metadata of the request.
fn metadata_echo_server() -> Server {
    Server::new().handle("mirror", |request: client::Request| async move {
        let entries = request.metadata().iter();
        let entries =
            entries.map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(value)));
        Ok(entries.collect::<Vec<_>>().join(";"))
    })
}

#[tokio::test]
async fn metadata_and_the_trace_context_pass_through() {
    bounded(over_every_transport(
        &metadata_echo_server(),
        async |caller: Caller| {
            assert_eq!(caller.call("mirror", "").await.unwrap(), "");
            let metadata = Metadata::new()
                .with("run", "42")
                .with("empty", "")
                .with("run", "43");
            let reply = caller.call("mirror", "").metadata(metadata.clone()).await;
            assert_eq!(reply.unwrap(), "run=42;empty=;run=43");
            let reply = caller.call("mirror", "").traceparent(TRACE).await;
            assert_eq!(reply.unwrap(), format!("traceparent={TRACE}"));
            let call = caller
                .call("mirror", "")
                .metadata(metadata)
                .traceparent(TRACE);
            let reply = call.await.unwrap();
            assert_eq!(reply, format!("run=42;empty=;run=43;traceparent={TRACE}"));
            let large = Metadata::new().with("large", vec![b'x'; 60_000]);
            let reply = caller
                .call("mirror", "")
                .metadata(large.clone())
                .await
                .unwrap();
            assert_eq!(reply.len(), "large=".len() + 60_000);
            let mut items = caller
                .stream("mirror", "")
                .metadata(Metadata::new().with("a", "b"));
            assert_eq!(items.next().await.unwrap().unwrap(), "a=b");
            let mut all = caller.call_all("mirror", ["", ""], 2);
            all = all.metadata(Metadata::new().with("c", "d"));
            assert_eq!(all.next().await.unwrap().unwrap(), "c=d");
        },
    ))
    .await;
}

#[tokio::test]
async fn calls_from_a_handler_carry_its_trace_context() {
    let inner = metadata_echo_server();
    bounded(async {
        let inner = inner.listen("tcp://127.0.0.1:0").await.unwrap();
        let further = Caller::connect(inner.address()).await.unwrap();
        let outer = Server::new().handle("outer", move |request: client::Request| {
            let further = further.clone();
            async move { Ok(further.call("mirror", "").within(request.context()).await?) }
        });
        over_every_transport(&outer, async |caller: Caller| {
            let metadata = Metadata::new()
                .with("tracestate", "a=1")
                .with("private", "x");
            let call = caller
                .call("outer", "")
                .metadata(metadata)
                .traceparent(TRACE);
            let reply = call.await.unwrap();
            assert_eq!(reply, format!("traceparent={TRACE};tracestate=a=1"));
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn one_way_calls_carry_metadata_too() {
    let seen = Probe::default();
    let counted = seen.clone();
    let server = Server::new().handle_sync("note", move |request| {
        assert_eq!(request.metadata().text("run"), Some("42"));
        assert_eq!(request.method(), "note");
        counted.add(1);
        Ok("")
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let before = seen.count();
        let metadata = Metadata::new().with("run", "42");
        caller
            .one_way("note", "x")
            .metadata(metadata)
            .await
            .unwrap();
        seen.reaches(before + 1).await;
    }))
    .await;
}

#[tokio::test]
async fn the_source_is_delivered_only_to_subscribers_that_request_it() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let sender = node.named("acme/test/sender").await;
        let nameless = node.client().await;
        let receiver = node.client().await;
        let name = name();
        let asking = SubscribeOptions::new().with_source();
        let mut told = receiver
            .subscribe_with(&name, asking.clone())
            .await
            .unwrap();
        let mut untold = node.client().await.subscribe(&name).await.unwrap();

        let metadata = Metadata::new().with("run", "42");
        sender
            .send(&name, Cast::All, "x")
            .metadata(metadata)
            .await
            .unwrap();
        let envelope = told.next().await.unwrap();
        assert_eq!(envelope.source(), Some("acme/test/sender"));
        assert_eq!(envelope.metadata().text("run"), Some("42"));
        assert_eq!(envelope.name(), told.name());
        let envelope = untold.next().await.unwrap();
        assert_eq!(envelope.source(), None);
        assert_eq!(envelope.metadata().text("run"), Some("42"));

        drop(untold);
        let asked = async {
            let envelope = told.next().await.unwrap();
            assert!(envelope.wants_reply());
            let source = envelope.source().unwrap().to_owned();
            envelope.reply(source).unwrap();
            // A sender without a name is shown by its connection number, or not at all.
            told.next().await.unwrap().source().map(str::to_owned)
        };
        let ask = async {
            let policy = client::RetryPolicy::attempts(u32::MAX);
            let reply = sender
                .request(&name, "who am I?")
                .retry(policy)
                .await
                .unwrap();
            assert_eq!(reply, "acme/test/sender");
            nameless.send(&name, Cast::Any, "x").await.unwrap();
        };
        let (source, ()) = tokio::join!(asked, ask);
        assert_ne!(source.as_deref(), Some("acme/test/sender"));

        let server = Server::new().handle("who", |request: client::Request| async move {
            Ok(request.source().unwrap_or("nobody").to_owned())
        });
        let other = client::Name::parse("acme/test/who").unwrap();
        let attached = server.attach_with(&receiver, &other, asking).await.unwrap();
        let caller = sender.caller(other.as_str()).unwrap();
        assert_eq!(caller.call("who", "").await.unwrap(), "acme/test/sender");
        drop(attached);
    })
    .await;
}

#[tokio::test]
async fn an_error_keeps_its_code_message_details_and_pause() {
    let server = Server::new().handle("refuse", |request: client::Request| async move {
        let code = ErrorCode::from_u16(request.body[0].into()).unwrap();
        let fault = Fault::with_code(code, format!("because of {code}"));
        let fault = fault.with_details(vec![1, 2, 3]);
        Err::<&str, _>(fault.with_retry_after(Duration::from_millis(250)))
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        for code in ErrorCode::ALL {
            let error = caller
                .call("refuse", [code.as_u16() as u8])
                .await
                .unwrap_err();
            assert_eq!((error.code, error.sent), (code, Sent::Yes));
            assert_eq!(error.message, format!("because of {code}"));
            assert_eq!(error.details, [1, 2, 3][..]);
            assert_eq!(error.retry_after, Some(Duration::from_millis(250)));
            assert!(error.to_string().contains("\nhint: "));
        }
    }))
    .await;
}

#[tokio::test]
async fn handler_errors_are_returned_as_handler_error_with_their_message() {
    let server = echo().handle("parse", |request: client::Request| async move {
        let number: i32 = std::str::from_utf8(&request.body)?.parse()?;
        Ok(number.to_string())
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        assert_eq!(caller.call("parse", "-7").await.unwrap(), "-7");
        let error = caller.call("parse", "seven").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::HandlerError);
        assert_eq!(error.message, "invalid digit found in string");
        assert_eq!(error.retry(), client::Retry::Never);
        let error = caller.call("parse", [0xff]).await.unwrap_err();
        assert!(error.message.contains("invalid utf-8"), "{error}");
    }))
    .await;
}

#[tokio::test]
async fn an_oversized_error_message_is_truncated_and_its_details_dropped() {
    let server = Server::new().handle_sync("long", |_| {
        Err::<&str, _>(Fault::new("x".repeat(5000)).with_details(vec![7; 100_000]))
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let error = caller.call("long", "").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::HandlerError);
        assert_eq!(error.message, "x".repeat(1024));
        assert!(error.details.is_empty());
    }))
    .await;
}
