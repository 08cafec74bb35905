//! Members that come and go, and leaderships that are handed over.

use std::time::Duration;

use bytes::Bytes;
use cluster::{CallError, ChangeError, JoinError};
use journal::ShardId;
use journal::disk::SimulatedDisk;

use crate::agreement::run;
use crate::history::memberships;
use crate::links::host;
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
        for seed in 0..2 {
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
        world.links.block(2, 1);
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

#[test]
fn change_of_members_is_completed_after_a_crash_between_its_entries() {
    run(async {
        for seed in 0..2 {
            let mut world = grown(20 + seed).await;
            let shard = ShardId(0);
            world
                .run_until("no service", |it| it.serving().is_some())
                .await;
            let leader = world.leader(shard).unwrap();
            let removed = (1..=3).find(|id| *id != leader).unwrap();
            let journal = world.running(leader).journal.clone();
            let before = memberships(&journal, shard);
            let node = world.node(leader).clone();
            let removing = tokio::spawn(async move { node.remove(removed).await });
            // The first entry has the old and the new voters, the second only the new ones.
            while memberships(&journal, shard) == before {
                tokio::time::sleep(Duration::from_micros(50)).await;
            }
            let wait = world.rng.u64(..3000);
            tokio::time::sleep(Duration::from_micros(wait)).await;
            world.check();
            assert_eq!(
                memberships(&journal, shard),
                before + 1,
                "between the entries"
            );
            match seed % 2 {
                0 => world.stop(leader, true).await,
                _ => world.cut_power().await,
            }
            removing.abort();
            for id in world.ids() {
                if !world.is_running(id) {
                    world.open(id).await;
                }
            }
            world.run_for(4 * SECOND).await;
            // The first entry may be lost with its leader.
            let all = [vec![1, 2, 3], (1..=3).filter(|id| *id != removed).collect()];
            let serving = world.serving().unwrap();
            let voters = world.voters(serving);
            assert!(all.contains(&voters[0]), "{voters:?}");
            assert_eq!(
                voters[0], voters[1],
                "all shards have the voters of the first"
            );
            if voters[0].len() == 2 {
                world.stop(removed, false).await;
                world.forget(removed);
            }
            world.agree().await;
        }
    });
}

#[test]
fn empty_node_at_the_address_of_a_member_counts_for_nothing() {
    run(async {
        let mut world = grown(30).await;
        world
            .run_until("no service", |it| it.serving().is_some())
            .await;
        let leader = world.serving().unwrap();
        let wiped = (1..=3).find(|id| *id != leader).unwrap();
        let other = (1..=3).find(|id| ![leader, wiped].contains(id)).unwrap();
        world.stop(wiped, true).await;
        world.forget(wiped);
        // It has an id that no member had, and is no member.
        world.add_empty(7, host(wiped));
        world.open(7).await;
        world.run_for(3 * SECOND).await;
        let request = Bytes::from_static(b"request");
        let called = world.node(leader).call(wiped, request, SECOND).await;
        assert_eq!(
            called,
            Err(CallError::NotSent),
            "another node has the address"
        );
        world.stop(other, false).await;
        world.run_for(SECOND / 10).await;
        let acked = world.acked();
        world.run_for(5 * SECOND).await;
        assert_eq!(world.acked(), acked, "one of three voters is no quorum");
        world.open(other).await;
        world.stop(7, false).await;
        world.forget(7);
        world.agree().await;
    });
}

#[test]
fn wiped_node_joins_again_under_a_new_id_when_its_old_one_is_removed() {
    run(async {
        let mut world = grown(31).await;
        world
            .run_until("no service", |it| it.serving().is_some())
            .await;
        let leader = world.serving().unwrap();
        let wiped = (1..=3).find(|id| *id != leader).unwrap();
        world.stop(wiped, true).await;
        world.forget(wiped);
        let disk = SimulatedDisk::new(1);
        let refused = world.join(&host(wiped), leader, &disk).await;
        assert!(
            matches!(refused, Err(JoinError::Refused { .. })),
            "{refused:?}"
        );
        world.node(leader).remove(wiped).await.unwrap();
        world.run_for(2 * SECOND).await;
        let leader = world.serving().unwrap();
        let disk = SimulatedDisk::new(2);
        let joined = world.join(&host(wiped), leader, &disk).await.unwrap();
        assert!(joined.id > 3, "{joined:?}");
        world.add_empty(joined.id, host(wiped));
        world.put_back(joined.id, disk);
        world.open(joined.id).await;
        let voters: Vec<u64> = world.ids();
        world.run_until_voters(leader, &voters).await;
        world.agree().await;
    });
}
