//! Batches that are decompressed before the append: on other threads than the connections, a few at
//! a time, in the order of their connection.

use std::collections::VecDeque;
use std::sync::Arc;

use kafka::ErrorCode;
use kafka::produce::Request;
use parking_lot::Mutex;
use platform::{Offload, Overloaded, Work};

use crate::client::{batch, produce};
use crate::producing::{compact, packed};
use crate::{Bench, Client};

/// Work that is done when the test says so.
#[derive(Default)]
struct Queue(Mutex<VecDeque<Work>>);

impl Offload for Queue {
    fn offload(&self, work: Work) -> Result<(), Overloaded> {
        self.0.lock().push_back(work);
        Ok(())
    }
}

impl Queue {
    fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Does the oldest work; whether there was any.
    fn run_one(&self) -> bool {
        let work = self.0.lock().pop_front();
        let is_any = work.is_some();
        if let Some(work) = work {
            work();
        }
        is_any
    }
}

/// A node whose topic `t` is compacted, and the work that it gives away.
async fn compacted() -> (Bench, Client, Arc<Queue>) {
    let mut bench = Bench::new();
    let mut client = bench.with_topic("t").await;
    compact(&mut bench, &mut client, "t").await;
    let queue = Arc::new(Queue::default());
    bench.offload.switch_to(queue.clone());
    (bench, client, queue)
}

async fn base_offset(client: &mut Client) -> i64 {
    let (_, response) = client.receive::<Request>(9).await;
    let partition = &response.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, ErrorCode::None);
    partition.base_offset
}

#[tokio::test]
async fn two_batches_are_unpacked_at_once_and_others_wait() {
    let (mut bench, first, queue) = compacted().await;
    let mut clients = [first, bench.connect(), bench.connect()];
    for client in &mut clients {
        client.send(9, &produce("t", 1, packed(10_000))).await;
    }
    // A connection that unpacks nothing is served.
    bench.connect().flush_requests().await;
    assert_eq!(queue.len(), 2);
    assert!(queue.run_one());
    bench.connect().flush_requests().await;
    assert_eq!(queue.len(), 2, "the third begins when the first has ended");
    while queue.run_one() {
        bench.connect().flush_requests().await;
    }
    bench.sync();
    let mut offsets = Vec::new();
    for client in &mut clients {
        offsets.push(base_offset(client).await);
    }
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 1, 2]);
}

#[tokio::test]
async fn an_uncompressed_batch_waits_for_an_earlier_batch_in_decompression() {
    let (mut bench, mut client, queue) = compacted().await;
    client.send(9, &produce("t", 1, packed(10_000))).await;
    client.send(9, &produce("t", 1, batch(b"second"))).await;
    let mut other = bench.connect();
    other.send(9, &produce("t", 1, batch(b"other"))).await;
    bench.connect().flush_requests().await;
    bench.sync();
    assert_eq!(base_offset(&mut other).await, 0);
    assert_eq!(queue.len(), 1);
    assert!(queue.run_one());
    bench.connect().flush_requests().await;
    bench.sync();
    assert_eq!(base_offset(&mut client).await, 1);
    assert_eq!(base_offset(&mut client).await, 2);
}

#[tokio::test]
async fn an_abandoned_request_frees_its_slot_when_its_decompression_ends() {
    let (bench, mut first, queue) = compacted().await;
    let mut clients = vec![bench.connect(), bench.connect()];
    for client in &mut clients {
        client.send(9, &produce("t", 1, packed(10_000))).await;
    }
    bench.connect().flush_requests().await;
    drop(clients);
    first.send(9, &produce("t", 1, packed(10_000))).await;
    bench.connect().flush_requests().await;
    assert_eq!(queue.len(), 2, "the work of the others is not over");
    assert!(queue.run_one());
    bench.connect().flush_requests().await;
    assert_eq!(queue.len(), 2);
}
