//! Streaming replies: how far the server may be ahead, and other outcomes.

use client::{Caller, ErrorCode, Fault, Server};
use futures_util::StreamExt;
use model::ByteSize;
use wire::{Flags, Kind};

use crate::support::{
    Bare, Guard, Node, Probe, WINDOW, bounded, echo, inproc, listen, over_every_transport,
    through_a_node, wait_until_idle,
};

/// Items that a responder may send before the caller consumes any.
const AHEAD_MAX: usize = 64;

/// An endless stream, and the number of items that it sent.
fn endless(size: usize) -> (Server, Probe, Probe) {
    let (sent, dropped) = (Probe::default(), Probe::default());
    let probes = (sent.clone(), dropped.clone());
    let server = Server::new().handle_stream("endless", move |_, items| {
        let (sent, dropped) = probes.clone();
        async move {
            let _guard = Guard(dropped);
            loop {
                items.send(vec![7; size]).await?;
                sent.add(1);
            }
        }
    });
    (server, sent, dropped)
}

async fn check_ahead(caller: &Caller, sent: &Probe) {
    let mut items = caller.stream("endless", "");
    let before = sent.count();
    for taken in 1..=300 {
        items.next().await.unwrap().unwrap();
        wait_until_idle().await;
        let sent = sent.count() - before;
        assert!(
            (taken..=taken + AHEAD_MAX).contains(&sent),
            "{sent} sent, {taken} taken"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_sends_at_most_a_window_of_unread_items() {
    bounded(async {
        let (server, sent, dropped) = endless(10);
        let listening = server.listen(&inproc()).await.unwrap();
        check_ahead(&Caller::connect(listening.address()).await.unwrap(), &sent).await;
        dropped.reaches(1).await;
        let node = Node::start(&inproc()).await;
        let (_attached, caller) = through_a_node(&node, &server).await;
        check_ahead(&caller, &sent).await;
        dropped.reaches(2).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_unread_stream_does_not_delay_other_calls() {
    bounded(async {
        let (server, sent, _dropped) = endless(100 << 10);
        let server = server.handle("echo", |request: client::Request| async {
            Ok(request.body)
        });
        let listening = server.listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let mut items = caller.stream("endless", "");
        items.next().await.unwrap().unwrap();
        wait_until_idle().await;
        assert!(sent.count() <= 1 + AHEAD_MAX);
        for _ in 0..100 {
            assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
        }
        let mut beside = caller.stream("endless", "");
        for _ in 0..200 {
            beside.next().await.unwrap().unwrap();
        }
        items.next().await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn items_for_an_unread_connection_stay_with_the_handler() {
    bounded(async {
        let (server, sent, dropped) = endless(100 << 10);
        let listening = server.listen(&inproc()).await.unwrap();
        let mut deaf = Bare::introduced(listening.address()).await;
        deaf.bind(1, "endless").await;
        for slot in 0..100 {
            let correlation = crate::support::tag(slot);
            deaf.message(Kind::REQUEST, Flags::STREAM, 1, correlation, b"")
                .await;
        }
        wait_until_idle().await;
        // The pipe, the batch being written, and the queue after it.
        let size = sent.count() * (100 << 10);
        assert!(size <= 4 * net::inproc::PIPE_SIZE_MAX, "{size}");
        drop(deaf);
        dropped.reaches(dropped.count().max(1)).await;
    })
    .await;
}

#[tokio::test]
async fn stream_may_end_with_an_error_after_its_items() {
    let server = Server::new().handle_stream("fail", |_, items| async move {
        items.send("one").await?;
        items.send("").await?;
        Err(Fault::with_code(ErrorCode::Throttled, "enough").with_details("d"))
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let mut items = caller.stream("fail", "");
        assert_eq!(items.next().await.unwrap().unwrap(), "one");
        assert_eq!(items.next().await.unwrap().unwrap(), "");
        let error = items.next().await.unwrap().unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::Throttled, "enough")
        );
        assert_eq!(error.details, "d");
        assert!(items.next().await.is_none());
        assert_eq!(caller.client().in_flight(), 0);
    }))
    .await;
}

#[tokio::test]
async fn stream_accepts_a_single_reply_and_call_refuses_a_stream() {
    let server = echo().handle_stream("many", |_, items| async move { items.send("x").await });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let items: Vec<_> = caller.stream("echo", "only").collect().await;
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].as_ref().unwrap(), "only");
        let error = caller.call("many", "").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        assert!(error.message.contains("call it with `stream`"), "{error}");
    }))
    .await;
}

#[tokio::test]
async fn concurrent_streams_do_not_mix() {
    let server = Server::new().handle_stream("repeat", |request, items| async move {
        for number in 0..100 {
            let own = String::from_utf8_lossy(&request.body);
            items.send(format!("{own}-{number}")).await?;
        }
        Ok(())
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let streams = (0..20).map(|stream| {
            let mut items = caller.stream("repeat", stream.to_string());
            async move {
                for number in 0..100 {
                    let item = items.next().await.unwrap().unwrap();
                    assert_eq!(item, format!("{stream}-{number}"));
                }
                assert!(items.next().await.is_none());
            }
        });
        futures_util::future::join_all(streams).await;
    }))
    .await;
}

#[tokio::test]
async fn large_items_pass_one_by_one() {
    let server = Server::new().handle_stream("large", |_, items| async move {
        for number in 0..40_u8 {
            items.send(vec![number; 1 << 20]).await?;
        }
        Ok(())
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let mut items = caller.stream("large", "");
        for number in 0..40_u8 {
            let item = items.next().await.unwrap().unwrap();
            assert_eq!(item.len(), ByteSize::mebibytes(1).as_usize());
            assert!(item.iter().all(|byte| *byte == number));
        }
        assert!(items.next().await.is_none());
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_its_credit_ends_that_stream_only() {
    bounded(async {
        let address = inproc();
        let listener = listen(&address);
        let (caller, mut server) = tokio::join!(
            async { Caller::connect(&address).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        let mut items = caller.stream("flood", "");
        let flood = async {
            let to = server.next().await.header.correlation;
            for _ in 0..AHEAD_MAX + 1 {
                server
                    .message(Kind::REPLY, Flags::MORE, 0, to, b"item")
                    .await;
            }
            assert_eq!(server.next().await.header.kind, Kind::CANCEL);
        };
        let (first, ()) = tokio::join!(items.next(), flood);
        first.unwrap().unwrap();
        let mut count = 1;
        let error = loop {
            match items.next().await.unwrap() {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((count, error.code), (AHEAD_MAX, ErrorCode::Protocol));
        assert!(items.next().await.is_none());
        let mut call = std::pin::pin!(caller.call("x", "x").into_future());
        assert!(futures_util::poll!(&mut call).is_pending());
        let request = loop {
            let frame = server.next().await;
            if frame.header.kind == Kind::REQUEST {
                break frame;
            }
        };
        server.reply(request.header.correlation, b"fine").await;
        assert_eq!(call.await.unwrap(), "fine");
    })
    .await;
}
