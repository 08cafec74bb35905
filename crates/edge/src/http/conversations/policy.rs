//! How a window is cut, as clients say it.

use node::conversations::{Kinds, PartKind, Policy, Strategy};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::outgoing::push_json;
use crate::http::body;

/// How a window is cut; whatever is not said stays as it is.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = ContextPolicy)]
pub(crate) struct PolicyDocument {
    /// `budget`, `last_n`, `skip_parts` or `manual`.
    #[schema(example = "budget")]
    pub(super) policy: Option<String>,
    /// Tokens that the window costs at most, together with `reserve`; 0 for no bound.
    #[schema(example = 8000)]
    pub(super) budget: Option<u32>,
    /// Tokens of the budget that are left for the answer.
    #[schema(example = 1000)]
    pub(super) reserve: Option<u32>,
    /// Messages of these roles stay, however old they are: `system`, `developer`.
    pub(super) keep: Option<Vec<String>>,
    /// Parts that are replaced by a few words before a turn is left out: `reasoning`, `tool_call`,
    /// `tool_output`, `file`, `source`, `data`, `other`.
    pub(super) drop_first: Option<Vec<String>>,
    /// The newest turns with tools in them keep the parts that would be dropped.
    pub(super) keep_tool_turns: Option<u32>,
    /// How far the cut moves at once, as a part of the budget: 0 to 0.5.
    #[schema(example = 0.25)]
    pub(super) step: Option<f64>,
    /// Of `last_n` and `skip_parts`: messages, at most.
    pub(super) n: Option<u32>,
}

/// The words for kinds of parts.
const KINDS: [(&str, &[PartKind]); 7] = [
    ("reasoning", &[PartKind::Reasoning]),
    ("tool_call", &[PartKind::ToolCall]),
    ("tool_output", &[PartKind::ToolResult, PartKind::ToolPair]),
    ("file", &[PartKind::File]),
    ("source", &[PartKind::Source]),
    ("data", &[PartKind::Data]),
    ("other", &[PartKind::Other]),
];

/// The words for strategies.
const STRATEGIES: [&str; 4] = ["budget", "last_n", "skip_parts", "manual"];

/// Messages of `last_n` and `skip_parts` if nobody says how many.
const COUNT: u32 = 50;

impl PolicyDocument {
    /// The policy with what is said here; what is wrong, if something is.
    pub(super) fn applied_to(&self, before: Policy) -> Result<Policy, String> {
        let mut policy = before;
        policy.strategy = self.strategy(policy.strategy)?;
        policy.budget = self.budget.unwrap_or(policy.budget);
        policy.reserve = self.reserve.unwrap_or(policy.reserve);
        if let Some(keep) = &self.keep {
            policy.keep.clone_from(keep);
        }
        if let Some(words) = &self.drop_first {
            policy.drop_first = kinds(words)?;
        }
        policy.keep_tool_turns = self.keep_tool_turns.unwrap_or(policy.keep_tool_turns);
        if let Some(step) = self.step {
            if !(0.0..=1.0).contains(&step) {
                return Err("`step` is a part of the budget: 0 to 0.5".to_owned());
            }
            policy.step_permille = (step * 1000.0).round() as u16;
        }
        policy.check().map_err(|problem| problem.to_string())?;
        Ok(policy)
    }

    fn strategy(&self, before: Strategy) -> Result<Strategy, String> {
        let known = match before {
            Strategy::LastN { count } | Strategy::SkipParts { count } => Some(count),
            Strategy::Budget | Strategy::Manual => None,
        };
        let count = self.n.or(known).unwrap_or(COUNT);
        let word = self.policy.as_deref().unwrap_or_else(|| word_of(before));
        match word {
            "last_n" => Ok(Strategy::LastN { count }),
            "skip_parts" => Ok(Strategy::SkipParts { count }),
            _ if self.n.is_some() => Err("`n` belongs to `last_n` and `skip_parts`".to_owned()),
            "budget" => Ok(Strategy::Budget),
            "manual" => Ok(Strategy::Manual),
            word => Err(body::unknown("policy", word, STRATEGIES.into_iter())),
        }
    }
}

fn word_of(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Budget => "budget",
        Strategy::LastN { .. } => "last_n",
        Strategy::SkipParts { .. } => "skip_parts",
        Strategy::Manual => "manual",
    }
}

fn kinds(words: &[String]) -> Result<Kinds, String> {
    let mut kinds = Kinds::default();
    for word in words {
        let Some((_, named)) = KINDS.iter().find(|(known, _)| known == word) else {
            let known = KINDS.iter().map(|(known, _)| *known);
            return Err(body::unknown("kind of part", word, known));
        };
        kinds = named.iter().fold(kinds, |kinds, kind| kinds.with(*kind));
    }
    Ok(kinds)
}

/// The word for a kind of part.
pub(super) fn kind_word(kind: PartKind) -> &'static str {
    let found = KINDS.iter().find(|(_, kinds)| kinds.contains(&kind));
    found.map_or("text", |(word, _)| word)
}

/// Appends a policy.
pub(super) fn push_policy(out: &mut Vec<u8>, policy: &Policy) {
    let named = KINDS
        .iter()
        .filter(|(_, kinds)| kinds.iter().all(|kind| policy.drop_first.contains(*kind)));
    let n = match policy.strategy {
        Strategy::LastN { count } | Strategy::SkipParts { count } => Some(count),
        Strategy::Budget | Strategy::Manual => None,
    };
    let mut document = serde_json::Map::new();
    let mut set = |name: &str, value: serde_json::Value| document.insert(name.to_owned(), value);
    set("policy", word_of(policy.strategy).into());
    set("budget", policy.budget.into());
    set("reserve", policy.reserve.into());
    set("keep", policy.keep.clone().into());
    set(
        "drop_first",
        named.map(|(word, _)| *word).collect::<Vec<_>>().into(),
    );
    set("keep_tool_turns", policy.keep_tool_turns.into());
    set("step", (f64::from(policy.step_permille) / 1000.0).into());
    if let Some(n) = n {
        set("n", n.into());
    }
    push_json(out, &document);
}
