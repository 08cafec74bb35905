//! How a window is cut.

use crate::message::{PartKind, is_instructing};

/// How a window is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which messages are taken.
    pub strategy: Strategy,
    /// Tokens that the window costs at most, together with `reserve`; 0 for no bound.
    pub budget: u32,
    /// Tokens of the budget that are left for the answer.
    pub reserve: u32,
    /// Messages of these roles stay, however old they are: `system`, `developer`.
    pub keep: Vec<String>,
    /// Parts of these kinds are replaced by a stub before a turn is left out.
    pub drop_first: Kinds,
    /// The newest turns with tools in them keep the parts that would be dropped.
    pub keep_tool_turns: u32,
    /// How far the cut moves at once, in thousandths of the budget.
    pub step_permille: u16,
}

/// Most roles that [`Policy::keep`] names.
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

/// What is wrong with a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyProblem {
    /// A role to be kept does not instruct.
    #[error("only messages of the roles system and developer can be kept however old they are")]
    Keep,
    /// The step is none.
    #[error("a step has at most {STEP_PERMILLE_MAX} thousandths of the budget")]
    Step,
    /// The reserve leaves nothing.
    #[error("a reserve of {reserve} leaves nothing of a budget of {budget}")]
    Reserve {
        /// The reserve.
        reserve: u32,
        /// The budget.
        budget: u32,
    },
}

/// Longest [`Policy::step_permille`]: two steps always fit into a window.
pub const STEP_PERMILLE_MAX: u16 = 500;

impl Policy {
    /// Whether windows can be cut like that.
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

/// Which messages are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// As many turns as the budget holds, the newest ones.
    Budget,
    /// The newest messages, in whole turns.
    LastN {
        /// At most so many.
        count: u32,
    },
    /// The same, without the parts that are dropped first, wherever they stand.
    SkipParts {
        /// At most so many messages.
        count: u32,
    },
    /// Everything that the summary does not stand for; its owner moves the summary.
    Manual,
}

/// A set of kinds of parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// The set as a number: bit *n* is the kind of number *n*.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The set of that number; `None` if it names a kind that does not exist.
    pub fn from_bits(bits: u16) -> Option<Self> {
        (bits >> PartKind::ALL.len() == 0).then_some(Self(bits))
    }

    /// The same set with that kind.
    #[must_use]
    pub fn with(self, kind: PartKind) -> Self {
        Self(self.0 | 1 << kind as u16)
    }

    /// Whether that kind is in it.
    pub fn contains(self, kind: PartKind) -> bool {
        self.0 & 1 << kind as u16 != 0
    }

    /// The kinds in it, by number.
    pub fn iter(self) -> impl Iterator<Item = PartKind> {
        PartKind::ALL
            .into_iter()
            .filter(move |kind| self.contains(*kind))
    }
}
