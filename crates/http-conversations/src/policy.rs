//! Window policies in requests and answers.

use conversation_service::{Kinds, PartKind, Policy, Strategy};
use http_api::body;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::outgoing::push_json;

/// Policy of context windows. Absent fields keep their values.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = ContextPolicy)]
pub(crate) struct PolicyDocument {
    /// Strategy: `budget`, `last_n`, `skip_parts` or `manual`.
    #[schema(example = "budget")]
    pub(super) policy: Option<String>,
    /// Most tokens of the window and `reserve` together; 0 for no limit.
    #[schema(example = 8000)]
    pub(super) budget: Option<u32>,
    /// Tokens of the budget to leave for the answer.
    #[schema(example = 1000)]
    pub(super) reserve: Option<u32>,
    /// Roles whose messages always stay, such as `system` and `developer`.
    pub(super) keep: Option<Vec<String>>,
    /// Kinds of parts to replace by a short text before whole turns are left out: `reasoning`,
    /// `tool_call`, `tool_output`, `file`, `source`, `data`, `other`.
    pub(super) drop_first: Option<Vec<String>>,
    /// Number of newest turns with tool calls whose parts are not dropped.
    pub(super) keep_tool_turns: Option<u32>,
    /// Step in which the window's beginning moves, as a fraction of the budget: 0 to 0.5.
    #[schema(example = 0.25)]
    pub(super) step: Option<f64>,
    /// Most messages, for `last_n` and `skip_parts`.
    pub(super) n: Option<u32>,
}

/// Names of the kinds of parts.
const KINDS: [(&str, &[PartKind]); 7] = [
    ("reasoning", &[PartKind::Reasoning]),
    ("tool_call", &[PartKind::ToolCall]),
    ("tool_output", &[PartKind::ToolResult, PartKind::ToolPair]),
    ("file", &[PartKind::File]),
    ("source", &[PartKind::Source]),
    ("data", &[PartKind::Data]),
    ("other", &[PartKind::Other]),
];

/// Names of the strategies.
const STRATEGIES: [&str; 4] = ["budget", "last_n", "skip_parts", "manual"];

/// Default number of messages for `last_n` and `skip_parts`.
const COUNT: u32 = 50;

impl PolicyDocument {
    /// Returns the policy with these changes, or the reason why they are invalid.
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
                return Err("`step` is a fraction of the budget, from 0 to 0.5".to_owned());
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
            _ if self.n.is_some() => {
                Err("`n` requires the policy `last_n` or `skip_parts`".to_owned())
            }
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

/// Returns the name of a kind of part.
pub(super) fn kind_word(kind: PartKind) -> &'static str {
    let found = KINDS.iter().find(|(_, kinds)| kinds.contains(&kind));
    found.map_or("text", |(word, _)| word)
}

/// Appends a policy as JSON.
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
