//! On which CPUs the roles of a run are.

use super::child::Pin;
use crate::process::Role;

/// On which CPUs the roles run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the kernel puts them.
    Unpinned,
    /// All on CPU 0.
    SameCpu,
    /// The sender on CPU 0, everybody else on CPU 1.
    TwoCpus,
}

impl Placement {
    /// All placements.
    pub const ALL: [Self; 3] = [Self::Unpinned, Self::SameCpu, Self::TwoCpus];

    /// The placement's name in flags and cases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unpinned => "unpinned",
            Self::SameCpu => "same-cpu",
            Self::TwoCpus => "two-cpus",
        }
    }

    /// What it means.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Unpinned => "unpinned: the kernel places the roles",
            Self::SameCpu => "same-cpu: all roles on CPU 0",
            Self::TwoCpus => "two-cpus: the sender on CPU 0, all other roles on CPU 1",
        }
    }

    pub(super) fn pin(self, role: Role) -> Pin {
        match (self, role) {
            (Self::Unpinned, _) => Pin::Nowhere,
            (Self::SameCpu, _) | (Self::TwoCpus, Role::Sender) => Pin::Cpu(0),
            (Self::TwoCpus, _) => Pin::Cpu(1),
        }
    }
}
