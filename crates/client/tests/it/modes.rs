//! Every kind of call, with every way to reach a server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::{Bytes, CallError, Caller, ErrorCode, Sent, Server};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::support::{Gate, Node, Probe, bounded, echo, over_every_transport, through_a_node};

#[tokio::test]
async fn serial_calls_are_answered() {
    bounded(over_every_transport(&echo(), async |caller: Caller| {
        for number in 0..20 {
            let body = number.to_string();
            assert_eq!(caller.call("echo", &body).await.unwrap(), body);
        }
        assert_eq!(caller.call("echo", "").await.unwrap(), "");
    }))
    .await;
}

#[tokio::test]
async fn concurrent_calls_return_in_order_despite_late_replies() {
    // Every second call waits for the one after it.
    let (done, _) = tokio::sync::watch::channel(0);
    let done = Arc::new(done);
    let server = Server::new().handle("pair", move |request: client::Request| {
        let done = done.clone();
        async move {
            let number: usize = std::str::from_utf8(&request.body)?.parse()?;
            match number % 2 {
                0 => drop(done.subscribe().wait_for(|latest| *latest > number).await?),
                _ => drop(done.send_replace(number)),
            }
            Ok(request.body)
        }
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let bodies = (0..100).map(|number| number.to_string());
        let mut replies = caller.call_all("pair", bodies, 2);
        for number in 0..100 {
            assert_eq!(replies.next().await.unwrap().unwrap(), number.to_string());
        }
        assert!(replies.next().await.is_none());
    }))
    .await;
}

#[tokio::test]
async fn the_server_never_sees_more_calls_than_the_sliding_window() {
    const WINDOW: usize = 7;
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = (now.clone(), peak.clone());
    let server = Server::new().handle("yield", move |request: client::Request| {
        let (now, peak) = handler.clone();
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::AcqRel);
            Ok(request.body)
        }
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        peak.store(0, Ordering::Release);
        let mut replies = caller.call_all("yield", (0..500).map(|n| n.to_string()), WINDOW);
        let mut count = 0;
        while let Some(reply) = replies.next().await {
            assert_eq!(reply.unwrap(), count.to_string());
            count += 1;
        }
        assert_eq!((count, now.load(Ordering::Acquire)), (500, 0));
        let peak = peak.load(Ordering::Acquire);
        assert!((2..=WINDOW).contains(&peak), "{peak}");
    }))
    .await;
}

#[tokio::test]
async fn next_call_is_sent_when_the_oldest_reply_is_taken() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate
            .on(Server::new())
            .listen("tcp://127.0.0.1:0")
            .await
            .unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let mut replies = caller.call_all("wait", (0..8).map(|n| n.to_string()), 4);
        let (_, ()) = tokio::join!(
            async {
                assert_eq!(replies.next().await.unwrap().unwrap(), "0");
                // After one reply was taken, one more call follows; the other three still wait.
                tokio::join!(replies.next(), async {
                    gate.entered.reaches(5).await;
                    assert_eq!((gate.entered.count(), gate.left.count()), (5, 1));
                    gate.unblock(7);
                })
                .0
            },
            async {
                gate.entered.reaches(4).await;
                assert_eq!(gate.entered.count(), 4);
                gate.unblock(1);
            },
        );
        for number in 2..8 {
            assert_eq!(replies.next().await.unwrap().unwrap(), number.to_string());
        }
    })
    .await;
}

#[tokio::test]
async fn a_batch_returns_one_outcome_per_body_in_order() {
    let server = Server::new().handle("halve", |request: client::Request| async move {
        let number: u32 = std::str::from_utf8(&request.body)?.parse()?;
        match number % 2 {
            0 => Ok((number / 2).to_string()),
            _ => Err(client::Fault::new(format!("{number} is odd"))),
        }
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let outcomes = caller
            .call_batch("halve", (0..1000).map(|n| n.to_string()))
            .await;
        assert_eq!(outcomes.len(), 1000);
        for (number, outcome) in outcomes.into_iter().enumerate() {
            match number % 2 {
                0 => assert_eq!(outcome.unwrap(), (number / 2).to_string()),
                _ => {
                    let error = outcome.unwrap_err();
                    assert_eq!(error.code, ErrorCode::HandlerError);
                    assert_eq!(error.message, format!("{number} is odd"));
                    assert_eq!(error.sent, Sent::Yes);
                }
            }
        }
    }))
    .await;
}

#[tokio::test]
async fn a_callback_is_called_once_for_each_call_with_its_own_outcome() {
    bounded(over_every_transport(&echo(), async |caller: Caller| {
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let (probe, log) = (Probe::default(), seen.clone());
        let counted = probe.clone();
        let callbacks = caller.callbacks("echo", move |tag, outcome| {
            let outcome = outcome.map(Bytes::copy_from_slice).map_err(Clone::clone);
            log.lock().entry(tag).or_insert_with(Vec::new).push(outcome);
            counted.add(1);
        });
        for tag in 0..1000 {
            callbacks.ready().await.unwrap();
            callbacks.call(tag, tag.to_string()).unwrap();
        }
        probe.reaches(1000).await;
        let seen = seen.lock();
        assert_eq!(seen.len(), 1000);
        for (tag, outcomes) in seen.iter() {
            assert_eq!(outcomes[..], [Ok(Bytes::from(tag.to_string()))]);
        }
    }))
    .await;
}

#[tokio::test]
async fn a_callback_may_make_the_next_call() {
    bounded(async {
        let listening = echo().listen("tcp://127.0.0.1:0").await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let (done, is_done) = oneshot::channel();
        let done = Mutex::new(Some(done));
        let callbacks = Arc::new_cyclic(|own: &std::sync::Weak<client::Callbacks>| {
            let own = own.clone();
            caller.callbacks("echo", move |tag, outcome| {
                outcome.unwrap();
                match tag {
                    100 => done.lock().take().unwrap().send(()).unwrap(),
                    _ => own.upgrade().unwrap().call(tag + 1, "x").unwrap(),
                }
            })
        });
        callbacks.call(0, "x").unwrap();
        is_done.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn on_reply_calls_its_function_with_the_reply_or_the_error() {
    bounded(over_every_transport(&echo(), async |caller: Caller| {
        let (sender, mut outcomes) = mpsc::unbounded_channel();
        for (method, body) in [("echo", "hello"), ("ecco", "hello")] {
            let sender = sender.clone();
            let report = move |outcome: Result<&[u8], &CallError>| {
                let outcome = outcome.map(<[u8]>::to_vec).map_err(|error| error.code);
                sender.send((method, outcome)).unwrap();
            };
            caller.on_reply(method, body, report).unwrap();
        }
        let mut seen = [
            outcomes.recv().await.unwrap(),
            outcomes.recv().await.unwrap(),
        ];
        seen.sort();
        assert_eq!(seen[0], ("ecco", Err(ErrorCode::UnknownMethod)));
        assert_eq!(seen[1], ("echo", Ok(b"hello".to_vec())));
        drop(sender);
        assert!(outcomes.recv().await.is_none());
    }))
    .await;
}

#[tokio::test]
async fn one_way_calls_arrive_in_order_without_replies() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let probe = Probe::default();
    let server = {
        let (log, probe) = (log.clone(), probe.clone());
        Server::new().handle("note", move |request: client::Request| {
            log.lock().push(request.body);
            probe.add(1);
            // The result of a handler for a one-way call is ignored.
            std::future::ready(Err::<Bytes, _>(client::Fault::new("nobody hears this")))
        })
    };
    bounded(over_every_transport(&server, async |caller: Caller| {
        log.lock().clear();
        let before = probe.count();
        for number in 0..500 {
            caller.one_way("note", number.to_string()).await.unwrap();
        }
        // A one-way call of an unknown method is ignored.
        caller.one_way("not here", "x").await.unwrap();
        caller.one_way("note", "last").now().unwrap();
        probe.reaches(before + 501).await;
        let log = log.lock();
        for (number, body) in log[..500].iter().enumerate() {
            assert_eq!(*body, number.to_string());
        }
        assert_eq!(log[500..], ["last"]);
        assert_eq!(caller.client().in_flight(), 0);
    }))
    .await;
}

#[tokio::test]
async fn stream_delivers_its_items_in_order_and_then_ends() {
    let server = Server::new().handle_stream("count", |request, items| async move {
        let to: u32 = std::str::from_utf8(&request.body)?.parse()?;
        for number in 0..to {
            items.send(number.to_string()).await?;
        }
        Ok(())
    });
    bounded(over_every_transport(&server, async |caller: Caller| {
        for to in [0, 1, 64, 65, 500] {
            let mut items = caller.stream("count", to.to_string());
            for number in 0..to {
                assert_eq!(items.next().await.unwrap().unwrap(), number.to_string());
            }
            assert!(items.next().await.is_none());
            assert!(items.next().await.is_none());
        }
        assert_eq!(caller.client().in_flight(), 0);
    }))
    .await;
}

#[tokio::test]
async fn an_unknown_method_is_answered_at_once_with_the_nearest_name() {
    let server = echo().handle("reverse", |_: client::Request| async { Ok("") });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let error = caller.call("ehco", "x").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownMethod);
        assert_eq!(
            error.message,
            "no handler `ehco`; did you mean `echo`? 2 handlers known"
        );
        let error = caller
            .stream("revers", "x")
            .next()
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownMethod);
        assert!(error.message.contains("did you mean `reverse`?"), "{error}");
    }))
    .await;
}

#[tokio::test]
async fn handler_panic_is_an_internal_error_of_that_call_only() {
    let server = echo()
        .handle("panic", |request: client::Request| async move {
            match request.body.is_empty() {
                true => panic!("at once"),
                false => tokio::task::yield_now().await,
            }
            match request.body.len() {
                0 => Ok(request.body),
                _ => panic!("after a while"),
            }
        })
        .handle_sync("panic at once", |_| -> Result<Bytes, _> {
            panic!("without waiting")
        })
        .handle_stream("panic in a stream", |_, items| async move {
            items.send("one").await?;
            panic!("between items")
        });
    bounded(over_every_transport(&server, async |caller: Caller| {
        let (first, second, third, beside) = tokio::join!(
            caller.call("panic", ""),
            caller.call("panic", "x"),
            caller.call("panic at once", ""),
            caller.call("echo", "beside"),
        );
        for outcome in [first, second, third] {
            let error = outcome.unwrap_err();
            assert_eq!((error.code, error.sent), (ErrorCode::Internal, Sent::Yes));
            assert_eq!(error.message, "the handler panicked");
        }
        assert_eq!(beside.unwrap(), "beside");
        let mut items = caller.stream("panic in a stream", "");
        assert_eq!(items.next().await.unwrap().unwrap(), "one");
        let error = items.next().await.unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::Internal);
        assert!(items.next().await.is_none());
        assert_eq!(caller.call("echo", "after").await.unwrap(), "after");
    }))
    .await;
}

/// Makes calls that are all in flight before the first reply.
async fn ten_thousand(caller: &Caller, gate: &Gate) {
    let calls = (0..10_000).map(|number| async move {
        let body = number.to_string();
        let reply = caller
            .call("wait", &body)
            .deadline(Duration::from_secs(60))
            .await;
        assert_eq!(reply.unwrap(), body);
    });
    let release = async {
        gate.entered.reaches(10_000).await;
        assert_eq!(gate.left.count(), 0);
        assert_eq!(caller.client().in_flight(), 10_000);
        gate.unblock(10_000);
    };
    tokio::join!(join_all(calls), release);
    assert_eq!(caller.client().in_flight(), 0);
}

#[tokio::test]
async fn ten_thousand_calls_in_flight_at_once_finish_directly() {
    bounded(async {
        let gate = Gate::new();
        let listening = gate
            .on(Server::new())
            .listen("tcp://127.0.0.1:0")
            .await
            .unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        ten_thousand(&caller, &gate).await;
    })
    .await;
}

#[tokio::test]
async fn ten_thousand_calls_in_flight_at_once_finish_through_a_node() {
    bounded(async {
        let gate = Gate::new();
        let node = Node::start("tcp://127.0.0.1:0").await;
        let (_attached, caller) = through_a_node(&node, &gate.on(Server::new())).await;
        ten_thousand(&caller, &gate).await;
        assert_eq!(node.handle.messaging().pending_call_count(), 0);
    })
    .await;
}
