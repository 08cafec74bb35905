//! Requests of consumers and administrators to groups.

use std::task::Poll;

use journal::{Health, Ticket};
use platform::Pending;
use topics::groups::{
    Caller, Decision, Description, Groups, Join, Joined, Leaver, Mark, Refused,
    State as GroupState, Synced, Synchronize,
};
use topics::{Claim, Ending, Participant, ProducerId};

use super::{Committed, Each, GroupView, Held, MARK_SIZE, Share, Times, Waited, Waiter, waited};
use crate::error::{GroupError, Storage};
use crate::service::Topics;
use crate::state::State;

impl State {
    /// Returns the share that a group belongs to.
    fn share(&self, group: &str) -> &Share {
        let hash = group.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        &self.groups[(hash % self.groups.len() as u64) as usize]
    }
}

impl Topics {
    /// Asks the engine and carries out its decisions; answered when they are durable.
    fn ask<T>(
        &self,
        group: &str,
        event: impl FnOnce(&mut Groups, u64, &mut Vec<Decision>) -> Result<T, GroupError>,
    ) -> Pending<T, GroupError> {
        match self.ask_now(group, event) {
            Ok((answer, ticket)) => Pending::decided_after(self.state.durable(ticket), answer),
            Err(storage) => Pending::known(Err(storage.into())),
        }
    }

    fn ask_now<T>(
        &self,
        group: &str,
        event: impl FnOnce(&mut Groups, u64, &mut Vec<Decision>) -> T,
    ) -> Result<(T, Option<Ticket>), Storage> {
        let (journal, now_ms) = (&self.state.journal, self.now_ms());
        let times = self.times(now_ms);
        let share = self.state.share(group);
        let mut held = share.lock(journal, now_ms)?;
        let mut decisions = Vec::new();
        let answer = event(held.groups_now(times), times.steady_ms, &mut decisions);
        held.carry_out(journal, share.at, decisions, now_ms)?;
        Ok((answer, held.last))
    }

    /// Checks that the disk has room for more data.
    pub(crate) fn check_room(&self) -> Result<(), Storage> {
        match self.state.journal.health() {
            Health::DiskFull => Err(Storage::DiskFull),
            _ => Ok(()),
        }
    }

    /// Joins a member to a group (JoinGroup); answered when the rebalance is over. Fills in
    /// `random` of the join.
    pub fn join(&self, join: Join<'_>) -> Pending<Joined, GroupError> {
        if let Err(storage) = self.check_room() {
            return Pending::known(Err(storage.into()));
        }
        let entropy = &self.state.platform.ports.entropy;
        let halves = [entropy.next_u64(), entropy.next_u64()].map(u128::from);
        let join = Join {
            random: halves[0] << 64 | halves[1],
            ..join
        };
        let (later, group) = (Waited::default(), join.group);
        let begin = |held: &mut Held, now_ms, out: &mut Vec<_>| {
            let token = held.wait(Waiter::Join(later.clone()));
            held.groups.join(token, join, now_ms, out);
        };
        match self.begin(group, begin) {
            Ok(()) => waited(&self.state.journal, later),
            Err(storage) => Pending::known(Err(storage.into())),
        }
    }

    /// Returns a member's assignment (SyncGroup); answered when the leader has sent the
    /// assignments.
    pub fn sync(&self, ask: &Synchronize<'_>) -> Pending<Synced, GroupError> {
        let later = Waited::default();
        let begin = |held: &mut Held, now_ms, out: &mut Vec<_>| {
            let token = held.wait(Waiter::Sync(later.clone()));
            held.groups.sync(token, ask, now_ms, out);
        };
        match self.begin(ask.caller.group, begin) {
            Ok(()) => waited(&self.state.journal, later),
            Err(storage) => Pending::known(Err(storage.into())),
        }
    }

    fn begin(
        &self,
        group: &str,
        begin: impl FnOnce(&mut Held, u64, &mut Vec<Decision>),
    ) -> Result<(), Storage> {
        let (journal, now_ms) = (&self.state.journal, self.now_ms());
        let times = self.times(now_ms);
        let share = self.state.share(group);
        let mut held = share.lock(journal, now_ms)?;
        let mut decisions = Vec::new();
        held.groups_now(times);
        begin(&mut held, times.steady_ms, &mut decisions);
        // A failure to append reaches the waiting request through its waiter.
        let _ = held.carry_out(journal, share.at, decisions, now_ms);
        self.state.platform.need_sweep();
        Ok(())
    }

    /// Records a heartbeat of a member.
    pub fn heartbeat(&self, caller: Caller<'_>) -> Pending<(), GroupError> {
        self.ask(caller.group, |groups, now_ms, _| {
            Ok(groups.heartbeat(caller, now_ms)?)
        })
    }

    /// Removes members from a group (LeaveGroup); one answer per member, in order.
    pub fn leave(&self, group: &str, leavers: &[Leaver<'_>]) -> Pending<Each, GroupError> {
        self.ask(group, |groups, now_ms, out| {
            Ok(groups.leave(group, leavers, now_ms, out))
        })
    }

    /// Commits offsets; one answer per offset, in order. The caller has checked that the partitions
    /// exist. `expires_ms` is the time at which the offsets expire, if the client set one.
    pub fn commit(
        &self,
        caller: Caller<'_>,
        marks: &[Mark<'_>],
        expires_ms: Option<u64>,
    ) -> Pending<Each, GroupError> {
        if let Err(error) = self.check_commit(marks) {
            return Pending::known(Err(error));
        }
        self.ask(caller.group, |groups, now_ms, out| {
            Ok(groups.commit(caller, marks, expires_ms, now_ms, out)?)
        })
    }

    /// Commits offsets as part of a transaction (TxnOffsetCommit) to which the group was added.
    pub fn commit_in_transaction(
        &self,
        claim: &Claim<'_>,
        caller: Caller<'_>,
        marks: &[Mark<'_>],
    ) -> Pending<Each, GroupError> {
        let group = Participant::Group(caller.group.to_owned());
        // Locked until the offsets are committed, so that the transaction cannot end meanwhile.
        let coordinating = self.state.transactions.lock();
        let verified = coordinating.verify(claim, &group);
        if let Err(denied) = verified {
            return Pending::known(Err(denied.into()));
        }
        if let Err(error) = self.check_commit(marks) {
            return Pending::known(Err(error));
        }
        let producer = claim.producer;
        self.ask(caller.group, |groups, now_ms, out| {
            Ok(groups.commit_in_transaction(producer, caller, marks, now_ms, out)?)
        })
    }

    /// Checks that the disk has room for the offsets and that they fit into one record.
    fn check_commit(&self, marks: &[Mark<'_>]) -> Result<(), GroupError> {
        self.check_room()?;
        let sizes = marks
            .iter()
            .map(|it| it.topic.len() + it.metadata.len() + MARK_SIZE);
        let (size, max) = (sizes.sum(), self.state.journal.record_size_max() / 2);
        match size <= max {
            true => Ok(()),
            false => Err(GroupError::from(Refused::TooLarge {
                what: "the commit",
                size,
                max,
            })),
        }
    }

    /// Commits or discards the group's pending offsets of a transaction that has ended.
    pub(crate) fn end_in_group(
        &self,
        group: &str,
        producer: ProducerId,
        ending: Ending,
    ) -> Result<Option<Ticket>, Storage> {
        let ended = self.ask_now(group, |groups, now_ms, out| {
            groups.end_transaction(group, producer, ending, now_ms, out);
        });
        ended.map(|((), ticket)| ticket)
    }

    /// Returns the committed offsets of a group, for these partitions or for all. An unknown group
    /// has committed nothing.
    pub fn committed(
        &self,
        group: &str,
        partitions: Option<&[(&str, u32)]>,
    ) -> Pending<Vec<Committed>, GroupError> {
        self.ask(group, |groups, _, _| {
            let one = |topic: &str, partition| Committed {
                topic: topic.into(),
                partition,
                mark: groups.committed(group, topic, partition).cloned(),
                is_unstable: groups.is_unstable(group, topic, partition),
            };
            Ok(match partitions {
                Some(partitions) => partitions
                    .iter()
                    .map(|(topic, it)| one(topic, *it))
                    .collect(),
                None => {
                    let all = groups.all_committed(group);
                    all.map(|(topic, partition, _)| one(topic, partition))
                        .collect()
                }
            })
        })
    }

    /// Visits the committed offset of every group and partition, from memory. The visitor runs with
    /// a share of the groups locked.
    pub(crate) fn each_commit(&self, mut visit: impl FnMut(&str, &str, u32, u64)) {
        for share in &self.state.groups {
            let held = share.held.lock();
            for group in held.groups.list() {
                for (topic, partition, commit) in held.groups.all_committed(group.group) {
                    let offset = u64::try_from(commit.offset).unwrap_or(0);
                    visit(group.group, topic, partition, offset);
                }
            }
        }
    }

    /// Visits the committed offsets of a group by topic and partition, from memory. The visitor runs
    /// with a share of the groups locked.
    pub(crate) fn each_commit_of(&self, group: &str, mut visit: impl FnMut(&str, u32, u64)) {
        let held = self.state.share(group).held.lock();
        for (topic, partition, commit) in held.groups.all_committed(group) {
            visit(topic, partition, u64::try_from(commit.offset).unwrap_or(0));
        }
    }

    /// Counts the groups in each state, from memory.
    pub fn count_groups(&self) -> [(GroupState, usize); 4] {
        let mut counts = [
            (GroupState::Empty, 0),
            (GroupState::PreparingRebalance, 0),
            (GroupState::CompletingRebalance, 0),
            (GroupState::Stable, 0),
        ];
        for share in &self.state.groups {
            for it in share.held.lock().groups.list() {
                let counted = counts.iter_mut().filter(|(state, _)| *state == it.state);
                counted.for_each(|(_, count)| *count += 1);
            }
        }
        counts
    }

    /// Returns the states of all groups, from memory and in no order.
    pub fn group_states(&self) -> Vec<(Box<str>, GroupState)> {
        let mut states = Vec::new();
        for share in &self.state.groups {
            let held = share.held.lock();
            states.extend(held.groups.list().map(|it| (it.group.into(), it.state)));
        }
        states
    }

    /// Lists all groups.
    pub fn groups(&self) -> Pending<Vec<GroupView>, GroupError> {
        let mut views = Vec::new();
        let mut waits = Vec::new();
        for share in &self.state.groups {
            let held = match share.lock(&self.state.journal, self.now_ms()) {
                Ok(held) => held,
                Err(storage) => return Pending::known(Err(storage.into())),
            };
            waits.push(self.state.durable(held.last));
            views.extend(held.groups.list().map(|it| GroupView {
                group: it.group.into(),
                protocol_type: it.protocol_type.into(),
                state: it.state,
            }));
        }
        views.sort_unstable_by(|one, other| one.group.cmp(&other.group));
        Pending::steps(move |waker| {
            while let Some(wait) = waits.last_mut() {
                std::task::ready!(wait.poll_durable(waker))?;
                waits.pop();
            }
            Poll::Ready(Ok(std::mem::take(&mut views)))
        })
    }

    /// Describes a group; `None` is Kafka's state *Dead*.
    pub fn describe_group(&self, group: &str) -> Pending<Option<Description>, GroupError> {
        self.ask(group, |groups, _, _| Ok(groups.describe(group)))
    }

    /// Deletes a group that has no members.
    pub fn delete_group(&self, group: &str) -> Pending<(), GroupError> {
        self.ask(group, |groups, _, out| Ok(groups.delete(group, out)?))
    }

    /// Deletes committed offsets; one answer per offset, in order.
    pub fn delete_offsets(
        &self,
        group: &str,
        partitions: &[(&str, u32)],
    ) -> Pending<Each, GroupError> {
        self.ask(group, |groups, now_ms, out| {
            Ok(groups.delete_offsets(group, partitions, now_ms, out)?)
        })
    }

    /// Deletes all committed offsets of a deleted topic, so that they do not apply to a new topic
    /// of that name.
    pub(crate) fn forget_topic(&self, name: &str) {
        self.each_share(|groups, now_ms, out| groups.forget_topic(name, now_ms, out));
    }

    /// Runs due timeouts of all groups; returns whether more will be due.
    pub(crate) fn tend_groups(&self) -> bool {
        self.each_share(|groups, now_ms, out| groups.tick(now_ms, out));
        let mut is_due = false;
        for share in &self.state.groups {
            let mut held = share.held.lock();
            // A stream that cannot be rewritten now is rewritten by a later sweep.
            let _ = held.shorten(&self.state.journal, share.at, self.now_ms());
            is_due |= held.groups.next_ms().is_some() || !held.backlog.is_empty();
        }
        is_due
    }

    /// Expires groups and offsets that were unused for too long.
    pub(crate) fn expire_groups(&self) {
        let wall_ms = self.expiry_ms().unsigned_abs();
        self.each_share_at(wall_ms, |groups, now_ms, out| groups.expire(now_ms, out));
    }

    fn times(&self, wall_ms: u64) -> Times {
        let steady_ms = self.steady_ms();
        Times { wall_ms, steady_ms }
    }

    fn each_share(&self, event: impl Fn(&mut Groups, u64, &mut Vec<Decision>)) {
        self.each_share_at(self.now_ms(), event);
    }

    /// Like [`Topics::each_share`], with a given wall-clock time for the engines.
    fn each_share_at(&self, wall_ms: u64, event: impl Fn(&mut Groups, u64, &mut Vec<Decision>)) {
        let (journal, now_ms) = (&self.state.journal, self.now_ms());
        let times = self.times(wall_ms);
        for share in &self.state.groups {
            // The backlog must be written first; this share is skipped until then.
            let Ok(mut held) = share.lock(journal, now_ms) else {
                continue;
            };
            let mut decisions = Vec::new();
            event(held.groups_now(times), times.steady_ms, &mut decisions);
            // Records that cannot be appended now stay in the backlog.
            let _ = held.carry_out(journal, share.at, decisions, now_ms);
        }
    }
}
