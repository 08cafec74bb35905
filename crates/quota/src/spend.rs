//! The cost of admitted takes, by limit, for the usage that a node shows.

use crate::limit::{Kind, LimitId};
use crate::plan::Plan;
use crate::rules::Rules;
use crate::subject::{Prefix, Subject};

impl Plan {
    /// Returns the amounts that an admitted take took, by limit. Slots are left out, since they are
    /// returned.
    pub fn costs<'a>(&'a self, rules: &'a Rules) -> impl Iterator<Item = (LimitId, u64)> + 'a {
        let taken = self.steps.iter().filter(|step| step.shadowed.is_none());
        taken.filter_map(|step| {
            let amount = u64::try_from(step.count).ok()?;
            rules
                .is_spent(step.index)
                .then(|| (rules.id(step.index), amount))
        })
    }
}

impl Rules {
    /// Returns the hash of the subject's name, without its run.
    pub fn hash_of(&self, subject: &Subject<'_>) -> u64 {
        let (name, run) = (subject.name(), "");
        self.seed.hash(Prefix { name, run })
    }

    /// Returns whether the amounts of a limit are spent. Slots are returned instead.
    pub(crate) fn is_spent(&self, index: usize) -> bool {
        !matches!(self.kind(index), Kind::Slots { .. })
    }
}
