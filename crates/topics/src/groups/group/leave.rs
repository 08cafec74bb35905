//! LeaveGroup: members leave the group.

use super::super::terms::{Leaver, Refused};
use super::{Group, Phase, Step};

impl Group {
    /// Removes members, each for itself; then the others join again.
    pub(in super::super) fn leave(
        &mut self,
        leavers: &[Leaver<'_>],
        step: &mut Step<'_>,
    ) -> Vec<Result<(), Refused>> {
        let members = self.members.len();
        let left = leavers.iter().map(|it| self.leave_one(*it, step)).collect();
        self.gone(self.members.len() < members, step);
        left
    }

    fn leave_one(&mut self, leaver: Leaver<'_>, step: &mut Step<'_>) -> Result<(), Refused> {
        if self.expected.remove(leaver.member).is_some() {
            return Ok(());
        }
        let instance = leaver.instance.and_then(|it| self.instances.get(it));
        let member = match (leaver.member, instance) {
            ("", Some(member)) => member.to_string(),
            (member, _) => member.to_owned(),
        };
        self.check_member(&member, leaver.instance)?;
        self.remove(&member, step);
        Ok(())
    }

    /// Handles the removal of members, or of ids that were given out and not used.
    pub(super) fn gone(&mut self, were_members: bool, step: &mut Step<'_>) {
        match self.phase {
            Phase::Empty => {}
            Phase::Preparing { .. } => self.complete_if_all_are_there(step),
            Phase::Completing { .. } | Phase::Stable { .. } if were_members => self.prepare(step),
            Phase::Completing { .. } | Phase::Stable { .. } => {}
        }
    }
}
