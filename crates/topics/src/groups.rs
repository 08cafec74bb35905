//! Consumer groups: membership, assignments and committed offsets.
//!
//! Members *join*; when all have joined, a *generation* begins and one of them becomes the leader.
//! The leader sends the *assignment* of each member, and every member gets its own by *sync*.
//! Members *commit* the offsets that they have read. When a member joins, leaves or misses its
//! heartbeats, all members join again. This is Kafka's classic group protocol (KIP-62, with KIP-345
//! for static members, KIP-394 for member ids that are given first, KIP-447 and KIP-98 for commits
//! in transactions). Cooperative rebalancing is done by the clients and needs nothing here.
//!
//! The engine has no clock and accepts events in any order. Joins and syncs are answered by
//! [`Decision`]s, at once or later: the shell stores a [`Token`] for each waiting request. It sets
//! its timer to [`Groups::next_ms`] and calls [`Groups::tick`].
//!
//! Invariants: *two members of one generation never get different assignments; a commit of another
//! generation is refused; every request is answered in bounded time; the records restore the same
//! groups, as they were between two rebalances.*
//!
//! Members survive a restart of the process with their generation. Members that were in the middle
//! of a rebalance get an error for their generation and join again.
//!
//! It does not know the content of metadata and assignments, the existing topics, permissions, or
//! how a transaction ends. The shell may spread groups over several of these.

mod group;
mod member;
mod offsets;
mod options;
mod record;
mod restore;
mod terms;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Ending, ProducerId};
use group::{Group, ID_SIZE, Step};

pub use member::Profile;
pub use offsets::Committed;
pub use options::Options;
pub use record::{MarkKept, Marks, Record, Snapshot};
pub use restore::Restore;
pub use terms::{
    Caller, Candidate, Decision, Described, Description, Join, Joined, Leaver, Mark, Overview,
    Protocol, Refused, State, Synced, Synchronize, Token,
};

/// Any number of consumer groups. See the module's documentation.
///
/// Times are milliseconds since 1970-01-01 UTC. Decisions are appended to `out`.
#[derive(Debug)]
pub struct Groups {
    options: Options,
    groups: BTreeMap<Arc<str>, Group>,
    /// The next time at which each group has to be looked at.
    timers: BTreeSet<(u64, Arc<str>)>,
    /// See [`Groups::set_wall_shift`].
    wall_shift_ms: i64,
}

impl Groups {
    /// Returns it without groups.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            groups: BTreeMap::new(),
            timers: BTreeSet::new(),
            wall_shift_ms: 0,
        }
    }

    /// Sets how far the wall clock is ahead of the time of events. Sessions and rebalances use the
    /// time of events, which never steps; the ages of offsets use the wall clock, since they are
    /// stored across restarts.
    pub fn set_wall_shift(&mut self, shift_ms: i64) {
        self.wall_shift_ms = shift_ms;
    }

    /// Handles a join. [`Decision::Joined`] answers it at the end of the rebalance at the latest,
    /// or after [`Options::new_member_timeout_ms`] if that is longer for a new member.
    pub fn join(&mut self, token: Token, join: Join<'_>, now_ms: u64, out: &mut Vec<Decision>) {
        let id = match self.admit(&join) {
            Ok(id) => id,
            Err(refused) => {
                let answer = Err(refused);
                return out.push(Decision::Joined { token, answer });
            }
        };
        let group = self.groups.entry(id.clone());
        group.or_insert_with(|| Group::new(id.clone()));
        self.with(&id, now_ms, out, |group, step| {
            group.join(token, join, step);
        });
    }

    /// Validates a join and returns the group's name.
    fn admit(&self, join: &Join<'_>) -> Result<Arc<str>, Refused> {
        self.check_name(join.group)?;
        let (asked, options) = (join.session_timeout_ms, &self.options);
        let (min, max) = (
            options.session_timeout_ms_min,
            options.session_timeout_ms_max,
        );
        if !(min..=max).contains(&asked) {
            return Err(Refused::InvalidSessionTimeout { asked, min, max });
        }
        let protocols = join.protocols.iter().map(|it| &*it.name);
        let topics = join.topics.iter().flatten().map(|it| &**it);
        let names = [join.client_id, join.client_host, join.protocol_type];
        let names = names.into_iter().chain(join.instance).chain(protocols);
        let size = names.chain(topics).map(str::len).max().unwrap_or_default();
        bound("the longest name", size, self.name_size_max())?;
        let member_size_max = self.name_size_max() + ID_SIZE;
        bound("the member's name", join.member.len(), member_size_max)?;
        bound(
            "the list of protocols",
            join.protocols.len(),
            options.protocols_max,
        )?;
        match self.groups.get_key_value(join.group) {
            Some((id, _)) => Ok(id.clone()),
            None if join.member.is_empty() => self.found(join.group),
            None => Err(Refused::UnknownMember),
        }
    }

    /// Returns the largest size of a name: what fits into a record, also as a member id made from
    /// it.
    fn name_size_max(&self) -> usize {
        let max = usize::from(u16::MAX) - ID_SIZE;
        self.options.name_size_max.min(max)
    }

    fn check_name(&self, group: &str) -> Result<(), Refused> {
        let max = self.name_size_max();
        match (1..=max).contains(&group.len()) {
            true => Ok(()),
            false => Err(Refused::InvalidGroupId { max }),
        }
    }

    /// Returns the name of a new group, or an error if there are too many.
    fn found(&self, group: &str) -> Result<Arc<str>, Refused> {
        let max = self.options.groups_max;
        match self.groups.len() < max {
            true => Ok(group.into()),
            false => Err(Refused::GroupsMax { max }),
        }
    }

    /// Handles a sync. [`Decision::Synced`] answers it when the sync timeout is over at the latest.
    pub fn sync(
        &mut self,
        token: Token,
        ask: &Synchronize<'_>,
        now_ms: u64,
        out: &mut Vec<Decision>,
    ) {
        let group = ask.caller.group;
        let known = self.groups.contains_key(group);
        let known = known.then_some(()).ok_or(Refused::UnknownMember);
        if let Err(refused) = self.check_name(group).and(known) {
            let answer = Err(refused);
            return out.push(Decision::Synced { token, answer });
        }
        self.with(group, now_ms, out, |group, step| {
            group.sync(token, ask, step);
        });
    }

    /// Records a heartbeat of a member.
    pub fn heartbeat(&mut self, caller: Caller<'_>, now_ms: u64) -> Result<(), Refused> {
        self.check_name(caller.group)?;
        let group = self.groups.get_mut(caller.group);
        group
            .ok_or(Refused::UnknownMember)?
            .heartbeat(caller, now_ms)
    }

    /// Removes members. Returns a result for each, in their order.
    pub fn leave(
        &mut self,
        group: &str,
        leavers: &[Leaver<'_>],
        now_ms: u64,
        out: &mut Vec<Decision>,
    ) -> Vec<Result<(), Refused>> {
        let left = self.with(group, now_ms, out, |group, step| group.leave(leavers, step));
        let nobody = || leavers.iter().map(|_| Err(Refused::UnknownMember));
        left.unwrap_or_else(|| nobody().collect())
    }

    /// Commits offsets. Returns a result for each, in their order. `expires_ms` is when they expire
    /// if the client set it.
    pub fn commit(
        &mut self,
        caller: Caller<'_>,
        marks: &[Mark<'_>],
        expires_ms: Option<u64>,
        now_ms: u64,
        out: &mut Vec<Decision>,
    ) -> Result<Vec<Result<(), Refused>>, Refused> {
        self.commit_as(None, caller, marks, expires_ms, now_ms, out)
    }

    /// Commits offsets as a part of that producer's transaction. The caller checks the producer's
    /// permission and that the group is in the transaction.
    pub fn commit_in_transaction(
        &mut self,
        producer: ProducerId,
        caller: Caller<'_>,
        marks: &[Mark<'_>],
        now_ms: u64,
        out: &mut Vec<Decision>,
    ) -> Result<Vec<Result<(), Refused>>, Refused> {
        self.commit_as(Some(producer), caller, marks, None, now_ms, out)
    }

    fn commit_as(
        &mut self,
        producer: Option<ProducerId>,
        caller: Caller<'_>,
        marks: &[Mark<'_>],
        expires_ms: Option<u64>,
        now_ms: u64,
        out: &mut Vec<Decision>,
    ) -> Result<Vec<Result<(), Refused>>, Refused> {
        let id = match self.groups.get_key_value(caller.group) {
            Some((id, _)) => id.clone(),
            // A client without a generation may store offsets in a group without members.
            None if caller.generation < 0 => {
                bound(
                    "the name of the group",
                    caller.group.len(),
                    self.name_size_max(),
                )?;
                self.found(caller.group)?
            }
            None => {
                return Err(Refused::IllegalGeneration {
                    generation: caller.generation,
                });
            }
        };
        let group = self.groups.entry(id.clone());
        let group = group.or_insert_with(|| Group::new(id.clone()));
        let checked = group.check_commit(caller, producer, now_ms);
        let mut step = Step {
            options: &self.options,
            now_ms,
            unix_ms: now_ms.saturating_add_signed(self.wall_shift_ms),
            out,
        };
        let answers = checked.map(|()| group.commit(producer, marks, expires_ms, &mut step));
        // A commit makes nothing due earlier.
        if group.is_nothing() {
            self.drop(&id);
        }
        answers
    }

    /// Ends a transaction that has committed offsets of this group, or may have.
    pub fn end_transaction(
        &mut self,
        group: &str,
        producer: ProducerId,
        ending: Ending,
        now_ms: u64,
        out: &mut Vec<Decision>,
    ) {
        self.with(group, now_ms, out, |group, step| {
            group.end_transaction(producer, ending, step);
        });
    }

    /// Deletes offsets. Returns a result for each, in their order.
    pub fn delete_offsets(
        &mut self,
        group: &str,
        partitions: &[(&str, u32)],
        now_ms: u64,
        out: &mut Vec<Decision>,
    ) -> Result<Vec<Result<(), Refused>>, Refused> {
        let deleted = self.with(group, now_ms, out, |group, step| {
            group.delete_offsets(partitions, step)
        });
        deleted.unwrap_or(Err(Refused::GroupNotFound))
    }

    /// Deletes a group without members.
    pub fn delete(&mut self, group: &str, out: &mut Vec<Decision>) -> Result<(), Refused> {
        let group = self.groups.get(group).ok_or(Refused::GroupNotFound)?;
        if !group.is_empty() {
            return Err(Refused::NonEmpty);
        }
        out.push(Decision::Keep(group.gone_record()));
        let id = group.id().clone();
        self.drop(&id);
        Ok(())
    }

    /// Removes the offsets of a deleted topic, so that they do not apply to a new topic of that
    /// name.
    pub fn forget_topic(&mut self, topic: &str, now_ms: u64, out: &mut Vec<Decision>) {
        self.with_all(now_ms, out, |group, step| group.forget_topic(topic, step));
    }

    /// Removes expired offsets and groups that are empty. To be called periodically; it visits
    /// every group.
    pub fn expire(&mut self, now_ms: u64, out: &mut Vec<Decision>) {
        self.with_all(now_ms, out, |group, step| group.expire_offsets(step));
        let vacant = self.groups.values().filter(|it| it.is_vacant());
        let vacant: Vec<_> = vacant.map(|it| it.id().clone()).collect();
        for id in vacant {
            // The group exists and has no members, so this cannot fail.
            let _ = self.delete(&id, out);
        }
    }

    /// Returns when [`Groups::tick`] is due, if no event comes earlier.
    pub fn next_ms(&self) -> Option<u64> {
        self.timers.first().map(|(at_ms, _)| *at_ms)
    }

    /// Handles all timers that are due.
    pub fn tick(&mut self, now_ms: u64, out: &mut Vec<Decision>) {
        while let Some((at_ms, id)) = self.timers.first().cloned()
            && at_ms <= now_ms
        {
            self.with(&id, now_ms, out, Group::tick);
        }
    }

    /// Returns the committed offset of one partition.
    pub fn committed(&self, group: &str, topic: &str, partition: u32) -> Option<&Committed> {
        self.groups.get(group)?.offsets.get(topic, partition)
    }

    /// Returns all committed offsets, by topic and partition.
    pub fn all_committed(&self, group: &str) -> impl Iterator<Item = (&str, u32, &Committed)> {
        let group = self.groups.get(group).into_iter();
        group.flat_map(|it| it.offsets.iter())
    }

    /// Returns whether an open transaction would commit an offset of this partition. A client that
    /// requires stable offsets then gets `UNSTABLE_OFFSET_COMMIT` (88).
    pub fn is_unstable(&self, group: &str, topic: &str, partition: u32) -> bool {
        let group = self.groups.get(group);
        group.is_some_and(|it| it.offsets.is_pending(topic, partition))
    }

    /// Returns all groups, by name.
    pub fn list(&self) -> impl Iterator<Item = Overview<'_>> {
        self.groups.values().map(Group::overview)
    }

    /// Describes a group; a missing one is what Kafka calls *Dead*.
    pub fn describe(&self, group: &str) -> Option<Description> {
        self.groups.get(group).map(Group::describe)
    }

    /// Returns the records that restore the present state, as after a restart. Earlier records of
    /// the stream may then be removed.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.groups.values().flat_map(Group::records)
    }

    /// Applies an event to an existing group.
    fn with<T>(
        &mut self,
        group: &str,
        now_ms: u64,
        out: &mut Vec<Decision>,
        event: impl FnOnce(&mut Group, &mut Step<'_>) -> T,
    ) -> Option<T> {
        let group = self.groups.get_mut(group)?;
        let mut step = Step {
            options: &self.options,
            now_ms,
            unix_ms: now_ms.saturating_add_signed(self.wall_shift_ms),
            out,
        };
        let done = event(group, &mut step);
        let id = group.id().clone();
        self.settle(&id);
        Some(done)
    }

    /// Applies an event to every group.
    fn with_all(
        &mut self,
        now_ms: u64,
        out: &mut Vec<Decision>,
        event: impl Fn(&mut Group, &mut Step<'_>),
    ) {
        for id in self.groups.keys().cloned().collect::<Vec<_>>() {
            self.with(&id, now_ms, out, &event);
        }
    }

    /// Sets a group's timer, or removes a group that is empty.
    fn settle(&mut self, id: &Arc<str>) {
        let Some(group) = self.groups.get_mut(id) else {
            return;
        };
        if group.is_nothing() {
            return self.drop(id);
        }
        let next_ms = group.next_ms();
        if group.timer_ms == next_ms {
            return;
        }
        if let Some(at_ms) = group.timer_ms.take() {
            self.timers.remove(&(at_ms, id.clone()));
        }
        group.timer_ms = next_ms;
        self.timers.extend(next_ms.map(|at_ms| (at_ms, id.clone())));
    }

    fn drop(&mut self, id: &Arc<str>) {
        if let Some(group) = self.groups.remove(id)
            && let Some(at_ms) = group.timer_ms
        {
            self.timers.remove(&(at_ms, id.clone()));
        }
    }
}

fn bound(what: &'static str, size: usize, max: usize) -> Result<(), Refused> {
    match size <= max {
        true => Ok(()),
        false => Err(Refused::TooLarge { what, size, max }),
    }
}

#[cfg(test)]
mod tests;
