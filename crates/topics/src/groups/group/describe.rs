//! Descriptions of a group for Kafka's tools.

use std::sync::Arc;

use super::super::terms::{Described, Description, Overview, State};
use super::Group;

impl Group {
    pub(in super::super) fn overview(&self) -> Overview<'_> {
        Overview {
            group: &self.id,
            protocol_type: &self.protocol_type,
            state: self.state(),
        }
    }

    /// Describes the group. Protocol and assignments are shown only while the group is stable.
    pub(in super::super) fn describe(&self) -> Description {
        let state = self.state();
        let is_stable = state == State::Stable;
        let protocol = match is_stable {
            true => self.protocol.clone().unwrap_or_default(),
            false => Box::default(),
        };
        let members = self.members.iter();
        let members = members.map(|(id, member)| Described {
            member: id.clone(),
            instance: member.profile.instance.clone(),
            client_id: member.profile.client_id.clone(),
            client_host: member.profile.client_host.clone(),
            metadata: member.profile.metadata(&protocol),
            assignment: match is_stable {
                true => member.profile.assignment.clone(),
                false => Arc::default(),
            },
        });
        Description {
            state,
            protocol_type: self.protocol_type.clone(),
            protocol: protocol.clone(),
            members: members.collect(),
        }
    }
}
