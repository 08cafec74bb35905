//! Election, replication, failover, and agreement after faults.

use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use journal::ShardId;

use crate::faults::{Fault, disturb};
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
        world.quorum_checks = 1;
        for id in (1..=NODES).filter(|id| *id != leader) {
            world.stop(id, false).await;
        }
        // Both shards lose their quorum; what is acked now was under way, and is on a second disk.
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

/// Runs a world with faults to its end. Returns its figures, and the faults in their order.
fn run_seed(seed: u64) -> (Counts, Vec<Fault>) {
    let mut ran = (Counts::default(), Vec::new());
    run(async {
        let mut world = World::start(seed).await;
        world.run_for(3 * SECOND).await;
        let mut faults = Vec::new();
        for _ in 0..world.rng.usize(4..12) {
            faults.push(disturb(&mut world).await);
            let pause = world.rng.u64(50..3000);
            world.run_for(Duration::from_millis(pause)).await;
            world.purge().await;
        }
        world.agree().await;
        ran = (world.counts(), faults);
    });
    ran
}

/// Runs worlds, and prints the seed of a failed one: `cargo xtask sim --world consensus --seed S` runs
/// it again.
fn run_seeds(seeds: Range<u64>) {
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| run_seed(seed))) {
            Ok((counts, faults)) => {
                let is_used = counts.acked > 20 && counts.elections > 1 && counts.reads > 20;
                assert!(is_used, "seed {seed}: {counts:?} {faults:?}");
            }
            Err(_) => panic!("the world of seed {seed} failed"),
        }
    }
}

#[test]
fn nodes_agree_after_faults_of_nodes_disks_and_links() {
    run_seeds(0..SEEDS);
}

/// Long run, by `cargo xtask sim`.
#[test]
#[ignore = "minutes"]
fn nodes_agree_in_thousands_of_worlds() {
    #[expect(
        clippy::disallowed_methods,
        reason = "which seeds to run is no matter of configuration"
    )]
    let seeds = std::env::var("TELPHER_SIM_SEEDS").unwrap_or_else(|_| "10..1000".to_owned());
    let (start, end) = seeds.split_once("..").unwrap();
    run_seeds(start.parse().unwrap()..end.parse().unwrap());
}

#[test]
fn one_seed_gives_one_run() {
    assert_eq!(run_seed(5), run_seed(5));
}
