//! All kinds of calls at once on several threads: calls succeed, fail, are dropped or time out,
//! while connections are cut. Every call ends, and no state is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use client::{Builder, Caller, Client, ErrorCode, Fault, Server, WhenFull};
use futures_util::FutureExt;

use crate::support::{Guard, Node, Probe, bounded, name};

/// The first byte of the request selects the handler's behaviour; the reply is the request.
fn server_scripted_by_request(entered: &Probe, left: &Probe) -> Server {
    let probes = (entered.clone(), left.clone());
    let streams = probes.clone();
    Server::new()
        .handle("moody", move |request: client::Request| {
            let (entered, left) = probes.clone();
            async move {
                entered.add(1);
                let _guard = Guard(left);
                match request.body[0] % 8 {
                    0..3 => {}
                    3 => tokio::task::yield_now().await,
                    4 => tokio::time::sleep(Duration::from_millis(1)).await,
                    5 => tokio::time::sleep(Duration::from_millis(5)).await,
                    6 => return Err(Fault::with_code(ErrorCode::Busy, "in a mood")),
                    _ => std::future::pending().await,
                }
                Ok(request.body)
            }
        })
        .handle_stream("items", move |request, items| {
            let (entered, left) = streams.clone();
            async move {
                entered.add(1);
                let _guard = Guard(left);
                for _ in 0..u32::from(request.body[0]) * 4 {
                    items.send(request.body.clone()).await?;
                }
                Ok(())
            }
        })
}

/// Checks that the outcome of a call is one of these codes.
fn check(outcome: Result<client::Bytes, client::CallError>, body: &[u8]) {
    match outcome {
        Ok(reply) => assert_eq!(reply, body),
        Err(error) => assert!(
            matches!(
                error.code,
                ErrorCode::Busy
                    | ErrorCode::DeadlineExceeded
                    | ErrorCode::Unconfirmed
                    | ErrorCode::Unavailable
                    | ErrorCode::NoResponder
                    | ErrorCode::Cancelled
            ),
            "{error}"
        ),
    }
}

/// Makes random calls of one kind.
async fn random_calls(
    caller: &Caller,
    dice: &mut fastrand::Rng,
    accepted: &AtomicU64,
    seen: &Probe,
) {
    let size = dice.usize(1..300);
    let body: Vec<u8> = (0..size).map(|_| dice.u8(..)).collect();
    let time = Duration::from_millis(dice.u64(1..30));
    match dice.u8(..8) {
        0 => check(caller.call("moody", &body).deadline(time).await, &body),
        1 => {
            let call = caller
                .call("moody", &body)
                .deadline(time)
                .when_full(WhenFull::Busy);
            check(call.await, &body);
        }
        2 => drop(caller.call("moody", &body).into_future().now_or_never()),
        3 => {
            let mut call = caller.call("moody", &body).deadline(time).into_future();
            for _ in 0..dice.u8(1..5) {
                if let Poll::Ready(outcome) = futures_util::poll!(&mut call) {
                    return check(outcome, &body);
                }
                tokio::task::yield_now().await;
            }
        }
        4 => {
            let bodies = vec![&body[..]; dice.usize(1..40)];
            let mut all = caller
                .call_all("moody", bodies, dice.usize(1..10))
                .deadline(time);
            for _ in 0..dice.u8(..50) {
                match all.next().await {
                    Some(outcome) => check(outcome, &body),
                    None => break,
                }
            }
        }
        5 => {
            let mut items = caller.stream("items", &body).deadline(10 * time);
            for _ in 0..dice.u32(..2000) {
                match items.next().await {
                    Some(outcome) => check(outcome, &body),
                    None => break,
                }
            }
        }
        6 => {
            let (counted, expected) = (seen.clone(), body.clone());
            let callbacks = caller.callbacks("moody", move |_, outcome| {
                let outcome = outcome
                    .map(client::Bytes::copy_from_slice)
                    .map_err(Clone::clone);
                check(outcome, &expected);
                counted.add(1);
            });
            let callbacks = callbacks.deadline(time);
            for tag in 0..dice.u64(1..50) {
                if callbacks.call(tag, &body).is_ok() {
                    accepted.fetch_add(1, Ordering::AcqRel);
                }
            }
        }
        _ => {
            let _ = caller.one_way("items", &body).deadline(time).await;
        }
    }
}

/// Runs several tasks with one caller, while `disturb` runs from time to time.
async fn run_mixed_calls(caller: Caller, seed: u64, disturb: impl Fn() + Send + Sync + 'static) {
    let (accepted, seen) = (Arc::new(AtomicU64::new(0)), Probe::default());
    let disturb = Arc::new(disturb);
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let (caller, accepted, seen) = (caller.clone(), accepted.clone(), seen.clone());
        let disturb = disturb.clone();
        let mut dice = fastrand::Rng::with_seed(seed + task);
        tasks.spawn(async move {
            for _ in 0..250 {
                random_calls(&caller, &mut dice, &accepted, &seen).await;
                if dice.u8(..) == 0 {
                    disturb();
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    seen.reaches(accepted.load(Ordering::Acquire) as usize)
        .await;
    while caller.client().in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(seen.count() as u64, accepted.load(Ordering::Acquire));
}

fn small() -> Builder {
    let reconnect = (Duration::from_millis(1), Duration::from_millis(10));
    Client::builder()
        .in_flight_max(64)
        .reconnect(reconnect.0, reconnect.1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn mixed_calls_on_a_direct_connection_all_complete() {
    bounded(async {
        for seed in 0..3 {
            let (entered, left) = (Probe::default(), Probe::default());
            let server = server_scripted_by_request(&entered, &left);
            let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
            let caller = small().connect_caller(listening.address()).await.unwrap();
            run_mixed_calls(caller, 100 * seed, || {}).await;
            left.reaches(entered.count()).await;
            assert!(entered.count() > 1000, "{}", entered.count());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn mixed_calls_through_cut_connections_all_end_and_leave_nothing() {
    bounded(async {
        for seed in 0..3 {
            let (entered, left) = (Probe::default(), Probe::default());
            let node = Node::start("tcp://127.0.0.1:0").await;
            let beside = small().connect(node.address()).await.unwrap();
            let _attached = server_scripted_by_request(&entered, &left)
                .attach(&beside, &name())
                .await
                .unwrap();
            let address = node.address_of(&name());
            let caller = small().connect_caller(&address).await.unwrap();
            let handle = node.handle.clone();
            run_mixed_calls(caller, 100 * seed, move || handle.messaging().close_all()).await;
            left.reaches(entered.count()).await;
            while node.handle.messaging().pending_call_count() > 0 {
                tokio::task::yield_now().await;
            }
            assert!(entered.count() > 500, "{}", entered.count());
        }
    })
    .await;
}
