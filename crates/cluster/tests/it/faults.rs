//! Faults of nodes, disks and links, in an order that follows from a seed.

use std::time::Duration;

use journal::ShardId;
use net::simulated::Weather;

use crate::disk::{fail_sync, fill};
use crate::world::World;

/// Longest time after its end in which a leader starts again within its lease, in milliseconds.
const LEASE_MS: u64 = 800;

/// Clocks differ by so much at most, in milliseconds.
const SKEW_MS_MAX: i64 = 9_000;

/// Seen faults of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// A node ends, or its power does.
    Stop,
    /// A stopped node starts.
    Start,
    /// The power of the leader fails, and it is back within its lease.
    LeaderBack,
    /// The power of all nodes fails at one moment.
    PowerCut,
    /// Nothing arrives in one direction between two nodes.
    OneWay,
    /// No other node reaches one node, and it reaches no other.
    Alone,
    /// Two nodes do not reach each other, and the third reaches both.
    Bridge,
    /// Heartbeats and votes arrive, and entries do not.
    DeadLog,
    /// Segments are lost, late, and break connections.
    Storm,
    /// The connections between two nodes break.
    Cut,
    /// Syncs take long.
    SlowDisk,
    /// No call of a disk returns.
    HangingDisk,
    /// A disk has room for no further segment.
    FullDisk,
    /// A sync fails, and the node ends.
    FailingSync,
    /// The clock of a node is wrong.
    Skew,
    /// All faults end.
    Heal,
}

const FAULTS: [Fault; 16] = [
    Fault::Stop,
    Fault::Start,
    Fault::LeaderBack,
    Fault::PowerCut,
    Fault::OneWay,
    Fault::Alone,
    Fault::Bridge,
    Fault::DeadLog,
    Fault::Storm,
    Fault::Cut,
    Fault::SlowDisk,
    Fault::HangingDisk,
    Fault::FullDisk,
    Fault::FailingSync,
    Fault::Skew,
    Fault::Heal,
];

/// Makes something fail, or ends all faults.
pub(crate) async fn disturb(world: &mut World) -> Fault {
    let fault = *world.rng.choice(&FAULTS).unwrap();
    let id = *world.rng.choice(&world.ids()).unwrap();
    let others: Vec<u64> = world.ids().into_iter().filter(|it| *it != id).collect();
    let other = *world.rng.choice(&others).unwrap();
    match fault {
        Fault::Stop => {
            let is_power_failure = world.rng.bool();
            world.stop(id, is_power_failure).await;
        }
        Fault::Start if world.is_running(id) => {}
        Fault::Start => world.open(id).await,
        Fault::LeaderBack => {
            if let Some(leader) = world.leader(ShardId(0)) {
                world.stop(leader, true).await;
                let pause = world.rng.u64(..LEASE_MS);
                world.run_for(Duration::from_millis(pause)).await;
                world.open(leader).await;
            }
        }
        Fault::PowerCut => {
            world.cut_power().await;
            for id in world.ids() {
                world.open(id).await;
            }
        }
        Fault::OneWay => world.links.block(id, other),
        Fault::Alone => others.iter().for_each(|it| world.links.block_both(id, *it)),
        Fault::Bridge => world.links.block_both(id, other),
        Fault::DeadLog => world.links.block_log(id, other),
        Fault::Storm => {
            let delay = *world.rng.choice(&[2, 20, 300]).unwrap();
            let weather = Weather {
                delay_max: Duration::from_millis(delay),
                loss_per_mille: world.rng.u32(..30),
                cut_per_ten_thousand: world.rng.u32(..30),
                ..Weather::STORM
            };
            world.links.network.set_weather(weather);
        }
        Fault::Cut => {
            let (one, other) = (crate::links::host(id), crate::links::host(other));
            world.links.network.cut_between(&one, &other);
        }
        Fault::SlowDisk => {
            let longest = *world.rng.choice(&[50, 900]).unwrap();
            world.set_sync(id, Duration::from_millis(longest));
        }
        Fault::HangingDisk => world.hang(id),
        Fault::FullDisk => fill(world.disk(id)),
        Fault::FailingSync if world.is_running(id) => fail_sync(world.disk(id)),
        Fault::FailingSync => {}
        Fault::Skew => {
            let skew = world.rng.i64(-SKEW_MS_MAX..=SKEW_MS_MAX);
            world.set_skew(id, skew);
        }
        Fault::Heal => world.heal().await,
    }
    fault
}
