//! Members whose clocks are wrong do not lead.

use std::time::Duration;

use journal::ShardId;

use crate::agreement::run;
use crate::world::{NODES, World};

const SECOND: Duration = Duration::from_secs(1);

/// Checks that a node serves, and returns which.
async fn serving(world: &mut World) -> u64 {
    let acked = world.acked();
    world.run_for(6 * SECOND).await;
    assert!(world.acked() > acked + 20, "{acked}, {}", world.acked());
    world.leader(ShardId(0)).unwrap()
}

#[test]
fn leader_whose_clock_is_off_hands_over_and_begins_no_reign() {
    for (seed, ahead_ms) in [(70, 15_000), (71, -15_000)] {
        run(async {
            let mut world = World::start(seed).await;
            let wrong = serving(&mut world).await;
            world.set_skew(wrong, ahead_ms);
            world.run_for(4 * SECOND).await;
            let status = world.node(wrong).clocks();
            let off_ms = status.off_ms.expect("its clock is off");
            assert!(off_ms.abs_diff(-ahead_ms) < 1000, "{off_ms}");
            for _ in 0..2 {
                let leader = serving(&mut world).await;
                assert_ne!(leader, wrong, "its clock is off by {ahead_ms} ms");
                // The node begins no reign, also if it is elected.
                world.stop(leader, true).await;
                world.run_for(4 * SECOND).await;
                assert_ne!(world.leader(ShardId(0)), Some(wrong));
                world.open(leader).await;
            }
            world.set_skew(wrong, 0);
            world.run_for(3 * SECOND).await;
            assert_eq!(world.node(wrong).clocks().off_ms, None);
            world.agree().await;
        });
    }
}

#[test]
fn small_skew_changes_no_leader_and_is_measured() {
    run(async {
        let mut world = World::start(72).await;
        let leader = serving(&mut world).await;
        world.set_skew(leader, 3_000);
        assert_eq!(serving(&mut world).await, leader);
        let other = (1..=NODES).find(|id| *id != leader).unwrap();
        let members = world.node(other).clocks().members;
        let (_, ahead_ms, error_ms) = *members.iter().find(|it| it.0 == leader).unwrap();
        assert!(
            ahead_ms.abs_diff(3_000) <= error_ms,
            "{ahead_ms} ± {error_ms}"
        );
        world.agree().await;
    });
}

#[test]
fn cluster_with_three_different_clocks_has_a_leader() {
    for seed in 73..75 {
        run(async {
            let mut world = World::start(seed).await;
            world.run_for(3 * SECOND).await;
            for (id, ahead_ms) in [(1, 0), (2, -20_000), (3, 40_000)] {
                world.set_skew(id, ahead_ms);
            }
            world.run_for(5 * SECOND).await;
            assert_eq!(serving(&mut world).await, 1, "the median");
            world.agree().await;
        });
    }
}

#[test]
fn lower_clock_leads_while_the_third_member_is_down() {
    run(async {
        let mut world = World::start(76).await;
        let ahead = serving(&mut world).await;
        let others: Vec<u64> = (1..=NODES).filter(|id| *id != ahead).collect();
        let [right, down] = others[..] else { panic!() };
        world.set_skew(ahead, 15_000);
        world.stop(down, true).await;
        world.run_for(12 * SECOND).await;
        assert_eq!(serving(&mut world).await, right);
        world.agree().await;
    });
}
