//! A consumer group: its members, its generation and its rebalances.
//!
//! ```text
//! Empty => Preparing => (Completing | Empty)
//! Completing => (Stable | Preparing)
//! Stable => Preparing
//! ```

mod commit;
mod describe;
mod join;
mod leave;
mod restore;
mod sync;
mod tick;

pub(super) use join::ID_SIZE;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::member::{Member, after};
use super::offsets::Offsets;
use super::options::Options;
use super::record::{Record, Snapshot};
use super::terms::{Caller, Candidate, Decision, Joined, Refused, State, Synced, Token};

/// The shortest interval at which a group without joined members is looked at again: members may
/// ask for a rebalance timeout of 0.
const NOBODY_MS: u32 = 1_000;

/// The context of one event: options, time, and the output for decisions.
pub(super) struct Step<'a> {
    pub(super) options: &'a Options,
    /// The time of the event on a monotonic clock, in milliseconds.
    pub(super) now_ms: u64,
    /// The time of the event on the wall clock, for records.
    pub(super) unix_ms: u64,
    pub(super) out: &'a mut Vec<Decision>,
}

impl Step<'_> {
    pub(super) fn joined(&mut self, token: Token, answer: Result<Joined, Refused>) {
        self.out.push(Decision::Joined { token, answer });
    }

    fn synced(&mut self, token: Token, answer: Result<Synced, Refused>) {
        self.out.push(Decision::Synced { token, answer });
    }

    fn keep(&mut self, record: Record) {
        self.out.push(Decision::Keep(record));
    }
}

#[derive(Debug)]
enum Phase {
    Empty,
    Preparing {
        due_ms: u64,
        /// The rest of the time in which an empty group waits for more members.
        patience: Option<Patience>,
    },
    Completing {
        due_ms: u64,
    },
    Stable {
        /// When members that have not synced are removed.
        due_ms: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Patience {
    left_ms: u32,
    /// A member has joined since the last timer.
    has_new: bool,
}

/// A consumer group; see the module's documentation.
#[derive(Debug)]
pub(super) struct Group {
    id: Arc<str>,
    /// Empty if it never had members.
    protocol_type: Box<str>,
    generation: i32,
    /// Some while a generation has members, as is the leader.
    protocol: Option<Box<str>>,
    leader: Option<Arc<str>>,
    members: BTreeMap<Arc<str>, Member>,
    /// Static members, by instance.
    instances: BTreeMap<Box<str>, Arc<str>>,
    /// Members that got an id and have not joined with it, and when they are dropped.
    expected: BTreeMap<Arc<str>, u64>,
    phase: Phase,
    /// Since when the group has the state that was recorded last.
    since_ms: u64,
    /// The state that was recorded last, if the group has changed since.
    before: Option<Box<Snapshot>>,
    pub(super) offsets: Offsets,
    /// When the timer of this group is set: never later than the next deadline.
    pub(super) timer_ms: Option<u64>,
}

impl Group {
    /// Returns a new group.
    pub(super) fn new(id: Arc<str>) -> Self {
        Self {
            id,
            protocol_type: Box::default(),
            generation: 0,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: BTreeMap::new(),
            expected: BTreeMap::new(),
            phase: Phase::Empty,
            since_ms: 0,
            before: None,
            offsets: Offsets::default(),
            timer_ms: None,
        }
    }

    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }

    pub(super) fn state(&self) -> State {
        match self.phase {
            Phase::Empty => State::Empty,
            Phase::Preparing { .. } => State::PreparingRebalance,
            Phase::Completing { .. } => State::CompletingRebalance,
            Phase::Stable { .. } => State::Stable,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self.phase, Phase::Empty)
    }

    /// Returns whether the group can be dropped without a trace, not even a record. A group whose
    /// last offsets were deleted stays, as in Kafka, until it is deleted or expires.
    pub(super) fn is_nothing(&self) -> bool {
        self.is_vacant() && self.generation == 0 && !self.offsets.is_emptied()
    }

    /// Returns whether it has neither members nor offsets.
    pub(super) fn is_vacant(&self) -> bool {
        self.is_empty() && self.expected.is_empty() && self.offsets.count() == 0
    }

    /// Checks that the member exists and has the instance id that it states.
    fn check_member(&self, member: &str, instance: Option<&str>) -> Result<(), Refused> {
        if let Some(instance) = instance {
            let current = self.instances.get(instance);
            let current = current.ok_or(Refused::UnknownMember)?;
            if **current != *member {
                return Err(Refused::FencedInstance);
            }
        }
        match self.members.contains_key(member) {
            true => Ok(()),
            false => Err(Refused::UnknownMember),
        }
    }

    /// Checks the member and that its generation is the present one.
    fn check_caller(&self, caller: Caller<'_>) -> Result<(), Refused> {
        self.check_member(caller.member, caller.instance)?;
        match caller.generation == self.generation {
            true => Ok(()),
            false => Err(Refused::IllegalGeneration {
                generation: caller.generation,
            }),
        }
    }

    /// Records a heartbeat. An error tells the member to join again.
    pub(super) fn heartbeat(&mut self, caller: Caller<'_>, now_ms: u64) -> Result<(), Refused> {
        self.check_caller(caller)?;
        self.heard(caller.member, now_ms);
        match self.phase {
            Phase::Preparing { .. } => Err(Refused::RebalanceInProgress),
            Phase::Completing { .. } | Phase::Stable { .. } => Ok(()),
            Phase::Empty => Err(Refused::UnknownMember),
        }
    }

    fn heard(&mut self, member: &str, now_ms: u64) {
        if let Some(member) = self.members.get_mut(member) {
            member.heard(now_ms);
        }
    }

    /// The longest rebalance timeout of its members.
    fn rebalance_timeout_ms(&self) -> u32 {
        let timeouts = self.members.values();
        let timeouts = timeouts.map(|it| it.profile.rebalance_timeout_ms);
        timeouts.max().unwrap_or_default()
    }

    /// Begins a rebalance, unless one has begun.
    fn prepare(&mut self, step: &mut Step<'_>) {
        let timeout_ms = self.rebalance_timeout_ms();
        let delay_ms = step.options.initial_rebalance_delay_ms;
        let (pause_ms, patience) = match self.phase {
            Phase::Preparing { .. } => return self.complete_if_all_are_there(step),
            Phase::Empty if delay_ms > 0 => {
                let left_ms = timeout_ms.saturating_sub(delay_ms);
                let has_new = false;
                (delay_ms, Some(Patience { left_ms, has_new }))
            }
            Phase::Empty | Phase::Completing { .. } | Phase::Stable { .. } => (timeout_ms, None),
        };
        for member in self.members.values_mut() {
            member.has_synced = false;
            if let Some(token) = member.syncing.take() {
                member.heard(step.now_ms);
                step.synced(token, Err(Refused::RebalanceInProgress));
            }
        }
        self.phase = Phase::Preparing {
            due_ms: after(step.now_ms, pause_ms),
            patience,
        };
        self.complete_if_all_are_there(step);
    }

    /// Completes the rebalance if no member is missing. An empty group also waits for members that
    /// it does not know yet.
    fn complete_if_all_are_there(&mut self, step: &mut Step<'_>) {
        let are_all_there = self.members.values().all(|it| it.joining.is_some());
        let waits = match self.phase {
            Phase::Preparing { patience, .. } => patience.is_some(),
            _ => true,
        };
        if are_all_there && self.expected.is_empty() && !waits {
            self.complete(step);
        }
    }

    /// Begins the next generation with the members that have joined. Missing static members stay
    /// until their session ends: usually they were restarted, and will ask for their assignment.
    fn complete(&mut self, step: &mut Step<'_>) {
        let missing = self.members.iter();
        let missing =
            missing.filter(|(_, it)| it.joining.is_none() && it.profile.instance.is_none());
        let missing: Vec<_> = missing.map(|(member, _)| member.clone()).collect();
        for member in missing {
            self.remove(&member, step);
        }
        let is_there = |it: &Member| it.joining.is_some();
        let leader = self
            .leader
            .take_if(|it| self.members.get(it).is_some_and(is_there));
        let mut there = self.members.iter().filter(|(_, it)| is_there(it));
        let leader = leader.or_else(|| there.next().map(|(member, _)| member.clone()));
        let due_ms = after(step.now_ms, self.rebalance_timeout_ms());
        match leader {
            Some(leader) => {
                self.begin_generation();
                self.protocol = self.vote(&leader);
                self.leader = Some(leader);
                self.phase = Phase::Completing { due_ms };
                self.answer_joins(step);
            }
            None if self.members.is_empty() => {
                self.begin_generation();
                self.protocol = None;
                self.phase = Phase::Empty;
                self.keep(step);
            }
            // No member can lead: wait until one joins or the last session ends.
            None => {
                let due_ms = due_ms.max(after(step.now_ms, NOBODY_MS));
                let patience = None;
                self.phase = Phase::Preparing { due_ms, patience };
            }
        }
    }

    fn begin_generation(&mut self) {
        self.generation = self.generation.checked_add(1).unwrap_or(1);
    }

    /// Returns the protocol with the most votes among those that all members support. If several
    /// have as many, the leader's preference decides.
    fn vote(&self, leader: &str) -> Option<Box<str>> {
        let profiles = || self.members.values().map(|it| &it.profile);
        let is_common = |name: &str| profiles().all(|it| it.knows(name));
        let favourites: Vec<&str> = profiles()
            .filter_map(|it| {
                let mut names = it.protocols.iter().map(|it| &*it.name);
                names.find(|name| is_common(name))
            })
            .collect();
        let leader = &self.members.get(leader)?.profile;
        let mut best: Option<(usize, &str)> = None;
        for protocol in &leader.protocols {
            let votes = favourites
                .iter()
                .filter(|it| **it == &*protocol.name)
                .count();
            if votes > best.map_or(0, |(most, _)| most) {
                best = Some((votes, &protocol.name));
            }
        }
        best.map(|(_, name)| name.into())
    }

    fn answer_joins(&mut self, step: &mut Step<'_>) {
        let ids: Vec<_> = self.members.keys().cloned().collect();
        for id in ids {
            let leads = self.leader.as_ref() == Some(&id);
            let mut joined = self.joined(&id);
            if leads {
                joined.members = self.candidates();
            }
            let Some(member) = self.members.get_mut(&id) else {
                continue;
            };
            member.is_new = false;
            member.has_synced = false;
            member.profile.assignment = Arc::default();
            member.heard(step.now_ms);
            if let Some(token) = member.joining.take() {
                step.joined(token, Ok(joined));
            }
        }
    }

    /// The answer to a member's join, without the other members.
    fn joined(&self, member: &Arc<str>) -> Joined {
        Joined {
            member: member.clone(),
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone().unwrap_or_default(),
            leader: self.leader.clone().unwrap_or_else(|| member.clone()),
            members: Vec::new(),
            skip_assignment: false,
        }
    }

    /// The members as the leader gets them.
    fn candidates(&self) -> Vec<Candidate> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let members = self.members.iter();
        let candidates = members.map(|(id, member)| Candidate {
            member: id.clone(),
            instance: member.profile.instance.clone(),
            metadata: member.profile.metadata(protocol),
        });
        candidates.collect()
    }

    /// Removes a member and ends its waiting requests. The caller handles the rest of the group.
    fn remove(&mut self, id: &str, step: &mut Step<'_>) {
        self.remember();
        let Some(member) = self.members.remove(id) else {
            return;
        };
        if let Some(instance) = &member.profile.instance {
            self.instances.remove(instance);
        }
        self.leader.take_if(|it| **it == *id);
        end(&member, &Refused::UnknownMember, step);
    }

    /// Appends a record of the group's present state.
    fn keep(&mut self, step: &mut Step<'_>) {
        self.since_ms = step.unix_ms;
        self.before = None;
        step.keep(Record::Group(self.snapshot()));
    }
}

/// Ends the waiting requests of a member.
fn end(member: &Member, refused: &Refused, step: &mut Step<'_>) {
    if let Some(token) = member.joining {
        step.joined(token, Err(refused.clone()));
    }
    if let Some(token) = member.syncing {
        step.synced(token, Err(refused.clone()));
    }
}
