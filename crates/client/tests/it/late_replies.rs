//! Replies that are late, repeated or without a call never match another call.

use std::time::Duration;

use client::{Caller, ErrorCode};
use wire::{Correlation, Flags, Kind};

use crate::support::{Bare, Frame, WINDOW, bounded, inproc, listen, tag, wait_until_idle};

async fn pair() -> (Caller, Bare, net::inproc::Listener) {
    let address = inproc();
    let listener = listen(&address);
    let (caller, server) = tokio::join!(
        async { Caller::connect(&address).await.unwrap() },
        Bare::accept(&listener, WINDOW),
    );
    (caller, server, listener)
}

/// Returns the next request, skipping other frames.
async fn request(server: &mut Bare) -> Frame {
    loop {
        let frame = server.next().await;
        if frame.header.kind == Kind::REQUEST {
            return frame;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_reply_does_not_complete_the_next_call() {
    bounded(async {
        let (caller, mut server, _listener) = pair().await;
        let short = Duration::from_millis(50);
        let error = caller.call("x", "first").deadline(short).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::DeadlineExceeded);
        let first = request(&mut server).await.header.correlation;
        assert_eq!(server.next().await.header.kind, Kind::CANCEL);
        // The first reply is still owed, so its slot remains in use.
        assert_eq!(caller.client().in_flight(), 1);
        let answers = async {
            let second = request(&mut server).await;
            assert_eq!(second.body(), b"second");
            assert_ne!(second.header.correlation.slot, first.slot);
            server.reply(first, b"the first answer").await;
            wait_until_idle().await;
            server
                .reply(second.header.correlation, b"the second answer")
                .await;
        };
        let (outcome, ()) = tokio::join!(caller.call("x", "second"), answers);
        assert_eq!(outcome.unwrap(), "the second answer");
        assert_eq!(caller.client().in_flight(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_to_an_earlier_call_of_the_same_slot_is_dropped() {
    bounded(async {
        let (caller, mut server, _listener) = pair().await;
        for round in 1..=5_u32 {
            let answers = async {
                let asked = request(&mut server).await.header.correlation;
                // All calls use one slot, each with its own generation.
                assert_eq!((asked.slot, asked.generation), (0, round));
                for generation in 0..round {
                    let old = Correlation {
                        slot: 0,
                        generation,
                    };
                    server.reply(old, b"old").await;
                    server
                        .message(Kind::REPLY, Flags::MORE, 0, old, b"old")
                        .await;
                }
                wait_until_idle().await;
                server.reply(asked, format!("{round}").as_bytes()).await;
                server.reply(asked, b"twice").await;
            };
            let (outcome, ()) = tokio::join!(caller.call("x", "x"), answers);
            assert_eq!(outcome.unwrap(), round.to_string());
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn replies_without_a_call_are_dropped() {
    bounded(async {
        let (caller, mut server, _listener) = pair().await;
        for slot in [0, 1, 7, 4_000_000, u32::MAX] {
            server.reply(tag(slot), b"nobody asked").await;
        }
        wait_until_idle().await;
        let answer = async {
            let asked = request(&mut server).await.header.correlation;
            server.reply(asked, b"asked").await;
        };
        let (outcome, ()) = tokio::join!(caller.call("x", "x"), answer);
        assert_eq!(outcome.unwrap(), "asked");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_holds_its_slot_until_the_reply() {
    bounded(async {
        let (caller, mut server, _listener) = pair().await;
        {
            let mut dropped = std::pin::pin!(caller.call("x", "dropped").into_future());
            assert!(futures_util::poll!(&mut dropped).is_pending());
            wait_until_idle().await;
        }
        let first = request(&mut server).await.header.correlation;
        assert_eq!(server.next().await.header.kind, Kind::CANCEL);
        let answers = async {
            let second = request(&mut server).await.header.correlation;
            assert_ne!(second.slot, first.slot);
            server.reply(second, b"second").await;
            server.reply(first, b"late").await;
        };
        let (outcome, ()) = tokio::join!(caller.call("x", "x"), answers);
        assert_eq!(outcome.unwrap(), "second");
        wait_until_idle().await;
        assert_eq!(caller.client().in_flight(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn replies_may_arrive_in_any_order() {
    bounded(async {
        let (caller, mut server, _listener) = pair().await;
        let calls = caller.call_batch("x", (0..100).map(|number| number.to_string()));
        let answers = async {
            let mut asked = Vec::new();
            for _ in 0..100 {
                asked.push(request(&mut server).await);
            }
            asked.reverse();
            for request in asked {
                server
                    .reply(request.header.correlation, request.body())
                    .await;
            }
        };
        let (outcomes, ()) = tokio::join!(calls, answers);
        for (number, outcome) in outcomes.into_iter().enumerate() {
            assert_eq!(outcome.unwrap(), number.to_string());
        }
    })
    .await;
}
