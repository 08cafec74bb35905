//! `bench agent --protocol slim --subscriptions N`: memory that a node needs for a subscription.
//!
//! A process opens connections to a node and subscribes over each of them to its own names. The
//! growth of the node's memory after connecting is the cost of the connections; the growth after
//! subscribing is the cost of the subscriptions. Then every name is sent a message: a name that is
//! not reached was not subscribed.

mod holder;

use std::thread;
use std::time::Duration;

use serde::Serialize;

use holder::{DeliveryCount, SubscriptionCounts};
pub use holder::{HolderSpec, hold};

use bench::process::{Memory, Role, Watch};
use bench::workload::child::{Actor, Pin};
use bench::workload::error::WorkloadError;
use bench::workload::role::{self, Ready};
use bench::workload::surroundings::Surroundings;
use bench_messaging::agent::slim::nodes::TestedNode;
use bench_messaging::agent::slim::peers;

/// Memory of a node with its connections and subscriptions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SubscriptionMemory {
    /// Name of the node in results.
    pub target: &'static str,
    /// Number of connections.
    pub connections: u32,
    /// Number of subscriptions over all connections, each to its own name.
    pub subscriptions: u32,
    /// Number of subscriptions that the node acknowledged.
    pub acknowledged: u32,
    /// Number of names that a message reached.
    pub reached: u32,
    /// Seconds that subscribing took, over all connections in parallel.
    pub seconds: f64,
    /// CPU time of the node per subscription, in microseconds.
    pub cpu_us_each: Option<f64>,
    /// Resident memory before connecting.
    pub empty_rss_bytes: u64,
    /// Resident memory with all connections and no subscription.
    pub connected_rss_bytes: u64,
    /// Resident memory with all subscriptions.
    pub full_rss_bytes: u64,
    /// Resident memory per connection.
    pub bytes_per_connection: f64,
    /// Resident memory per subscription, without its connection.
    pub bytes_per_subscription: f64,
}

/// Time for the node to release the memory that it needed to answer.
const SETTLE: Duration = Duration::from_secs(2);

/// Time limit for all subscriptions together.
const STEP_LIMIT: Duration = Duration::from_secs(300);

/// Connections and subscriptions of the warm-up, so that one-time costs of the node are not
/// counted.
const WARM_UP: (u32, u32) = (8, 64);

/// Measures our node and, if it is available, SLIM's own, with a new node for each number of
/// connections.
///
/// # Errors
/// When a process fails.
pub fn run(
    surroundings: &Surroundings,
    subscriptions: u32,
    connections: &[u32],
    mut progress: impl FnMut(&str),
) -> Result<Vec<SubscriptionMemory>, WorkloadError> {
    let directory = surroundings.peers.as_ref().map(|_| peers(surroundings));
    let directory = directory.transpose()?;
    let mut found = Vec::new();
    for connections in connections {
        let ours = TestedNode::ours(&surroundings.executable, Pin::Nowhere)?;
        let theirs = directory.map(|directory| TestedNode::theirs(directory, Pin::Nowhere));
        for node in [Some(ours), theirs.transpose()?].into_iter().flatten() {
            progress(&format!(
                "{}: {subscriptions} subscriptions over {connections} connections",
                node.target
            ));
            found.push(measure(surroundings, node, *connections, subscriptions)?);
        }
    }
    Ok(found)
}

fn measure(
    surroundings: &Surroundings,
    mut node: TestedNode,
    connections: u32,
    subscriptions: u32,
) -> Result<SubscriptionMemory, WorkloadError> {
    let (warm_connections, warm_subscriptions) = WARM_UP;
    let mut warm_up = holder(surroundings, &node, warm_connections, warm_subscriptions)?;
    subscribe(&mut warm_up, &mut node)?;
    send_to_all(&mut warm_up, &mut node)?;
    drop(warm_up);
    let empty = settled_memory(&mut node)?;
    let mut holder = holder(surroundings, &node, connections, subscriptions)?;
    let connected = settled_memory(&mut node)?;
    let watch = Watch::start(&[(Role::Node, node.pid())])?;
    let held = subscribe(&mut holder, &mut node)?;
    let usage = watch.stop();
    let full = settled_memory(&mut node)?;
    let DeliveryCount { received } = send_to_all(&mut holder, &mut node)?;
    let used_ns = usage.roles.iter().find_map(|role| role.cpu_ns);
    let each =
        |more: u64, less: u64, count: u32| more.saturating_sub(less) as f64 / f64::from(count);
    Ok(SubscriptionMemory {
        target: node.target,
        connections,
        subscriptions,
        acknowledged: held.acknowledged,
        reached: received,
        seconds: held.window_ns as f64 / 1e9,
        cpu_us_each: used_ns.map(|ns| ns as f64 / 1e3 / f64::from(subscriptions)),
        empty_rss_bytes: empty,
        connected_rss_bytes: connected,
        full_rss_bytes: full,
        bytes_per_connection: each(connected, empty, connections),
        bytes_per_subscription: each(full, connected, subscriptions),
    })
}

/// Starts a process that holds subscriptions, and waits until it has connected.
fn holder(
    surroundings: &Surroundings,
    node: &TestedNode,
    connections: u32,
    subscriptions: u32,
) -> Result<Actor, WorkloadError> {
    let spec = HolderSpec {
        address: node.url.trim_start_matches("http://").to_owned(),
        connections,
        subscriptions,
    };
    let mut holder = role::start(&surroundings.executable, &spec, Pin::Nowhere)?;
    let Ready { .. } = holder.json()?;
    Ok(holder)
}

fn subscribe(
    holder: &mut Actor,
    node: &mut TestedNode,
) -> Result<SubscriptionCounts, WorkloadError> {
    holder.write_line("subscribe")?;
    Ok(holder.json_while(STEP_LIMIT, || node.check_alive())?)
}

fn send_to_all(holder: &mut Actor, node: &mut TestedNode) -> Result<DeliveryCount, WorkloadError> {
    holder.write_line("reach")?;
    Ok(holder.json_while(STEP_LIMIT, || node.check_alive())?)
}

/// Returns the node's memory when it is idle.
fn settled_memory(node: &mut TestedNode) -> Result<u64, WorkloadError> {
    thread::sleep(SETTLE);
    node.check_alive()?;
    let memory = Memory::of(node.pid());
    let ended = || WorkloadError::Node(format!("{} has ended", node.target));
    Ok(memory.ok_or_else(ended)?.rss_bytes)
}
