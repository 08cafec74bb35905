//! Joins: admission, member ids, and whether a rebalance is needed.

use std::sync::Arc;

use super::super::member::{Member, Profile, after};
use super::super::terms::{Join, Protocol, Refused, Token};
use super::{Group, Phase, Step, end};

/// The bytes that a member id has in addition to the name from which it is made.
pub(in super::super) const ID_SIZE: usize = 37;

impl Group {
    /// Handles a join. A decision answers it, now or later.
    pub(in super::super) fn join(&mut self, token: Token, join: Join<'_>, step: &mut Step<'_>) {
        if let Err(refused) = self.let_in(token, join, step) {
            step.joined(token, Err(refused));
        }
    }

    fn let_in(&mut self, token: Token, join: Join<'_>, step: &mut Step<'_>) -> Result<(), Refused> {
        self.check_room(&join, step)?;
        if !self.can_agree(&join) {
            return Err(Refused::InconsistentProtocol);
        }
        match (join.member, join.instance) {
            ("", Some(instance)) => match self.instances.get(instance).cloned() {
                Some(old) => self.take_the_place_of(&old, token, join, step),
                None => self.add(new_id(instance, join.random), token, join, step),
            },
            ("", None) => {
                let id = new_id(join.client_id, join.random);
                match join.identity_first {
                    true => return self.expect(id, &join, step),
                    false => self.add(id, token, join, step),
                }
            }
            (member, _) => match self.expected.remove_entry(member) {
                Some((id, _)) => self.add(id, token, join, step),
                None => {
                    self.check_member(member, join.instance)?;
                    self.rejoin(token, join, step);
                }
            },
        }
        Ok(())
    }

    /// Checks the limits on members and on the size of their data. A present member may stay even
    /// if the limit was lowered, unless too many others have joined before it.
    fn check_room(&self, join: &Join<'_>, step: &Step<'_>) -> Result<(), Refused> {
        let max = step.options.members_max;
        let place = join.instance.and_then(|it| self.instances.get(it));
        let known = place.map_or(join.member, |it| it);
        let known = self.members.get_key_value(known);
        let (is_in, count) = match self.phase {
            Phase::Empty => (false, 0),
            Phase::Preparing { .. } => {
                let is_in = known.is_some_and(|(_, it)| it.joining.is_some());
                let there = self.members.values().filter(|it| it.joining.is_some());
                (is_in, there.count())
            }
            Phase::Completing { .. } | Phase::Stable { .. } => {
                (known.is_some(), self.members.len())
            }
        };
        if !is_in && count >= max {
            return Err(Refused::MembersMax { max });
        }
        let others = self.members.iter();
        let others = others.filter(|(id, _)| known.is_none_or(|(known, _)| known != *id));
        let others: usize = others.map(|(id, it)| id.len() + it.profile.size()).sum();
        let size = others + size(join);
        let max = step.options.group_size_max;
        match size <= max {
            true => Ok(()),
            false => Err(Refused::TooLarge {
                what: "the data of the group's members",
                size,
                max,
            }),
        }
    }

    /// Returns whether there is a protocol that the joining client and all members support.
    fn can_agree(&self, join: &Join<'_>) -> bool {
        if self.members.is_empty() {
            return !join.protocol_type.is_empty() && !join.protocols.is_empty();
        }
        let mut names = join.protocols.iter().map(|it| &*it.name);
        *join.protocol_type == *self.protocol_type
            && names.any(|name| self.members.values().all(|it| it.profile.knows(name)))
    }

    /// Returns a new member id, with which the client has to join within its session timeout.
    fn expect(&mut self, id: Arc<str>, join: &Join<'_>, step: &Step<'_>) -> Result<(), Refused> {
        let max = step.options.members_max;
        if self.expected.len() >= max {
            return Err(Refused::MembersMax { max });
        }
        let until_ms = after(step.now_ms, join.session_timeout_ms);
        self.expected.insert(id.clone(), until_ms);
        Err(Refused::MemberIdRequired { member: id })
    }

    fn add(&mut self, id: Arc<str>, token: Token, join: Join<'_>, step: &mut Step<'_>) {
        self.remember();
        if self.members.is_empty() {
            self.protocol_type = join.protocol_type.into();
        }
        if let Some(instance) = join.instance {
            self.instances.insert(instance.into(), id.clone());
        }
        let deadline_ms = after(step.now_ms, step.options.new_member_timeout_ms);
        let mut member = Member::new(Profile::of(join), deadline_ms);
        member.joining = Some(token);
        self.members.insert(id, member);
        if let Phase::Preparing {
            patience: Some(patience),
            ..
        } = &mut self.phase
        {
            patience.has_new = true;
        }
        self.prepare(step);
    }

    /// Handles a join of a known member.
    fn rejoin(&mut self, token: Token, join: Join<'_>, step: &mut Step<'_>) {
        let Some((id, member)) = self.members.get_key_value(join.member) else {
            return step.joined(token, Err(Refused::UnknownMember));
        };
        let id = id.clone();
        let is_same = member.profile.protocols == join.protocols;
        let leads = self.leader.as_ref() == Some(&id);
        match self.phase {
            // The member did not receive the answer.
            Phase::Completing { .. } if is_same => {
                let mut joined = self.joined(&id);
                if leads {
                    joined.members = self.candidates();
                }
                self.heard(&id, step.now_ms);
                step.joined(token, Ok(joined));
            }
            // A leader that joins again has seen a change.
            Phase::Stable { .. } if is_same && !leads => {
                let joined = self.joined(&id);
                self.heard(&id, step.now_ms);
                step.joined(token, Ok(joined));
            }
            _ => {
                self.update(&id, token, join, step);
                self.prepare(step);
            }
        }
    }

    /// Replaces the member's data; it waits for the next generation.
    fn update(&mut self, id: &str, token: Token, join: Join<'_>, step: &mut Step<'_>) {
        self.remember();
        let Some(member) = self.members.get_mut(id) else {
            return;
        };
        let assignment = std::mem::take(&mut member.profile.assignment);
        member.profile = Profile {
            assignment,
            ..Profile::of(join)
        };
        // A new request of the member ends its previous one.
        if let Some(before) = member.joining.replace(token) {
            step.joined(before, Err(Refused::RebalanceInProgress));
        }
    }

    /// Replaces a restarted static member: it gets a new member id, and the old one becomes
    /// invalid. If its data is unchanged, no rebalance is needed.
    fn take_the_place_of(
        &mut self,
        old: &Arc<str>,
        token: Token,
        join: Join<'_>,
        step: &mut Step<'_>,
    ) {
        self.remember();
        let Some(mut member) = self.members.remove(old) else {
            return step.joined(token, Err(Refused::UnknownMember));
        };
        end(&member, &Refused::FencedInstance, step);
        member.joining = None;
        member.syncing = None;
        member.heard(step.now_ms);
        let instance = join.instance.unwrap_or_default();
        let id = new_id(instance, join.random);
        self.instances.insert(instance.into(), id.clone());
        let leader_before = self.leader.clone();
        let leads = leader_before.as_ref() == Some(old);
        if leads {
            self.leader = Some(id.clone());
        }
        let may_skip = join.may_skip_assignment;
        let wants_the_same = member.profile.topics == join.topics;
        self.members.insert(id.clone(), member);
        self.update(&id, token, join, step);
        let elected = self.leader.as_deref().and_then(|it| self.vote(it));
        let stays = elected == self.protocol && wants_the_same;
        if !(stays && matches!(self.phase, Phase::Stable { .. })) {
            return self.prepare(step);
        }
        if let Some(member) = self.members.get_mut(&id) {
            member.joining = None;
        }
        self.keep(step);
        let mut joined = self.joined(&id);
        if leads && may_skip {
            joined.members = self.candidates();
            joined.skip_assignment = true;
        } else if let Some(leader) = leader_before {
            // A leader that does not support skipping gets the old leader's id, so that it does not
            // assign.
            joined.leader = leader;
        }
        step.joined(token, Ok(joined));
    }
}

/// Bytes of the member's data, including a member id that is still to be made.
fn size(join: &Join<'_>) -> usize {
    let id = match join.member {
        "" => join.instance.unwrap_or(join.client_id).len() + ID_SIZE,
        member => member.len(),
    };
    let protocols = join.protocols.iter();
    let protocols = protocols.map(|Protocol { name, metadata }| name.len() + metadata.len());
    let topics = join.topics.iter().flatten();
    let topics = topics.map(|it| it.len() + size_of::<u16>());
    id + join.instance.map_or(0, str::len)
        + join.client_id.len()
        + join.client_host.len()
        + protocols.sum::<usize>()
        + topics.sum::<usize>()
}

/// Returns a new member id as Kafka makes them: a name, and a number in the form of a UUID.
fn new_id(name: &str, random: u128) -> Arc<str> {
    let hex = format!("{random:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    format!("{name}-{}", parts.join("-")).into()
}
