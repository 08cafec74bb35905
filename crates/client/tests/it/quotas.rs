//! Quotas of a node: taking, waiting, settling, and limits on senders.

use std::time::Duration;

use client::quota::{Admitted, Outcome, Quota, Take};
use client::{Cast, Client, ErrorCode, Name, RetryPolicy, Sent, Server};
use quota_service::LimitConfig;
use tokio::time::Instant;
use wire::{Admitted as WireAdmitted, Kind, Outcomes};

use crate::support::{Bare, Node, WINDOW, bounded, inproc, listen};

fn bucket(name: &str, unit: &str, capacity: u64, refill: &str) -> LimitConfig {
    LimitConfig {
        name: name.to_owned(),
        pattern: "acme/*/*".to_owned(),
        unit: unit.to_owned(),
        capacity: Some(capacity),
        refill: (!refill.is_empty()).then(|| refill.to_owned()),
        ..LimitConfig::default()
    }
}

/// Starts a node with these limits, and connects a client.
async fn node(limits: &[LimitConfig]) -> (Node, Client) {
    let node = Node::start(&inproc()).await;
    let limits = limits.iter().map(|one| one.read().unwrap()).collect();
    let quotas = node.handle.quotas();
    quotas.follow_configuration(limits).unwrap();
    let client = node.named("acme/demo/bob").await;
    (node, client)
}

fn tokens(subject: &str, count: u64) -> Take {
    Take::of(subject).cost("tokens", count)
}

async fn admitted(quota: &Quota, take: &Take) -> Admitted {
    quota.take(take).await.unwrap().admitted().unwrap()
}

async fn remaining(quota: &Quota, subject: &str) -> i64 {
    quota.peek(subject).await.unwrap()[0].have
}

#[tokio::test(start_paused = true)]
async fn a_take_reports_the_remainder_and_a_denial_its_retry_time() {
    bounded(async {
        let (_node, client) = node(&[bucket("tpm", "tokens", 100, "10/s")]).await;
        let quota = client.quota();
        let first = admitted(&quota, &tokens("acme/x/a", 70)).await;
        let [state] = &first.limits[..] else {
            panic!("{first:?}")
        };
        assert_eq!((&*state.limit, &*state.unit), ("tpm", "tokens"));
        assert_eq!((state.have, state.capacity), (30, 100));
        assert_eq!(state.reset_after, Some(Duration::from_secs(7)));
        assert!(first.hold.is_none() && !first.is_repeat);
        let second = quota.take(&tokens("acme/x/a", 50)).await.unwrap();
        let Outcome::Denied(denied) = &second else {
            panic!("{second:?}")
        };
        assert_eq!(
            (denied.have, denied.need, denied.would_pass()),
            (30, 50, 30)
        );
        let retry_after = denied.retry_after.unwrap();
        assert_eq!(retry_after, Duration::from_secs(2));
        let error = second.admitted().unwrap_err();
        assert_eq!(error.code, ErrorCode::Throttled);
        assert_eq!(error.retry_after, Some(retry_after));
        tokio::time::sleep(retry_after).await;
        assert_eq!(
            admitted(&quota, &tokens("acme/x/a", 50)).await.limits[0].have,
            0
        );
        assert_eq!(remaining(&quota, "acme/x/b").await, 100);
    })
    .await;
}

#[tokio::test]
async fn each_take_of_a_batch_has_an_outcome_of_its_own() {
    bounded(async {
        let (_node, client) = node(&[bucket("tpm", "tokens", 100, "1/s")]).await;
        let quota = client.quota();
        let takes = [
            tokens("acme/x/a", 100),
            tokens("acme/x/a", 1),
            tokens("acme/x/b", 101),
            tokens("nobody", 1),
            Take::of("acme/x/b").cost("Bad Unit", 1),
            tokens("acme/x/b", 100),
        ];
        let outcomes = quota.take_batch(&takes).await.unwrap();
        let told: Vec<_> = outcomes
            .iter()
            .map(|outcome| match outcome {
                Ok(Outcome::Admitted(_)) => "admitted",
                Ok(Outcome::Denied(_)) => "denied",
                Err(error) => error.code.as_str(),
            })
            .collect();
        let refused = "invalid_argument";
        let expected = ["admitted", "denied", refused, refused, refused, "admitted"];
        assert_eq!(told, expected);
        assert!(outcomes.iter().flatten().count() == 3);
        let error = outcomes[2].as_ref().unwrap_err();
        assert_eq!(error.sent, Sent::No);
        assert!(quota.take_batch(&[]).await.unwrap().is_empty());
        let many = vec![tokens("acme/x/c", 1); 1_025];
        let code = quota.take_batch(&many).await.unwrap_err().code;
        assert_eq!(code, ErrorCode::TooLarge);
        assert_eq!(remaining(&quota, "acme/x/c").await, 100);
    })
    .await;
}

#[tokio::test]
async fn unencodable_takes_are_rejected_before_sending() {
    bounded(async {
        let (_node, client) = node(&[]).await;
        let quota = client.quota();
        let long = "x".repeat(70_000);
        let takes = [
            tokens(&long, 1),
            tokens("acme/x/a", 1).id(&long[..256]),
            Take::of("acme/x/a").cost(&long[..256], 1),
        ];
        for take in takes {
            let error = quota.take(&take).await.unwrap_err();
            assert_eq!(
                (error.code, error.sent),
                (ErrorCode::InvalidArgument, Sent::No)
            );
        }
        assert!(quota.peek(&long).await.is_err());
        assert!(quota.hold(0).cancel().await.is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_settled_cancelled_or_expires() {
    bounded(async {
        let (node, client) = node(&[bucket("tpm", "tokens", 100, "0/s")]).await;
        let quota = client.quota();
        let held = |id: &str| {
            let take = tokens("acme/x/a", 30).hold(Duration::from_secs(5));
            take.id(id)
        };
        let hold = admitted(&quota, &held("1")).await.hold.unwrap();
        let again = admitted(&quota, &held("1")).await;
        assert!(again.is_repeat);
        assert_eq!(again.hold.unwrap().id(), hold.id());
        assert!(hold.settle(&[("tokens", 10)]).await.unwrap());
        assert!(!hold.settle(&[("tokens", 10)]).await.unwrap());
        assert!(!hold.cancel().await.unwrap());
        assert_eq!(remaining(&quota, "acme/x/a").await, 90);
        let hold = admitted(&quota, &held("2")).await.hold.unwrap();
        assert!(quota.hold(hold.id()).cancel().await.unwrap());
        assert_eq!(remaining(&quota, "acme/x/a").await, 90);
        let hold = admitted(&quota, &held("3")).await.hold.unwrap();
        tokio::time::sleep(Duration::from_secs(6)).await;
        node.handle.sweep();
        assert!(!hold.settle(&[("tokens", 1)]).await.unwrap(), "it is over");
        assert_eq!(remaining(&quota, "acme/x/a").await, 60);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_take_may_exceed_the_call_deadline_but_not_its_wait() {
    bounded(async {
        let (_node, client) = node(&[bucket("tpm", "tokens", 60, "4/s")]).await;
        let quota = client.quota().deadline(Duration::from_secs(1));
        let start = Instant::now();
        admitted(&quota, &tokens("acme/x/a", 60)).await;
        let waiting = tokens("acme/x/a", 40).wait(Duration::from_secs(12));
        admitted(&quota, &waiting).await;
        let waited = start.elapsed();
        let expected = Duration::from_secs(10)..Duration::from_millis(10_100);
        assert!(expected.contains(&waited), "{waited:?}");
        let too_late = tokens("acme/x/a", 60).wait(Duration::from_secs(12));
        let outcome = quota.take(&too_late).await;
        assert!(matches!(outcome, Ok(Outcome::Denied(_))));
        assert_eq!(
            start.elapsed(),
            waited,
            "it cannot pass in time: it does not wait"
        );
        // A take whose caller stopped waiting takes nothing.
        let given_up = quota.take(&waiting);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), given_up)
                .await
                .is_err()
        );
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert_eq!(remaining(&quota, "acme/x/a").await, 60);
    })
    .await;
}

#[tokio::test]
async fn a_take_with_an_id_is_retried_after_a_lost_answer() {
    bounded(async {
        let address = inproc();
        let listener = listen(&address);
        let policy = RetryPolicy::attempts(2).pauses(Duration::ZERO, Duration::ZERO);
        let connecting = tokio::spawn(async move { Client::connect(&address).await.unwrap() });
        let mut peer = Bare::accept_as_node(&listener, WINDOW).await;
        let client = connecting.await.unwrap();
        let quota = client.quota().retry(policy);
        let asking = tokio::spawn({
            let quota = quota.clone();
            async move { quota.take(&tokens("acme/x/a", 1)).await }
        });
        assert_eq!(peer.next().await.header.kind, Kind::TAKE);
        drop(peer);
        let error = asking.await.unwrap().unwrap_err();
        assert_eq!(
            (error.code, error.sent),
            (ErrorCode::Unconfirmed, Sent::Unknown)
        );
        let asking = tokio::spawn(async move { quota.take(&tokens("acme/x/a", 1).id("t")).await });
        let mut peer = Bare::accept_as_node(&listener, WINDOW).await;
        let first = peer.next().await;
        drop(peer);
        let mut peer = Bare::accept_as_node(&listener, WINDOW).await;
        let second = peer.next().await;
        assert_eq!(second.payload, first.payload);
        let mut outcomes = Vec::new();
        WireAdmitted::new(None, true, false).encode(std::iter::empty(), &mut outcomes);
        peer.frame(|out| {
            Outcomes::encode([].into_iter(), &outcomes, second.header.correlation, out);
        })
        .await;
        let outcome = asking.await.unwrap().unwrap();
        assert!(outcome.admitted().unwrap().is_repeat);
    })
    .await;
}

#[tokio::test]
async fn a_mismatched_answer_is_an_error() {
    bounded(async {
        let address = inproc();
        let listener = listen(&address);
        let connecting = tokio::spawn(async move { Client::connect(&address).await.unwrap() });
        let mut peer = Bare::accept_as_node(&listener, WINDOW).await;
        let quota = connecting.await.unwrap().quota();
        for outcomes in [&[][..], &[2, 0, 0, 0, 0, 2, 0, 0, 0, 0], &[9]] {
            let asking = tokio::spawn({
                let quota = quota.clone();
                async move { quota.take(&tokens("acme/x/a", 1)).await }
            });
            let asked = peer.next().await;
            peer.frame(|out| {
                Outcomes::encode([].into_iter(), outcomes, asked.header.correlation, out);
            })
            .await;
            let error = asking.await.unwrap().unwrap_err();
            assert_eq!((error.code, error.sent), (ErrorCode::Protocol, Sent::Yes));
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_has_no_quotas() {
    bounded(async {
        let listening = Server::new().listen(&inproc()).await.unwrap();
        let client = Client::connect(listening.address()).await.unwrap();
        let error = client.quota().take(&tokens("acme/x/a", 1)).await;
        assert_eq!(error.unwrap_err().code, ErrorCode::Unsupported);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_throttled_sender_gets_retry_after_and_retries_then() {
    bounded(async {
        let (_node, client) = node(&[bucket("sends", "sends", 2, "1/2s")]).await;
        let to = Name::parse("acme/demo/nobody").unwrap();
        client.send_reported(&to, Cast::All, "1").await.unwrap();
        client.send_reported(&to, Cast::All, "2").await.unwrap();
        let error = client.send_reported(&to, Cast::All, "3").await.unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::Throttled, Sent::No));
        let start = Instant::now();
        assert_eq!(error.retry_after, Some(Duration::from_secs(2)));
        let policy = RetryPolicy::attempts(2).pauses(Duration::ZERO, Duration::ZERO);
        let error = client.request(&to, "4").retry(policy).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NoResponder, "it was let pass");
        assert!(start.elapsed() >= Duration::from_secs(2));
    })
    .await;
}
