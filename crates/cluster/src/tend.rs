//! The care for members: each leader completes changes, gives votes to members that have caught up,
//! and keeps the members of its shard equal to those of shard 0, which is the authority. One node
//! leads all shards where it can; one whose [clock](crate::clock) is off passes its leaderships on.
//! Each node keeps its connections.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use journal::ShardId;
use openraft::ChangeMembers;
use tokio::time::Instant;

use crate::clock::Clocks;
use crate::group::Group;
use crate::link::Peers;
use crate::member::Addresses;
use crate::raft::Membership;
use crate::report::voters;

/// Longest interval of looks at all shards.
const INTERVAL_MAX: Duration = Duration::from_millis(200);

/// Looks within the time for which the leader of shard 0 must be the same.
const LOOKS: u32 = 4;

/// A member gets its vote when it is at most so many blocks behind.
const NEAR_BLOCKS: u64 = 16;

/// Tends all shards until the node ends. `settle` is the time for which the leader of shard 0 must be
/// the same before the leaderships of the others follow it.
pub(crate) async fn tend(
    groups: Arc<[Group]>,
    peers: Arc<Peers>,
    clocks: Arc<Clocks>,
    own: u64,
    settle: Duration,
) {
    let interval = INTERVAL_MAX.min(settle / LOOKS);
    let mut authority = (None, Instant::now());
    loop {
        tokio::time::sleep(interval).await;
        for (id, addresses) in groups[0].membership().0.nodes() {
            if *id != own {
                peers.connect_to(*id, &addresses.link);
            }
        }
        let leader = groups[0].leader();
        if leader != authority.0 {
            authority = (leader, Instant::now());
        }
        for group in groups.iter() {
            if !group.is_leader() {
                continue;
            }
            group.note_progress();
            group.complete_change().await;
            if let Some(change) = next_change(&groups[0], group) {
                // A change that fails is tried again.
                let _ = group.change(change).await;
            }
            let voters = voters(group);
            let may_lead = |to: u64| group.is_near(to, 0) && clocks.can_take_over(to, own, &voters);
            let leader = authority.0.filter(|_| authority.1.elapsed() >= settle);
            let to = match clocks.is_off() {
                true => voters
                    .iter()
                    .copied()
                    .find(|to| *to != own && may_lead(*to)),
                false => leader.filter(|to| *to != own && voters.contains(to) && may_lead(*to)),
            };
            if let Some(to) = to {
                // Fails only after the end of openraft's task.
                let _ = group.raft.trigger().transfer_leader(to).await;
            }
        }
    }
}

/// Returns the next change of a shard's members, if there is one.
fn next_change(authority: &Group, group: &Group) -> Option<ChangeMembers<u64, Addresses>> {
    let (own, is_settled) = group.membership();
    if !is_settled {
        return None;
    }
    let near = |id: &u64| group.is_near(*id, NEAR_BLOCKS);
    if group.shard() == ShardId(0) {
        return promotion(&own, near).map(ChangeMembers::ReplaceAllVoters);
    }
    let (wanted, is_settled) = authority.membership();
    if !is_settled {
        return None;
    }
    let members = |it: &Membership| -> BTreeMap<u64, Addresses> {
        it.nodes()
            .map(|(id, addresses)| (*id, addresses.clone()))
            .collect()
    };
    let (own_members, wanted_members) = (members(&own), members(&wanted));
    let voters = |it: &Membership| it.voter_ids().collect::<BTreeSet<u64>>();
    let (own_voters, wanted_voters) = (voters(&own), voters(&wanted));
    let mut missing = wanted_members.clone();
    missing.retain(|id, addresses| own_members.get(id) != Some(addresses));
    if !missing.is_empty() {
        return Some(ChangeMembers::SetNodes(missing));
    }
    if own_voters != wanted_voters {
        let mut new = wanted_voters.difference(&own_voters);
        return new
            .all(near)
            .then_some(ChangeMembers::ReplaceAllVoters(wanted_voters));
    }
    let gone = own_members
        .keys()
        .filter(|id| !wanted_members.contains_key(id));
    let gone: BTreeSet<u64> = gone.copied().collect();
    (!gone.is_empty()).then_some(ChangeMembers::RemoveNodes(gone))
}

/// Returns the new voters if members that have caught up can get a vote: the lowest ids first, and an
/// odd number of voters at the end.
fn promotion(membership: &Membership, near: impl Fn(&u64) -> bool) -> Option<BTreeSet<u64>> {
    let mut voters: BTreeSet<u64> = membership.voter_ids().collect();
    let mut learners: Vec<u64> = membership.learner_ids().collect();
    learners.sort_unstable();
    learners.retain(near);
    let all = voters.len() + learners.len();
    let count = all - usize::from(all.is_multiple_of(2));
    let new = count.checked_sub(voters.len()).filter(|new| *new > 0)?;
    voters.extend(&learners[..new]);
    Some(voters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership(voters: &[u64], learners: &[u64]) -> Membership {
        let ids = voters.iter().chain(learners);
        let member = |id: &u64| (*id, Addresses::default());
        let nodes: BTreeMap<_, _> = ids.map(member).collect();
        Membership::new(vec![voters.iter().copied().collect()], nodes).unwrap()
    }

    #[test]
    fn members_get_votes_so_that_their_number_is_odd() {
        let promoted = |voters: &[u64], learners: &[u64], near: &[u64]| {
            let promoted = promotion(&membership(voters, learners), |id| near.contains(id));
            promoted.map(Vec::from_iter)
        };
        assert_eq!(promoted(&[1], &[], &[]), None);
        assert_eq!(
            promoted(&[1], &[2], &[2]),
            None,
            "two voters tolerate no loss"
        );
        assert_eq!(promoted(&[1], &[2, 3], &[3]), None);
        assert_eq!(promoted(&[1], &[2, 3], &[2, 3]), Some(vec![1, 2, 3]));
        assert_eq!(promoted(&[1, 2, 3], &[4], &[4]), None);
        assert_eq!(promoted(&[1, 3], &[4], &[4]), Some(vec![1, 3, 4]));
        let all = [4, 5, 6];
        assert_eq!(promoted(&[1, 2, 3], &all, &all), Some(vec![1, 2, 3, 4, 5]));
    }
}
