//! Leaders that are cut off, back, slow or full.

use std::time::Duration;

use journal::ShardId;

use crate::agreement::run;
use crate::disk::{fail_sync, fill};
use crate::world::{NODES, World};

const SECOND: Duration = Duration::from_secs(1);

/// A cluster of three with a node that serves, and that node and the two others.
async fn served(seed: u64) -> (World, u64, [u64; 2]) {
    let mut world = World::start(seed).await;
    world
        .run_until("no service", |it| it.serving().is_some())
        .await;
    world.run_for(SECOND).await;
    let leader = world.serving().unwrap();
    let others: Vec<u64> = (1..=NODES).filter(|it| *it != leader).collect();
    (world, leader, [others[0], others[1]])
}

#[test]
fn leader_that_is_back_within_its_lease_has_all_it_decided() {
    run(async {
        for seed in 0..4 {
            let (mut world, leader, _) = served(100 + seed).await;
            world.stop(leader, false).await;
            let pause = world.rng.u64(..800);
            world.run_for(Duration::from_millis(pause)).await;
            world.open(leader).await;
            world.run_for(3 * SECOND).await;
            world.agree().await;
        }
    });
}

#[test]
fn follower_that_does_not_hear_the_leader_deposes_no_leader() {
    run(async {
        let (mut world, leader, [one, _]) = served(110).await;
        let term = world.node(leader).status(ShardId(0)).term;
        world.links.block_both(leader, one);
        world.run_for(8 * SECOND).await;
        world.links.network.heal();
        world.run_for(3 * SECOND).await;
        let status = world.node(leader).status(ShardId(0));
        assert!(status.is_leader, "{status:?}");
        assert_eq!(status.term, term, "the other follower has heard the leader");
        world.agree().await;
    });
}

#[test]
fn leader_that_reaches_no_member_is_replaced_and_shows_no_other_records() {
    run(async {
        let (mut world, leader, [one, other]) = served(120).await;
        world.links.block_both(leader, one);
        world.links.block_both(leader, other);
        world.run_for(SECOND / 2).await;
        let acked = world.acked();
        world
            .run_until("no other service", |it| {
                it.serving().is_some_and(|serving| serving != leader)
            })
            .await;
        world.run_for(SECOND).await;
        assert!(world.acked() > acked + 20);
        world.agree().await;
    });
}

#[test]
fn blocks_that_are_refused_after_a_lease_are_taken_in_their_order() {
    run(async {
        let (mut world, leader, [one, other]) = served(125).await;
        // Longer than a lease, and shorter than an election needs.
        for _ in 0..4 {
            world.links.block_both(leader, one);
            world.links.block_both(leader, other);
            world.run_for(SECOND).await;
            world.links.network.heal();
            world.run_for(SECOND).await;
        }
        let refused = |shard| world.node(leader).status(shard).refused_proposals;
        assert!(refused(ShardId(0)) > 0 && refused(ShardId(1)) > 0);
        assert_eq!(world.node(leader).failure(), None);
        world.agree().await;
    });
}

#[test]
fn services_that_are_opened_again_in_one_term_see_all_that_was_decided() {
    run(async {
        let (mut world, leader, others) = served(126).await;
        let term = world.node(leader).status(ShardId(0)).term;
        for other in others {
            world.stop(other, false).await;
        }
        world
            .run_until("services without a quorum", |it| it.serving().is_none())
            .await;
        world.run_for(SECOND).await;
        for other in others {
            world.open(other).await;
        }
        world
            .run_until("no service", |it| it.serving().is_some())
            .await;
        assert_eq!(world.serving(), Some(leader));
        assert_eq!(world.node(leader).status(ShardId(0)).term, term);
        world.run_for(SECOND).await;
        world.agree().await;
    });
}

#[test]
fn dead_log_links_end_no_acknowledged_record() {
    run(async {
        let (mut world, leader, [one, other]) = served(130).await;
        // A quorum is left.
        world.links.block_log(leader, one);
        let acked = world.acked();
        world.run_for(2 * SECOND).await;
        assert!(world.acked() > acked + 20);
        // None is: heartbeats alone commit nothing.
        world.links.block_log(leader, other);
        world.run_for(SECOND / 10).await;
        let acked = world.acked();
        world.run_for(SECOND / 2).await;
        assert_eq!(world.acked(), acked);
        world.run_for(5 * SECOND).await;
        world.agree().await;
    });
}

#[test]
fn leader_whose_disk_hangs_hands_over() {
    run(async {
        let (mut world, leader, _) = served(140).await;
        world.hang(leader);
        world
            .run_until("no other service", |it| {
                it.serving().is_some_and(|serving| serving != leader)
            })
            .await;
        let acked = world.acked();
        world.run_for(SECOND).await;
        assert!(world.acked() > acked + 20);
        world.agree().await;
    });
}

#[test]
fn nodes_with_failed_and_full_disks_lose_nothing() {
    run(async {
        let (mut world, leader, [one, other]) = served(150).await;
        fail_sync(world.disk(leader));
        world
            .run_until("no failure", |it| !it.is_running(leader))
            .await;
        world
            .run_until("no other service", |it| it.serving().is_some())
            .await;
        world.open(leader).await;
        world.run_for(SECOND).await;
        // On one node the others go on; on all nothing can.
        fill(world.disk(one));
        let acked = world.acked();
        world.run_for(8 * SECOND).await;
        assert!(world.acked() > acked + 20);
        fill(world.disk(other));
        fill(world.disk(leader));
        world.run_for(8 * SECOND).await;
        world.agree().await;
    });
}

#[test]
fn power_cut_of_all_nodes_loses_nothing_acknowledged() {
    run(async {
        for seed in 0..2 {
            let (mut world, ..) = served(160 + seed).await;
            for _ in 0..3 {
                world.cut_power().await;
                for id in world.ids() {
                    world.open(id).await;
                }
                let pause = world.rng.u64(200..4000);
                world.run_for(Duration::from_millis(pause)).await;
            }
            world.agree().await;
        }
    });
}

#[test]
fn times_of_records_do_not_go_back_under_leaders_with_wrong_clocks() {
    run(async {
        let (mut world, leader, [one, other]) = served(170).await;
        world.set_skew(leader, 8_000);
        world.set_skew(one, -8_000);
        world.run_for(SECOND).await;
        world.stop(leader, true).await;
        world.run_for(4 * SECOND).await;
        world.open(leader).await;
        world.stop(other, false).await;
        world.run_for(4 * SECOND).await;
        world.agree().await;
    });
}

#[test]
fn node_on_a_copy_of_its_newest_disk_takes_part() {
    run(async {
        let (mut world, leader, [one, _]) = served(180).await;
        world.stop(one, false).await;
        let image = world.copy_disk(one);
        world.run_for(2 * SECOND).await;
        world.replace_disk(one, image);
        world.open(one).await;
        world.run_for(SECOND).await;
        world.stop(leader, true).await;
        let acked = world.acked();
        world.run_for(4 * SECOND).await;
        assert!(world.acked() > acked + 20);
        world.agree().await;
    });
}
