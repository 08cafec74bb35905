//! `bench agent --protocol slim --subscriptions N`: what a subscription takes of a node's memory.
//!
//! A process of ours opens connections to a node and subscribes over them to names that are each one's
//! own. What the node takes with its connections beyond what it took before is the connections', and
//! what it takes with its subscriptions beyond that is theirs. Then every name is sent a message: what is
//! not reached was not held.

use std::thread;
use std::time::Duration;

use serde::Serialize;

use super::holder::{Held, HolderSpec, Reached};
use super::nodes::Through;
use super::peers;
use crate::process::{Memory, Role, Watch};
use crate::workload::child::{Actor, Pin};
use crate::workload::role::{self, Ready, Spec};
use crate::workload::{Surroundings, WorkloadError};

/// What a node takes with so many connections and subscriptions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SubscriptionMemory {
    /// The node's name in results.
    pub target: &'static str,
    /// Connections.
    pub connections: u32,
    /// Subscriptions of all of them together, each to a name of its own.
    pub subscriptions: u32,
    /// Of those, how many the node acknowledged.
    pub acknowledged: u32,
    /// How many of the names a message reached.
    pub reached: u32,
    /// What subscribing took, all connections at once.
    pub seconds: f64,
    /// The node's processor time for each subscription, in microseconds.
    pub cpu_us_each: Option<f64>,
    /// Resident memory before.
    pub empty_rss_bytes: u64,
    /// With all connections, and nothing subscribed.
    pub connected_rss_bytes: u64,
    /// With all subscriptions.
    pub full_rss_bytes: u64,
    /// What a connection takes.
    pub bytes_per_connection: f64,
    /// What a subscription takes beside its connection.
    pub bytes_per_subscription: f64,
}

/// After which a node has put away what it needed to answer.
const SETTLE: Duration = Duration::from_secs(2);

/// How long all subscriptions together may take.
const STEP_LIMIT: Duration = Duration::from_secs(300);

/// What warms a node up: what its first answers need is not the subscriptions'.
const WARM_UP: (u32, u32) = (8, 64);

/// Measures our node and, where it is there, SLIM's own, a node of its own for each number of
/// connections.
///
/// # Errors
/// When a process fails.
pub fn run_subscriptions(
    surroundings: &Surroundings,
    subscriptions: u32,
    connections: &[u32],
    mut told: impl FnMut(&str),
) -> Result<Vec<SubscriptionMemory>, WorkloadError> {
    let directory = surroundings.peers.as_ref().map(|_| peers(surroundings));
    let directory = directory.transpose()?;
    let mut found = Vec::new();
    for connections in connections {
        let ours = Through::ours(&surroundings.executable, Pin::Nowhere)?;
        let theirs = directory.map(|directory| Through::theirs(directory, Pin::Nowhere));
        for node in [Some(ours), theirs.transpose()?].into_iter().flatten() {
            told(&format!(
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
    mut node: Through,
    connections: u32,
    subscriptions: u32,
) -> Result<SubscriptionMemory, WorkloadError> {
    let (warm_connections, warm_subscriptions) = WARM_UP;
    let mut warm_up = holder(surroundings, &node, warm_connections, warm_subscriptions)?;
    subscribe(&mut warm_up, &mut node)?;
    reach(&mut warm_up, &mut node)?;
    drop(warm_up);
    let empty = settled(&mut node)?;
    let mut holder = holder(surroundings, &node, connections, subscriptions)?;
    let connected = settled(&mut node)?;
    let watch = Watch::start(&[(Role::Node, node.pid())])?;
    let held = subscribe(&mut holder, &mut node)?;
    let usage = watch.stop();
    let full = settled(&mut node)?;
    let Reached { received } = reach(&mut holder, &mut node)?;
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

/// A process that has connected.
fn holder(
    surroundings: &Surroundings,
    node: &Through,
    connections: u32,
    subscriptions: u32,
) -> Result<Actor, WorkloadError> {
    let spec = Spec::SlimHolder(HolderSpec {
        address: node.url.trim_start_matches("http://").to_owned(),
        connections,
        subscriptions,
    });
    let mut holder = role::start(&surroundings.executable, &spec, Pin::Nowhere)?;
    let Ready { .. } = holder.json()?;
    Ok(holder)
}

fn subscribe(holder: &mut Actor, node: &mut Through) -> Result<Held, WorkloadError> {
    holder.say("subscribe")?;
    Ok(holder.json_while(STEP_LIMIT, || node.check_alive())?)
}

fn reach(holder: &mut Actor, node: &mut Through) -> Result<Reached, WorkloadError> {
    holder.say("reach")?;
    Ok(holder.json_while(STEP_LIMIT, || node.check_alive())?)
}

/// The node's memory once it does nothing any more.
fn settled(node: &mut Through) -> Result<u64, WorkloadError> {
    thread::sleep(SETTLE);
    node.check_alive()?;
    let memory = Memory::of(node.pid());
    let gone = || WorkloadError::Node(format!("{} has ended", node.target));
    Ok(memory.ok_or_else(gone)?.rss_bytes)
}
