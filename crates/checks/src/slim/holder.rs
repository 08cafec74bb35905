//! Process that holds subscriptions: many connections, each with its own names.
//!
//! Each input line starts the next step: connect, subscribe, send a message to every name.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use slim::Name;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use bench::workload::role::{Failure, Ready, RoleSpec, lines, runtime, write_line};
use bench_messaging::agent::slim::channel::{self, Kind, ReceiveHalf, SendHalf};
use meter::clock::now_ns;

/// Parameters of the process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HolderSpec {
    /// Address of the node: `HOST:PORT`.
    pub(super) address: String,
    /// Number of connections, at least two: a node does not return a message to its own connection.
    pub(super) connections: u32,
    /// Number of subscriptions over all connections.
    pub(super) subscriptions: u32,
}

impl RoleSpec for HolderSpec {
    fn role(&self) -> &'static str {
        "slim-holder"
    }
}

/// Report after subscribing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubscriptionCounts {
    /// Number of acknowledged subscriptions.
    pub(super) acknowledged: u32,
    /// Duration of subscribing.
    pub(super) window_ns: u64,
}

/// Report after sending a message to every name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeliveryCount {
    /// Number of messages that arrived.
    pub(super) received: u32,
}

/// Maximum messages in flight.
const BURST: u32 = 64;

/// Maximum time for a message to arrive.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(10);

/// Plays the role.
///
/// # Errors
/// When the node cannot be reached or ends a stream.
pub fn hold(spec: &HolderSpec) -> Result<(), Failure> {
    runtime()?.block_on(play(spec, lines()))
}

async fn play(spec: &HolderSpec, mut lines: Receiver<()>) -> Result<(), Failure> {
    let started_ns = now_ns();
    let mut holders = Vec::new();
    for index in 0..spec.connections {
        let link = format!("bench-{index}");
        let (send_half, receive_half) = channel::open(&spec.address, &link).await?;
        let names = Names::of(spec, index);
        holders.push(Holder {
            send_half,
            receive_half,
            names,
        });
    }
    write_line(&Ready {
        address: None,
        setup_ns: now_ns() - started_ns,
    })?;
    if lines.recv().await.is_none() {
        return Ok(());
    }
    let started_ns = now_ns();
    let held = try_join_all(holders.iter_mut().map(Holder::subscribe)).await?;
    write_line(&SubscriptionCounts {
        acknowledged: held.iter().sum::<usize>() as u32,
        window_ns: now_ns() - started_ns,
    })?;
    if lines.recv().await.is_none() {
        return Ok(());
    }
    // The connections stay open until the suite ends.
    let senders = send_to_all(holders).await?;
    lines.recv().await;
    drop(senders);
    Ok(())
}

/// A connection and its names.
struct Holder {
    send_half: SendHalf,
    receive_half: ReceiveHalf,
    names: Names,
}

/// Range of names of one connection, one agent each.
#[derive(Debug, Clone, Copy)]
struct Names {
    first: u32,
    end: u32,
}

impl Names {
    fn of(spec: &HolderSpec, index: u32) -> Self {
        let share = |index: u32| {
            let before = u64::from(spec.subscriptions) * u64::from(index);
            (before / u64::from(spec.connections)) as u32
        };
        Self {
            first: share(index),
            end: share(index + 1),
        }
    }

    fn numbered(self) -> impl Iterator<Item = (u32, String)> {
        (self.first..self.end).map(|number| (number, format!("agent-{number}")))
    }
}

fn name(number: u32, agent: &str) -> Name<'_> {
    Name::new(["bench", "hold", agent], Some(u128::from(number) + 1))
}

impl Holder {
    /// Subscribes to all its names. Returns how many are acknowledged.
    async fn subscribe(&mut self) -> Result<usize, Failure> {
        let mut count = 0;
        for (number, agent) in self.names.numbered() {
            // A number of 0 requests no acknowledgement.
            self.send_half
                .subscribe(name(number, &agent), u64::from(number) + 1)?;
            count += 1;
        }
        self.receive_half.acknowledged(count).await
    }
}

/// Sends one message to every name from another connection, and reports how many arrived.
async fn send_to_all(holders: Vec<Holder>) -> Result<Vec<SendHalf>, Failure> {
    let arrived = Arc::new(Semaphore::new(0));
    let (mut senders, mut names) = (Vec::new(), Vec::new());
    for Holder {
        send_half,
        mut receive_half,
        names: own,
    } in holders
    {
        let arrived = arrived.clone();
        tokio::spawn(async move {
            // If a stream ends, its missing messages show it.
            while receive_half.published().await.is_ok() {
                arrived.add_permits(1);
            }
        });
        senders.push(send_half);
        names.push(own);
    }
    let (mut received, mut under_way) = (0, 0);
    let count = senders.len();
    for (index, own) in names.into_iter().enumerate() {
        let other = &mut senders[(index + 1) % count];
        for (number, agent) in own.numbered() {
            let from = name(u32::MAX, "sender");
            let to = name(number, &agent);
            other.publish(from, to, Kind::Counted, b"hello").await?;
            under_way += 1;
            if under_way == BURST {
                received += take(&arrived, under_way, ARRIVAL_LIMIT).await;
                under_way = 0;
            }
        }
    }
    received += take(&arrived, under_way, ARRIVAL_LIMIT).await;
    write_line(&DeliveryCount { received })?;
    Ok(senders)
}

/// Waits for `count` arrivals. Returns how many came in time.
async fn take(arrived: &Semaphore, count: u32, limit: Duration) -> u32 {
    match timeout(limit, arrived.acquire_many(count)).await {
        Ok(Ok(permits)) => {
            permits.forget();
            count
        }
        _ => {
            let there = u32::try_from(arrived.available_permits()).unwrap_or(count);
            arrived.forget_permits(there as usize) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subscription_name_belongs_to_one_connection() {
        let spec = HolderSpec {
            address: String::new(),
            connections: 7,
            subscriptions: 100,
        };
        let names = (0..spec.connections).flat_map(|index| Names::of(&spec, index).numbered());
        let numbers: Vec<_> = names.map(|(number, _)| number).collect();
        assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn messages_that_do_not_arrive_are_not_counted() {
        let arrived = Semaphore::new(5);
        let taken = |count| take(&arrived, count, Duration::ZERO);
        let runtime = runtime().unwrap();
        assert_eq!(runtime.block_on(taken(3)), 3);
        assert_eq!(runtime.block_on(taken(3)), 2);
        assert_eq!(arrived.available_permits(), 0);
    }
}
