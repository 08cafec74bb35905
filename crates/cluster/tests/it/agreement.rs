//! Election, replication, failover, and agreement after faults.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use journal::ShardId;

use crate::world::{Counts, NODES, World};

const SEEDS: u64 = 3;

const SECOND: Duration = Duration::from_secs(1);

/// Runs a world to its end.
pub(crate) fn run(world: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(world);
}

#[test]
fn three_nodes_elect_a_leader_and_replicate() {
    run(async {
        let mut world = World::start(1).await;
        world.run_for(6 * SECOND).await;
        assert!(world.acked() > 50, "{} acked", world.acked());
        assert!(world.leader(ShardId(0)).is_some());
        world.agree().await;
    });
}

#[test]
fn another_node_leads_after_the_leader_was_killed() {
    run(async {
        let mut world = World::start(2).await;
        world.run_for(4 * SECOND).await;
        let killed = world.leader(ShardId(0)).unwrap();
        world.stop(killed, true).await;
        let acked = world.acked();
        world.run_for(4 * SECOND).await;
        let leader = world.leader(ShardId(0)).unwrap();
        assert_ne!(leader, killed);
        assert!(world.acked() > acked + 20, "{acked}, {}", world.acked());
        world.open(killed).await;
        world.run_for(SECOND).await;
        world.agree().await;
    });
}

#[test]
fn leader_without_followers_acks_nothing() {
    run(async {
        let mut world = World::start(3).await;
        world.run_for(4 * SECOND).await;
        let leader = world.leader(ShardId(0)).unwrap();
        for id in (1..=NODES).filter(|id| *id != leader) {
            world.stop(id, false).await;
        }
        // Both shards lose their quorum; what is acked now was under way.
        world.run_for(SECOND / 10).await;
        let acked = world.acked();
        world.run_for(10 * SECOND).await;
        assert_eq!(world.acked(), acked);
        world.agree().await;
    });
}

#[test]
fn purged_blocks_are_filed_on_all_nodes() {
    run(async {
        let mut world = World::start(4).await;
        for _ in 0..10 {
            world.run_for(SECOND).await;
            world.purge().await;
        }
        assert!(world.has_filed());
        world.agree().await;
    });
}

/// Does something harmful, or ends it.
async fn disturb(world: &mut World) {
    let id = world.rng.u64(1..=NODES);
    let other = 1 + id % NODES;
    match world.rng.u8(..10) {
        0 | 1 if world.is_running(id) => {
            let is_power_failure = world.rng.bool();
            world.stop(id, is_power_failure).await;
        }
        0..=2 if !world.is_running(id) => world.open(id).await,
        3 => {
            if let Some(leader) = world.leader(ShardId(0)) {
                world.stop(leader, true).await;
                world.open(leader).await;
            }
        }
        4 => world.network.block(id, other),
        5 => {
            for peer in (1..=NODES).filter(|peer| *peer != id) {
                world.network.block(id, peer);
                world.network.block(peer, id);
            }
        }
        6 => {
            let longest = *[2, 50, 900].get(world.rng.usize(..3)).unwrap();
            world.set_sync(id, Duration::from_millis(longest));
        }
        7 => {
            let longest = *[1, 20, 300].get(world.rng.usize(..3)).unwrap();
            world.network.set_delay(Duration::from_millis(longest));
        }
        8 => {
            for id in 1..=NODES {
                world.stop(id, true).await;
            }
            for id in 1..=NODES {
                world.open(id).await;
            }
        }
        _ => world.network.heal(),
    }
}

fn run_seed(seed: u64) -> Counts {
    let mut counts = Counts::default();
    run(async {
        let mut world = World::start(seed).await;
        world.run_for(3 * SECOND).await;
        for _ in 0..world.rng.usize(4..12) {
            disturb(&mut world).await;
            let pause = world.rng.u64(50..3000);
            world.run_for(Duration::from_millis(pause)).await;
            world.purge().await;
        }
        world.agree().await;
        counts = world.counts();
    });
    counts
}

#[test]
fn nodes_agree_after_crashes_partitions_and_slow_disks() {
    let seed = std::env::var_os("CLUSTER_SEED").and_then(|it| it.to_str()?.parse().ok());
    let seeds = seed.map_or(0..SEEDS, |seed| seed..seed + 1);
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| run_seed(seed))) {
            Ok(counts) => assert!(counts.acked > 20 && counts.elections > 1, "{counts:?}"),
            Err(_) => panic!("seed {seed} failed: CLUSTER_SEED={seed}"),
        }
    }
}

#[test]
fn one_seed_gives_one_run() {
    assert_eq!(run_seed(5), run_seed(5));
}
