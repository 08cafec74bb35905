//! Slow readers: they only slow themselves down and use little memory.

use client::{Caller, Client, ErrorCode, Server, WhenFull};
use model::ByteSize;
use wire::Kind;

use crate::support::{Bare, Gate, Probe, WINDOW, bounded, inproc, listen, tag, wait_until_idle};

/// A server that replies with 64 KiB, and its number of replies.
fn server_with_large_replies() -> (Server, Probe) {
    let answered = Probe::default();
    let counted = answered.clone();
    let server = Server::new().handle_sync("much", move |_| {
        counted.add(1);
        Ok(vec![7; 64 << 10])
    });
    (server, answered)
}

#[tokio::test(start_paused = true)]
async fn server_stops_reading_from_a_caller_that_reads_no_replies() {
    bounded(async {
        let (server, answered) = server_with_large_replies();
        let listening = server.listen(&inproc()).await.unwrap();
        let mut deaf = Bare::introduced(listening.address()).await;
        deaf.bind(1, "much").await;
        for slot in 0..1000 {
            deaf.request(1, slot, b"x").await;
        }
        wait_until_idle().await;
        // The pipe, the batch being written, the queue after it, and the last call handled before
        // the server noticed.
        let queued = answered.count() * (64 << 10);
        assert!(queued <= 4 * net::inproc::PIPE_SIZE_MAX, "{queued}");
        assert!(answered.count() > 0);
        let other = Caller::connect(listening.address()).await.unwrap();
        for _ in 0..50 {
            assert_eq!(other.call("much", "x").await.unwrap().len(), 64 << 10);
        }
        let before = answered.count();
        wait_until_idle().await;
        assert_eq!(answered.count(), before);
        // When the client reads again, no reply was lost.
        for slot in 0..1000 {
            let reply = deaf.next().await;
            assert_eq!(
                (reply.header.correlation, reply.body().len()),
                (tag(slot), 64 << 10)
            );
        }
        assert_eq!(answered.count(), 1050);
    })
    .await;
}

#[tokio::test]
async fn a_caller_on_a_real_socket_that_reads_late_gets_every_reply() {
    bounded(async {
        let (server, answered) = server_with_large_replies();
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let mut late = Bare::introduced(listening.address()).await;
        late.bind(1, "much").await;
        for slot in 0..1000 {
            late.request(1, slot, b"x").await;
        }
        let other = Caller::connect(listening.address()).await.unwrap();
        for _ in 0..20 {
            assert_eq!(other.call("much", "x").await.unwrap().len(), 64 << 10);
        }
        assert!(answered.count() < 1020, "a socket that holds 64 MiB");
        for slot in 0..1000 {
            assert_eq!(late.next().await.header.correlation, tag(slot));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn one_way_calls_beyond_the_window_wait_or_fail_as_busy() {
    bounded(async {
        let gate = Gate::new();
        let size = ByteSize::mebibytes(16);
        let server = gate.on(Server::new()).window(8, size);
        let listening = server.listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        for _ in 0..8 {
            caller.one_way("wait", "x").now().unwrap();
        }
        let error = caller.one_way("wait", "x").now().unwrap_err();
        assert_eq!(error.code, ErrorCode::Busy);
        let busy = caller.one_way("wait", "x").when_full(WhenFull::Busy);
        assert_eq!(busy.await.unwrap_err().code, ErrorCode::Busy);
        let late = caller
            .one_way("wait", "x")
            .deadline(std::time::Duration::from_millis(50));
        assert_eq!(late.await.unwrap_err().code, ErrorCode::DeadlineExceeded);
        let mut waiting = std::pin::pin!(caller.one_way("wait", "x").into_future());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        wait_until_idle().await;
        assert_eq!(gate.entered.count(), 8);
        gate.unblock(9);
        waiting.await.unwrap();
        gate.left.reaches(9).await;
        wait_until_idle().await;
        assert_eq!(gate.entered.count(), 9);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_one_way_calls_to_a_slow_server_loses_nothing() {
    bounded(async {
        let seen = Probe::default();
        let counted = seen.clone();
        let server = Server::new().window(16, ByteSize::mebibytes(16));
        let server = server.handle("slow", move |request: client::Request| {
            let seen = counted.clone();
            async move {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                assert_eq!(request.body.len(), 100);
                seen.add(1);
                Ok("")
            }
        });
        let listening = server.listen(&inproc()).await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        for _ in 0..5000 {
            caller.one_way("slow", [7; 100]).await.unwrap();
            assert!(seen.count() + 100 < 6000);
        }
        seen.reaches(5000).await;
        wait_until_idle().await;
        assert_eq!(seen.count(), 5000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_queue_for_a_server_that_does_not_read_is_bounded() {
    bounded(async {
        let address = inproc();
        let listener = listen(&address);
        let (client, mut server) = tokio::join!(
            async { Client::connect(&address).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        let caller = client.direct();
        let callbacks = caller.callbacks("x", |_, _| {});
        let body = vec![7; 256 << 10];
        let mut accepted = 0;
        loop {
            match callbacks.call(accepted, &body) {
                Ok(()) => accepted += 1,
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::Busy);
                    wait_until_idle().await;
                    if callbacks.call(accepted, &body).is_err() {
                        break;
                    }
                    accepted += 1;
                }
            }
            assert!(accepted * (256 << 10) <= 16 << 20, "{accepted}");
        }
        // When the server reads again, all messages arrive.
        for _ in 0..accepted {
            let request = server.next().await;
            assert_eq!(request.header.kind, Kind::REQUEST);
            assert_eq!(request.body().len(), 256 << 10);
        }
        callbacks.ready().await.unwrap();
        callbacks.call(accepted, &body).unwrap();
    })
    .await;
}
