//! The policy by which windows are built.

use crate::message::{PartKind, is_instructing};

/// The policy by which windows are built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The strategy that selects messages.
    pub strategy: Strategy,
    /// Maximum cost of a window in tokens, including `reserve`; 0 for no limit.
    pub budget: u32,
    /// Tokens of the budget that are reserved for the answer.
    pub reserve: u32,
    /// Roles whose messages are always in the window: `system`, `developer`.
    pub keep: Vec<String>,
    /// Kinds of parts that are replaced by stubs before whole turns are left out.
    pub drop_first: Kinds,
    /// Number of newest turns with droppable parts that keep those parts.
    pub keep_tool_turns: u32,
    /// Length of a step, in thousandths of the budget: the beginning of the window moves by about
    /// one step at a time.
    pub step_permille: u16,
}

/// Maximum number of roles in [`Policy::keep`].
const KEPT_ROLES_MAX: usize = 2;

impl Default for Policy {
    fn default() -> Self {
        Self {
            strategy: Strategy::Budget,
            budget: 0,
            reserve: 0,
            keep: vec!["system".to_owned()],
            drop_first: Kinds::default(),
            keep_tool_turns: 3,
            step_permille: 250,
        }
    }
}

/// The reason why a policy is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyProblem {
    /// [`Policy::keep`] names a role other than `system` and `developer`, or too many roles.
    #[error("only the roles system and developer can be kept")]
    Keep,
    /// The step is too long.
    #[error("the step exceeds {STEP_PERMILLE_MAX} thousandths of the budget")]
    Step,
    /// The reserve is not smaller than the budget.
    #[error("the reserve of {reserve} tokens must be less than the budget of {budget}")]
    Reserve {
        /// The reserve.
        reserve: u32,
        /// The budget.
        budget: u32,
    },
}

/// Maximum of [`Policy::step_permille`]: two steps always fit into a window.
pub const STEP_PERMILLE_MAX: u16 = 500;

impl Policy {
    /// Validates the policy.
    pub fn check(&self) -> Result<(), PolicyProblem> {
        let &Self {
            budget, reserve, ..
        } = self;
        if !self.keep.iter().all(|role| is_instructing(role)) || self.keep.len() > KEPT_ROLES_MAX {
            Err(PolicyProblem::Keep)
        } else if self.step_permille > STEP_PERMILLE_MAX {
            Err(PolicyProblem::Step)
        } else if budget > 0 && reserve >= budget {
            Err(PolicyProblem::Reserve { reserve, budget })
        } else {
            Ok(())
        }
    }
}

/// The strategy that selects messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// As many of the newest turns as fit into the budget.
    Budget,
    /// The newest messages, in whole turns.
    LastN {
        /// Maximum number of messages.
        count: u32,
    },
    /// The newest messages in whole turns, always without the parts of [`Policy::drop_first`].
    SkipParts {
        /// Maximum number of messages; 0 for no limit.
        count: u32,
    },
    /// All messages that the summary does not cover. The owner moves the summary forward.
    Manual,
}

/// A set of kinds of parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// Returns the set as a number: bit *n* is the kind with number *n*.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Returns the set for a number; `None` if a bit has no kind.
    pub fn from_bits(bits: u16) -> Option<Self> {
        (bits >> PartKind::ALL.len() == 0).then_some(Self(bits))
    }

    /// Returns the set with one more kind.
    #[must_use]
    pub fn with(self, kind: PartKind) -> Self {
        Self(self.0 | 1 << kind as u16)
    }

    /// Returns whether the set contains a kind.
    pub fn contains(self, kind: PartKind) -> bool {
        self.0 & 1 << kind as u16 != 0
    }

    /// Iterates over the kinds in the set, by number.
    pub fn iter(self) -> impl Iterator<Item = PartKind> {
        PartKind::ALL
            .into_iter()
            .filter(move |kind| self.contains(*kind))
    }
}
