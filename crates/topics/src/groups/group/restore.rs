//! Records of a group, and its restore from them.

use super::super::member::Member;
use super::super::record::{Record, Snapshot};
use super::{Group, Phase};

impl Group {
    /// The present state of the group.
    pub(super) fn snapshot(&self) -> Snapshot {
        let members = self.members.iter();
        Snapshot {
            group: self.id.clone(),
            since_ms: self.since_ms,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            members: members
                .map(|(id, it)| (id.clone(), it.profile.clone()))
                .collect(),
        }
    }

    /// Remembers the recorded state before the members change: a restart would still restore it.
    pub(super) fn remember(&mut self) {
        if self.before.is_none() {
            self.before = self.kept().map(Box::new);
        }
    }

    /// The state that was recorded last, if any.
    fn kept(&self) -> Option<Snapshot> {
        match (&self.before, &self.phase) {
            (Some(before), _) => Some(Snapshot::clone(before)),
            (None, Phase::Preparing { .. } | Phase::Completing { .. }) => None,
            (None, Phase::Empty | Phase::Stable { .. }) => {
                (self.generation > 0 || self.offsets.is_emptied()).then(|| self.snapshot())
            }
        }
    }

    /// Returns the records that restore the group.
    pub(in super::super) fn records(&self) -> impl Iterator<Item = Record> {
        let kept = self.kept().map(Record::Group);
        kept.into_iter().chain(self.offsets.records(&self.id))
    }

    /// Applies a recorded state. Its members get their deadlines when all records are read.
    pub(in super::super) fn restore(&mut self, snapshot: Snapshot) {
        let members = snapshot.members.into_iter();
        // A group without a generation is recorded only because its offsets were deleted.
        if snapshot.generation == 0 {
            self.offsets.emptied();
        }
        self.since_ms = snapshot.since_ms;
        self.generation = snapshot.generation;
        self.protocol_type = snapshot.protocol_type;
        self.protocol = snapshot.protocol;
        self.leader = snapshot.leader;
        self.members = members.map(|(id, it)| (id, Member::restored(it))).collect();
        self.instances = self
            .members
            .iter()
            .filter_map(|(id, it)| Some((it.profile.instance.clone()?, id.clone())))
            .collect();
        self.phase = match self.members.is_empty() {
            true => Phase::Empty,
            false => Phase::Stable { due_ms: None },
        };
    }

    /// Ends the restore: from now on the members need heartbeats.
    pub(in super::super) fn resume(&mut self, now_ms: u64) {
        for member in self.members.values_mut() {
            member.heard(now_ms);
        }
    }
}
