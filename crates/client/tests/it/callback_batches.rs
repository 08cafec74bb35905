//! Callbacks that take the outcomes that arrived together, and calls that are made together.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use client::{Bytes, Callbacks, Caller, Client, ErrorCode, ReplyBatch};
use model::ByteSize;
use parking_lot::Mutex;

use crate::support::{Gate, Probe, bounded, echo, over_every_transport};

/// Outcomes by tag.
type Seen = Arc<Mutex<BTreeMap<u64, Vec<Result<Bytes, ErrorCode>>>>>;

fn note(seen: &Seen, tag: u64, outcome: Result<&[u8], &client::CallError>) {
    let outcome = outcome.map(Bytes::copy_from_slice).map_err(|e| e.code);
    seen.lock().entry(tag).or_default().push(outcome);
}

#[tokio::test]
async fn each_outcome_is_in_one_batch() {
    bounded(over_every_transport(&echo(), async |caller: Caller| {
        let (seen, probe) = (Seen::default(), Probe::default());
        let (noted, counted) = (seen.clone(), probe.clone());
        let callbacks = caller.callbacks_in_batches("echo", move |batch| {
            let count = batch.len();
            for (tag, outcome) in batch.by_ref() {
                note(&noted, tag, outcome);
            }
            assert_eq!(batch.len(), 0);
            counted.add(count);
        });
        let bodies: Vec<String> = (0..100).map(|tag| tag.to_string()).collect();
        let calls: Vec<(u64, &[u8])> = (0..).zip(bodies.iter().map(|b| b.as_bytes())).collect();
        callbacks.call_many(&calls).unwrap();
        probe.reaches(100).await;
        let seen = seen.lock();
        assert_eq!(seen.len(), 100);
        for (tag, outcomes) in seen.iter() {
            assert_eq!(outcomes[..], [Ok(Bytes::from(tag.to_string()))]);
        }
    }))
    .await;
}

#[tokio::test]
async fn a_batch_makes_the_next_calls_together() {
    const IN_FLIGHT: usize = 16;
    const CALLS: usize = 2_000;
    bounded(over_every_transport(&echo(), async |caller: Caller| {
        let (made, ended) = (Arc::new(Mutex::new(IN_FLIGHT)), Probe::default());
        let counted = ended.clone();
        let callbacks = Arc::new_cyclic(|own: &Weak<Callbacks>| {
            let own = own.clone();
            caller.callbacks_in_batches("echo", move |batch: &mut ReplyBatch<'_>| {
                let ended: Vec<u64> = batch
                    .map(|(tag, outcome)| {
                        assert_eq!(outcome.unwrap(), b"x");
                        tag
                    })
                    .collect();
                let mut made = made.lock();
                let next: Vec<(u64, &[u8])> = ended
                    .iter()
                    .take(CALLS - *made)
                    .map(|tag| (*tag, &b"x"[..]))
                    .collect();
                *made += next.len();
                own.upgrade().unwrap().call_many(&next).unwrap();
                counted.add(ended.len());
            })
        });
        let first: Vec<(u64, &[u8])> = (0..IN_FLIGHT as u64).map(|tag| (tag, &b"x"[..])).collect();
        callbacks.call_many(&first).unwrap();
        ended.reaches(CALLS).await;
        assert_eq!(ended.count(), CALLS);
    }))
    .await;
}

#[tokio::test]
async fn call_many_makes_the_calls_before_the_refused_one() {
    bounded(async {
        let gate = Gate::new();
        let server = gate.on(echo()).frame_size_max(ByteSize::bytes(1000));
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let builder = Client::builder().in_flight_max(3);
        let caller = builder.connect_caller(listening.address()).await.unwrap();
        let (seen, probe) = (Seen::default(), Probe::default());
        let (noted, counted) = (seen.clone(), probe.clone());
        let callbacks = caller.callbacks_in_batches("wait", move |batch| {
            for (tag, outcome) in batch {
                note(&noted, tag, outcome);
                counted.add(1);
            }
        });
        callbacks.call_many(&[]).unwrap();
        let large = [7; 1001];
        let refused = callbacks
            .call_many(&[(0, b"a"), (1, &large), (2, b"b")])
            .unwrap_err();
        assert_eq!(
            (refused.accepted, refused.error.code),
            (1, ErrorCode::TooLarge)
        );
        let refused = callbacks
            .call_many(&[(3, b"c"), (4, b"d"), (5, b"e"), (6, b"f")])
            .unwrap_err();
        assert_eq!((refused.accepted, refused.error.code), (2, ErrorCode::Busy));
        let text = refused.to_string();
        assert!(
            text.starts_with("call 2 of a batch (from 0) was refused: "),
            "{text}"
        );
        gate.unblock(3);
        probe.reaches(3).await;
        let replies = [(0, "a"), (3, "c"), (4, "d")];
        let expected = replies.map(|(tag, body)| (tag, vec![Ok(Bytes::from(body))]));
        assert_eq!(*seen.lock(), BTreeMap::from(expected));
    })
    .await;
}

#[tokio::test]
async fn a_panic_in_a_batch_loses_no_other_outcome() {
    bounded(over_every_transport(&echo(), async |caller: Caller| {
        let (seen, probe) = (Seen::default(), Probe::default());
        let (noted, counted) = (seen.clone(), probe.clone());
        let callbacks = caller.callbacks_in_batches("echo", move |batch| {
            for (tag, outcome) in batch {
                note(&noted, tag, outcome);
                counted.add(1);
                assert!(tag % 10 != 3, "this one fails on purpose");
            }
        });
        let calls: Vec<(u64, &[u8])> = (0..50).map(|tag| (tag, &b"x"[..])).collect();
        callbacks.call_many(&calls).unwrap();
        probe.reaches(50).await;
        assert!(seen.lock().values().all(|outcomes| outcomes.len() == 1));
        assert_eq!(caller.call("echo", "after").await.unwrap(), "after");
    }))
    .await;
}
