//! Members that come back older than they were: they are kept out.

use std::time::Duration;

use journal::ShardId;

use crate::agreement::run;
use crate::links::host;
use crate::world::{NODES, World};

const SECOND: Duration = Duration::from_secs(1);

/// A member that does not lead, and one that does.
fn follower_and_leader(world: &World) -> (u64, u64) {
    let leader = world.leader(ShardId(0)).unwrap();
    let follower = (1..=NODES).find(|id| Some(*id) != world.leader(ShardId(0)));
    (follower.unwrap(), leader)
}

/// Runs until a member takes no part, and returns why.
async fn run_until_outdated(world: &mut World, id: u64) -> String {
    for _ in 0..100 {
        world.run_for(SECOND / 10).await;
        if let Some(outdated) = world.node(id).outdated().borrow().as_ref() {
            return outdated.to_string();
        }
    }
    panic!("node {id} runs from an old copy, and was admitted");
}

/// Checks that the running nodes elect no leader, and that they serve again when a stopped one is back.
async fn check_no_quorum_without(world: &mut World, stopped: u64) {
    let acked = world.acked();
    world.run_for(10 * SECOND).await;
    assert_eq!(world.leader(ShardId(0)), None);
    assert_eq!(world.acked(), acked);
    world.open(stopped).await;
    world.run_for(4 * SECOND).await;
    assert!(world.acked() > acked + 20);
}

/// A cluster whose member runs from a copy of its disk that is some seconds old.
async fn with_old_copy(seed: u64) -> (World, u64) {
    let mut world = World::start(seed).await;
    world.run_for(4 * SECOND).await;
    let (copied, _) = follower_and_leader(&world);
    world.stop(copied, seed.is_multiple_of(2)).await;
    let copy = world.copy_disk(copied);
    world.open(copied).await;
    world.run_for(4 * SECOND).await;
    world.stop(copied, true).await;
    world.replace_disk(copied, copy);
    (world, copied)
}

#[test]
fn old_copy_is_kept_out_by_name_and_the_others_go_on() {
    for seed in 50..52 {
        run(async {
            let (mut world, copied) = with_old_copy(seed).await;
            world.open(copied).await;
            let blocks = world.last_blocks(copied);
            let reason = run_until_outdated(&mut world, copied).await;
            assert!(reason.contains(&format!("node {copied} ")), "{reason}");
            assert!(reason.contains("of shard "), "{reason}");
            let acked = world.acked();
            world.run_for(3 * SECOND).await;
            assert!(world.acked() > acked + 20, "{acked}, {}", world.acked());
            assert_eq!(world.last_blocks(copied), blocks, "nothing is appended");
            for id in (1..=NODES).filter(|id| *id != copied) {
                let refused = world.node(id).outdated_members();
                assert!(refused.contains_key(&copied), "node {id} knows it by name");
            }
        });
    }
}

#[test]
fn reports_of_members_survive_a_restart_of_the_others() {
    run(async {
        let (mut world, copied) = with_old_copy(55).await;
        // The reports of the last seconds are written.
        world.run_for(6 * SECOND).await;
        for id in (1..=NODES).filter(|id| *id != copied) {
            world.stop(id, true).await;
        }
        for id in 1..=NODES {
            world.open(id).await;
        }
        run_until_outdated(&mut world, copied).await;
    });
}

#[test]
fn old_copy_and_a_node_that_is_behind_elect_no_leader() {
    run(async {
        let (mut world, copied) = with_old_copy(56).await;
        world.run_for(6 * SECOND).await;
        let (_, leader) = follower_and_leader(&world);
        let other = (1..=NODES).find(|id| *id != leader && *id != copied);
        let other = other.unwrap();
        // The other one restarts and knows the old copy from its file alone.
        world.stop(other, true).await;
        world.stop(leader, true).await;
        world.open(other).await;
        world.open(copied).await;
        run_until_outdated(&mut world, copied).await;
        check_no_quorum_without(&mut world, leader).await;
    });
}

#[test]
fn wiped_member_is_kept_out() {
    run(async {
        let mut world = World::start(57).await;
        world.run_for(4 * SECOND).await;
        let (_, leader) = follower_and_leader(&world);
        // An empty member does not dial, but members with lower ids dial it.
        let wiped = (1..=NODES).rfind(|id| *id != leader).unwrap();
        world.stop(wiped, true).await;
        let empty = world.empty_disk();
        world.replace_disk(wiped, empty);
        world.open(wiped).await;
        let reason = run_until_outdated(&mut world, wiped).await;
        assert!(reason.ends_with("its disk has none"), "{reason}");
    });
}

#[test]
fn wiped_node_does_not_answer_for_its_old_id() {
    run(async {
        let mut world = World::start(58).await;
        world.run_for(4 * SECOND).await;
        let leader = world.leader(ShardId(0)).unwrap();
        let others: Vec<u64> = (1..=NODES).filter(|id| *id != leader).collect();
        let [other, wiped] = others[..] else { panic!() };
        world.stop(wiped, true).await;
        world.forget(wiped);
        world.add_empty(9, host(wiped));
        world.open(9).await;
        let request = bytes::Bytes::from_static(b"request");
        let asked = world.node(leader.min(other)).call(wiped, request, SECOND);
        assert_eq!(asked.await, Err(cluster::CallError::NotSent));
        // The wiped node is no part of a quorum: it and one of the others elect no leader.
        world.stop(leader, true).await;
        check_no_quorum_without(&mut world, leader).await;
    });
}
