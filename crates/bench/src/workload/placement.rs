//! CPU placement of the roles of a run.

use super::child::Pin;
use crate::process::Role;

/// CPU placement of the roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// No placement: the kernel chooses.
    Unpinned,
    /// All roles on CPU 0.
    SameCpu,
    /// The sender on CPU 0, all other roles on CPU 1.
    TwoCpus,
}

impl Placement {
    /// All placements.
    pub const ALL: [Self; 3] = [Self::Unpinned, Self::SameCpu, Self::TwoCpus];

    /// Returns the placement's name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unpinned => "unpinned",
            Self::SameCpu => "same-cpu",
            Self::TwoCpus => "two-cpus",
        }
    }

    /// Describes the placement for a report.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Unpinned => "unpinned: the kernel places the roles",
            Self::SameCpu => "same-cpu: all roles on CPU 0",
            Self::TwoCpus => "two-cpus: the sender on CPU 0, all other roles on CPU 1",
        }
    }

    /// Returns the placement of a role.
    #[must_use]
    pub fn pin(self, role: Role) -> Pin {
        match (self, role) {
            (Self::Unpinned, _) => Pin::Nowhere,
            (Self::SameCpu, _) | (Self::TwoCpus, Role::Sender) => Pin::Cpu(0),
            (Self::TwoCpus, _) => Pin::Cpu(1),
        }
    }
}
