//! Consumer groups: who reads which part of a topic, and how far they are.
//!
//! Members *join*; when everybody is there a *generation* begins and one of them leads. The leader
//! says what is *assigned* to whom, and everybody *syncs* to be told. What they read they *commit*.
//! When somebody comes, goes, or falls silent, everybody joins again. This is Kafka's classic group
//! protocol (KIP-62, with KIP-345 for static members, KIP-394 for identities that are given first,
//! KIP-447 and KIP-98 for commits in transactions); cooperative rebalancing is an affair of the
//! clients, to whom generations are what they always were.
//!
//! It is apart so that it can be told any time and any order of events. A join and a sync are
//! answered by [`Decision`]s, now or later: the shell holds a [`Token`] for whoever waits. It sets
//! its timer to [`Groups::next_ms`] and calls [`Groups::tick`].
//!
//! Invariants: *no two members of one generation are told different things; a commit of another
//! generation is refused; whoever asks is answered in bounded time; what was kept makes the same
//! groups again, as they stood between two rebalances.*
//!
//! Members outlive the process with their generation: they go on, and whoever was in the middle of a
//! rebalance is told that it is not in that generation, and joins again.
//!
//! It does not know what a protocol's metadata and assignments mean, which topics there are, who
//! may do what, and how a transaction ends. The shell may spread groups over several of these.

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

/// Any number of groups. See the module's documentation.
///
/// Times are milliseconds since 1970-01-01 UTC. What is decided is appended to `out`.
#[derive(Debug)]
pub struct Groups {
    options: Options,
    groups: BTreeMap<Arc<str>, Group>,
    /// When to look at which group: no later than something is due there.
    timers: BTreeSet<(u64, Arc<str>)>,
    /// See [`Groups::set_wall_shift`].
    wall_shift_ms: i64,
}

impl Groups {
    /// Where nobody was yet.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            groups: BTreeMap::new(),
            timers: BTreeSet::new(),
            wall_shift_ms: 0,
        }
    }

    /// From now on the wall clock is that far ahead of the time that events are told. Sessions and
    /// rebalances go by the time of the events, which never steps; the ages of offsets go by the wall clock,
    /// since they are kept across restarts.
    pub fn set_wall_shift(&mut self, shift_ms: i64) {
        self.wall_shift_ms = shift_ms;
    }

    /// Somebody joins: answered by [`Decision::Joined`], at the latest when the rebalance is over, or
    /// after [`Options::new_member_timeout_ms`] if that is longer for a new member.
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

    /// Whether it makes sense, and the group's name.
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

    /// No name takes more than a record can say, nor does a member's that is made from it.
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

    /// The name of a group that is not there yet.
    fn found(&self, group: &str) -> Result<Arc<str>, Refused> {
        let max = self.options.groups_max;
        match self.groups.len() < max {
            true => Ok(group.into()),
            false => Err(Refused::GroupsMax { max }),
        }
    }

    /// A member asks what is assigned to it: answered by [`Decision::Synced`], at the latest when the
    /// time to sync is over.
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

    /// A member lives.
    pub fn heartbeat(&mut self, caller: Caller<'_>, now_ms: u64) -> Result<(), Refused> {
        self.check_name(caller.group)?;
        let group = self.groups.get_mut(caller.group);
        group
            .ok_or(Refused::UnknownMember)?
            .heartbeat(caller, now_ms)
    }

    /// Members leave, each for itself: an answer for each, in their order.
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

    /// Commits offsets: an answer for each, in their order. `expires_ms` is when they are forgotten if
    /// the client said so.
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

    /// Commits offsets when that producer's transaction does. It is the caller's to know that the
    /// producer may, and that the group is in the transaction.
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
            // Whoever is in no generation may keep offsets in a group that has no members.
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

    /// A transaction has ended that has committed offsets of this group, or may have.
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

    /// Deletes offsets: an answer for each, in their order.
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

    /// Deletes a group, if it has no members.
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

    /// A topic is gone, and nobody has read anything of the next one of that name.
    pub fn forget_topic(&mut self, topic: &str, now_ms: u64, out: &mut Vec<Decision>) {
        self.with_all(now_ms, out, |group, step| group.forget_topic(topic, step));
    }

    /// Forgets offsets whose time is over, and groups of which nothing is left. To be called now and
    /// then; it looks at every group.
    pub fn expire(&mut self, now_ms: u64, out: &mut Vec<Decision>) {
        self.with_all(now_ms, out, |group, step| group.expire_offsets(step));
        let vacant = self.groups.values().filter(|it| it.is_vacant());
        let vacant: Vec<_> = vacant.map(|it| it.id().clone()).collect();
        for id in vacant {
            // It is there, and has no members: nothing to refuse.
            let _ = self.delete(&id, out);
        }
    }

    /// When [`Groups::tick`] has something to do, if nothing happens before.
    pub fn next_ms(&self) -> Option<u64> {
        self.timers.first().map(|(at_ms, _)| *at_ms)
    }

    /// Does what is due.
    pub fn tick(&mut self, now_ms: u64, out: &mut Vec<Decision>) {
        while let Some((at_ms, id)) = self.timers.first().cloned()
            && at_ms <= now_ms
        {
            self.with(&id, now_ms, out, Group::tick);
        }
    }

    /// What is committed of one partition.
    pub fn committed(&self, group: &str, topic: &str, partition: u32) -> Option<&Committed> {
        self.groups.get(group)?.offsets.get(topic, partition)
    }

    /// All that is committed, by topic and partition.
    pub fn all_committed(&self, group: &str) -> impl Iterator<Item = (&str, u32, &Committed)> {
        let group = self.groups.get(group).into_iter();
        group.flat_map(|it| it.offsets.iter())
    }

    /// Whether an open transaction would commit an offset there: whoever asks for stable offsets is
    /// told `UNSTABLE_OFFSET_COMMIT` (88).
    pub fn is_unstable(&self, group: &str, topic: &str, partition: u32) -> bool {
        let group = self.groups.get(group);
        group.is_some_and(|it| it.offsets.is_pending(topic, partition))
    }

    /// All groups, by name.
    pub fn list(&self) -> impl Iterator<Item = Overview<'_>> {
        self.groups.values().map(Group::overview)
    }

    /// A group; none is what Kafka calls *Dead*.
    pub fn describe(&self, group: &str) -> Option<Description> {
        self.groups.get(group).map(Group::describe)
    }

    /// Records that make all of this again, as it would stand after a restart: what stood in the
    /// stream before may be forgotten.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.groups.values().flat_map(Group::records)
    }

    /// Does something to a group that is there.
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

    /// Does something to every group.
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

    /// Sets a group's timer; forgets one that is nothing.
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
