//! How a window is cut.

use crate::message::PartKind;

/// How a window is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which messages are taken.
    pub strategy: Strategy,
    /// Tokens that the window costs at most, together with `reserve`; 0 for no bound.
    pub budget: u32,
    /// Tokens of the budget that are left for the answer.
    pub reserve: u32,
    /// Messages of these roles stay, however old they are. At most 16.
    pub keep: Vec<String>,
    /// Parts of these kinds are replaced by a stub before a turn is left out.
    pub drop_first: Kinds,
    /// The newest turns with tools in them keep the parts that would be dropped.
    pub keep_tool_turns: u32,
    /// How far the cut moves at once, in thousandths of the budget.
    pub step_permille: u16,
}

/// Most roles that [`Policy::keep`] names.
pub const KEPT_ROLES_MAX: usize = 16;

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
