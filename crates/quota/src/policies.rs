//! The set of all limits, validated as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::limit::{AMOUNT_MAX, Bucket, Kind, Limit, LimitId, Mode, PERIOD_NS_MAX, WEIGHT_MAX};
use crate::subject::Subject;
use crate::unit::Unit;

/// Maximum number of limits.
pub const LIMITS_MAX: usize = 1_024;
const NAME_SIZE_MAX: usize = 128;
const THRESHOLDS_MAX: usize = 16;

/// The limits of one version of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    version: u64,
    /// The limits in configuration order.
    limits: Vec<(LimitId, Arc<Limit>)>,
    next_id: u32,
    /// Indices of limits by the org of their pattern: those for any org, and those for one.
    anywhere: Vec<u32>,
    by_org: BTreeMap<Box<str>, Vec<u32>>,
    units: BTreeSet<Unit>,
}

/// An invalid limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit `{limit}`: {reason}")]
pub struct Mistake {
    /// The name of the limit.
    pub limit: String,
    /// The reason, as a text for users.
    pub reason: String,
}

impl Policies {
    /// Returns the version that follows this one, or all mistakes in `limits`. A limit keeps the id
    /// of the previous limit with the same name.
    pub fn next(&self, limits: Vec<Limit>) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        if limits.len() > LIMITS_MAX {
            let reason = format!("too many limits: {} (maximum {LIMITS_MAX})", limits.len());
            let limit = "*".to_owned();
            mistakes.push(Mistake { limit, reason });
        }
        let mut names = BTreeSet::new();
        for limit in &limits {
            let is_new = names.insert(limit.name.clone());
            let twice = (!is_new).then(|| "another limit has the same name".to_owned());
            mistakes.extend(
                reasons(limit)
                    .into_iter()
                    .chain(twice)
                    .map(|reason| Mistake {
                        limit: limit.name.chars().take(NAME_SIZE_MAX).collect(),
                        reason,
                    }),
            );
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut next_id = self.next_id;
        let numbered = limits.into_iter().map(|limit| {
            let known = self.find(&limit.name).map(|index| self.limits[index].0);
            let id = known.unwrap_or_else(|| {
                next_id += 1;
                LimitId(next_id)
            });
            (id, Arc::new(limit))
        });
        let limits = numbered.collect();
        Ok(Self::restored(self.version + 1, limits, next_id))
    }

    /// Rebuilds policies from a journal record.
    pub(crate) fn restored(version: u64, limits: Vec<(LimitId, Arc<Limit>)>, next_id: u32) -> Self {
        let mut policies = Self {
            version,
            next_id,
            units: limits.iter().map(|(_, limit)| limit.unit).collect(),
            ..Self::default()
        };
        for (index, (_, limit)) in (0_u32..).zip(&limits) {
            match (limit.mode, limit.pattern.org()) {
                (Mode::Off, _) => {}
                (_, None) => policies.anywhere.push(index),
                (_, Some(org)) => policies.by_org.entry(org.into()).or_default().push(index),
            }
        }
        policies.limits = limits;
        policies
    }

    /// Returns the number of the version; 0 if no limits were ever set.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the limits with their ids, in configuration order.
    pub fn limits(&self) -> &[(LimitId, Arc<Limit>)] {
        &self.limits
    }

    pub(crate) fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Returns the index of the limit with that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.limits
            .iter()
            .position(|(_, limit)| *limit.name == *name)
    }

    /// Returns the index of the limit with that id.
    pub fn index(&self, id: LimitId) -> Option<usize> {
        self.limits.iter().position(|(known, _)| *known == id)
    }

    /// Returns whether any limit counts the unit.
    pub fn counts(&self, unit: Unit) -> bool {
        self.units.contains(&unit)
    }

    /// Returns the indices of the limits that cover the subject and are not off.
    pub(crate) fn covering<'a>(
        &'a self,
        subject: &'a Subject<'_>,
    ) -> impl Iterator<Item = usize> + 'a {
        let of_org = match self.by_org.is_empty() {
            true => None,
            false => self.by_org.get(subject.part(0)),
        };
        let indices = self.anywhere.iter().chain(of_org.into_iter().flatten());
        indices.map(|index| *index as usize).filter(|index| {
            let pattern = &self.limits[*index].1.pattern;
            match pattern.is_wild() {
                true => !pattern.is_per_run() || !subject.run().is_empty(),
                false => pattern.covers(subject),
            }
        })
    }
}

fn reasons(limit: &Limit) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut check = |holds: bool, reason: &str| {
        if !holds {
            reasons.push(reason.to_owned());
        }
    };
    let is_name = |byte: u8| byte.is_ascii_graphic() && !b"\"/;=".contains(&byte);
    check(
        (1..=NAME_SIZE_MAX).contains(&limit.name.len()) && limit.name.bytes().all(is_name),
        "the name must have 1 to 128 visible characters without `\"`, `/`, `;` and `=`",
    );
    check(
        (1..=WEIGHT_MAX).contains(&limit.weight),
        "the weight must be between 1 and 1000",
    );
    check(
        limit.warn.len() <= THRESHOLDS_MAX
            && limit.warn.windows(2).all(|pair| pair[0] < pair[1])
            && limit.warn.iter().all(|share| (1..=1_000).contains(share)),
        "`warn` must have at most 16 ascending shares between 0.001 and 1",
    );
    check(
        limit.kind.capacity() <= AMOUNT_MAX,
        "the capacity must be at most 1000000000000000",
    );
    match limit.kind {
        Kind::Bucket(Bucket {
            amount, period_ns, ..
        }) => {
            check(
                amount <= AMOUNT_MAX,
                "the refill must be at most 1000000000000000",
            );
            check(
                (1..=PERIOD_NS_MAX).contains(&period_ns),
                "the refill period must be between 1 ns and 366 days",
            );
        }
        Kind::Budget { zone, .. } => check(
            zone.is_valid(),
            "the time zone must be within 18 hours of UTC",
        ),
        Kind::Slots { .. } => {}
    }
    reasons
}
