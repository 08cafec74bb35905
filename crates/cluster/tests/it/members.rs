//! Members that come and go, and leaderships that are handed over.

use std::time::Duration;

use bytes::Bytes;
use cluster::{CallError, ChangeError};
use journal::ShardId;

use crate::agreement::run;
use crate::world::{World, member};

const SECOND: Duration = Duration::from_secs(1);

/// A cluster that has grown from one node to three while it was written to.
async fn grown(seed: u64) -> World {
    let mut world = World::start_with(seed, 1).await;
    world.run_for(3 * SECOND).await;
    assert!(world.acked() > 20, "a cluster of one serves");
    world.node(1).add(member(2)).await.unwrap();
    world.run_for(2 * SECOND).await;
    assert_eq!(world.voters(1), [[1], [1]], "two voters tolerate no loss");
    world.node(1).add(member(3)).await.unwrap();
    world.run_until_voters(1, &[1, 2, 3]).await;
    world
}

#[test]
fn cluster_grows_from_one_to_three_under_load() {
    run(async {
        for seed in 0..5 {
            let mut world = grown(seed).await;
            let acked = world.acked();
            world.stop(1, true).await;
            world.run_for(4 * SECOND).await;
            assert!(world.acked() > acked + 20, "{acked}, {}", world.acked());
            world.agree().await;
        }
    });
}

#[test]
fn member_is_removed_and_another_takes_its_vote() {
    run(async {
        let mut world = grown(10).await;
        let leader = world.leader(ShardId(0)).unwrap();
        let itself = world.node(leader).remove(leader).await;
        assert!(matches!(itself, Err(ChangeError::Refused { .. })));
        let unknown = world.node(leader).remove(9).await;
        assert!(matches!(unknown, Err(ChangeError::Refused { .. })));
        let follower = (1..=3).find(|id| *id != leader).unwrap();
        let moved = world.node(follower).remove(leader).await;
        assert_eq!(
            moved,
            Err(ChangeError::Moved {
                leader: Some(leader)
            })
        );
        world.node(leader).remove(follower).await.unwrap();
        let rest: Vec<u64> = (1..=3).filter(|id| *id != follower).collect();
        world.run_until_voters(leader, &rest).await;
        let acked = world.acked();
        world.run_for(2 * SECOND).await;
        assert!(world.acked() > acked + 20);
    });
}

#[test]
fn last_voter_that_is_up_to_date_is_not_removed() {
    run(async {
        let mut world = grown(11).await;
        let leader = world.leader(ShardId(0)).unwrap();
        let others: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
        world.stop(others[0], false).await;
        world.run_for(12 * SECOND).await;
        let leader = world.leader(ShardId(0)).unwrap();
        let up_to_date = (1..=3).find(|id| *id != leader && *id != others[0]);
        let refused = world.node(leader).remove(up_to_date.unwrap()).await;
        assert!(
            matches!(refused, Err(ChangeError::Refused { .. })),
            "{refused:?}"
        );
        world.agree().await;
    });
}

#[test]
fn leadership_is_handed_over_without_an_election_gap() {
    run(async {
        let mut world = grown(12).await;
        world.run_for(3 * SECOND).await;
        let leader = world.leader(ShardId(0)).unwrap();
        assert_eq!(
            world.leader(ShardId(1)),
            Some(leader),
            "one node leads all shards"
        );
        let begun = tokio::time::Instant::now();
        world.node(leader).hand_over(5 * SECOND).await;
        while world.leader(ShardId(0)).is_none_or(|it| it == leader) {
            world.run_for(SECOND / 100).await;
        }
        assert!(begun.elapsed() < SECOND / 2, "{:?}", begun.elapsed());
        world.stop(leader, false).await;
        let acked = world.acked();
        world.run_for(2 * SECOND).await;
        assert!(world.acked() > acked + 20);
        world.agree().await;
    });
}

#[test]
fn calls_are_answered_and_their_outcome_is_told() {
    run(async {
        let mut world = grown(13).await;
        let request = Bytes::from_static(b"request");
        for (from, to) in [(1, 2), (2, 1), (3, 2)] {
            let answer = world.node(from).call(to, request.clone(), SECOND).await;
            assert_eq!(answer.unwrap(), request, "{from} calls {to}");
        }
        let unknown = world.node(1).call(9, request.clone(), SECOND).await;
        assert_eq!(unknown, Err(CallError::NotSent));
        world.network.block(2, 1);
        let lost = world.node(1).call(2, request.clone(), SECOND).await;
        assert_eq!(lost, Err(CallError::Unknown));
        world.stop(2, false).await;
        world.run_for(2 * SECOND).await;
        let stopped = world.node(1).call(2, request, SECOND).await;
        assert_eq!(stopped, Err(CallError::NotSent));
        world.agree().await;
    });
}

#[test]
fn renewed_reign_begins_in_its_term_after_everything_is_committed() {
    run(async {
        let mut world = grown(14).await;
        for _ in 0..20 {
            world.run_for(SECOND / 5).await;
            let Some(leader) = world.leader(ShardId(0)) else {
                continue;
            };
            let reigns = world.reigns(leader);
            let Some(reigns) = reigns else { continue };
            world.node(leader).renew(&reigns).await;
            for (shard, (reign, term)) in (0..).map(ShardId).zip(reigns) {
                let mut receiver = world.node(leader).reigns(shard);
                let renewed = receiver.wait_for(|it| it.is_some_and(|it| it.0 != reign));
                let renewed = renewed.await.unwrap();
                assert_eq!(renewed.map(|it| it.1), Some(term), "the same term");
            }
        }
        world.agree().await;
    });
}
