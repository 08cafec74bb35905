//! SyncGroup: assignments.

use std::sync::Arc;

use super::super::terms::{Refused, Synced, Synchronize, Token};
use super::{Group, Phase, Step};

impl Group {
    /// Handles a sync. A decision answers it, now or later.
    pub(in super::super) fn sync(
        &mut self,
        token: Token,
        ask: &Synchronize<'_>,
        step: &mut Step<'_>,
    ) {
        if let Err(refused) = self.ask(token, ask, step) {
            step.synced(token, Err(refused));
        }
    }

    fn ask(
        &mut self,
        token: Token,
        ask: &Synchronize<'_>,
        step: &mut Step<'_>,
    ) -> Result<(), Refused> {
        self.check_caller(ask.caller)?;
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let is_other = |believed: Option<&str>, it: &str| believed.is_some_and(|name| name != it);
        if is_other(ask.protocol_type, &self.protocol_type) || is_other(ask.protocol, protocol) {
            return Err(Refused::InconsistentProtocol);
        }
        match self.phase {
            Phase::Empty => Err(Refused::UnknownMember),
            Phase::Preparing { .. } => Err(Refused::RebalanceInProgress),
            Phase::Completing { .. } => {
                self.wait_for_assignment(ask.caller.member, token, step);
                match self.leader.as_deref() == Some(ask.caller.member) {
                    true => self.assign(ask.assignments, step),
                    false => Ok(()),
                }
            }
            Phase::Stable { .. } => {
                self.wait_for_assignment(ask.caller.member, token, step);
                self.answer_syncs(step);
                Ok(())
            }
        }
    }

    fn wait_for_assignment(&mut self, member: &str, token: Token, step: &mut Step<'_>) {
        if let Some(member) = self.members.get_mut(member) {
            member.has_synced = true;
            // A new request of the member ends its previous one.
            if let Some(before) = member.syncing.replace(token) {
                step.synced(before, Err(Refused::RebalanceInProgress));
            }
        }
    }

    /// Stores the leader's assignments, records them, and answers all waiting syncs.
    fn assign(
        &mut self,
        assignments: &[(&str, &[u8])],
        step: &mut Step<'_>,
    ) -> Result<(), Refused> {
        let members = self.members.iter();
        let said: usize = members.map(|(id, it)| id.len() + it.profile.size()).sum();
        let assigned: usize = assignments.iter().map(|(_, bytes)| bytes.len()).sum();
        let (size, max) = (said + assigned, step.options.group_size_max);
        if size > max {
            return self.refuse_assignment(size, max, step);
        }
        for (member, bytes) in assignments {
            if let Some(member) = self.members.get_mut(*member) {
                member.profile.assignment = Arc::from(*bytes);
            }
        }
        let due_ms = match self.phase {
            Phase::Completing { due_ms } => Some(due_ms),
            _ => None,
        };
        self.phase = Phase::Stable { due_ms };
        self.keep(step);
        self.answer_syncs(step);
        Ok(())
    }

    /// Refuses assignments that exceed the size limit: all waiting syncs fail, and the members join
    /// again.
    fn refuse_assignment(
        &mut self,
        size: usize,
        max: usize,
        step: &mut Step<'_>,
    ) -> Result<(), Refused> {
        let refused = Refused::TooLarge {
            what: "the data and assignments of the group's members",
            size,
            max,
        };
        for member in self.members.values_mut() {
            if let Some(token) = member.syncing.take() {
                member.heard(step.now_ms);
                step.synced(token, Err(refused.clone()));
            }
        }
        self.prepare(step);
        Ok(())
    }

    fn answer_syncs(&mut self, step: &mut Step<'_>) {
        for member in self.members.values_mut() {
            if let Some(token) = member.syncing.take() {
                member.heard(step.now_ms);
                let synced = Synced {
                    protocol_type: self.protocol_type.clone(),
                    protocol: self.protocol.clone().unwrap_or_default(),
                    assignment: member.profile.assignment.clone(),
                };
                step.synced(token, Ok(synced));
            }
        }
        if let Phase::Stable { due_ms } = &mut self.phase
            && self.members.values().all(|it| it.has_synced)
        {
            *due_ms = None;
        }
    }
}
