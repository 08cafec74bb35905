//! What a message weighs in a window, whole and with stubs.

use super::{Kinds, Policy, Strategy};
use crate::message::{PartFact, PartKind, is_instructing};
use crate::record::MessageView;

/// How a part is shown that is not shown as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Not at all.
    Omit,
    /// A few words stand for it; of a call or a result, for what went in or came out.
    Stub,
}

/// A message that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) seq: u64,
    pub(super) tokens: u32,
    pub(super) is_estimated: bool,
    /// Tokens of all messages before it.
    pub(super) tokens_before: u64,
    /// What it weighs as it is shown at best.
    pub(super) whole: u64,
    /// What it weighs with stubs.
    pub(super) stubbed: u64,
    /// Whether somebody speaks to the model here.
    pub(super) opens_turn: bool,
    /// Whether it stays however old it is, and as it is.
    pub(super) is_kept: bool,
    /// Whether it has parts that may be replaced.
    pub(super) is_droppable: bool,
    pub(super) facts: Vec<PartFact>,
}

impl Entry {
    pub(super) fn new(seq: u64, message: &MessageView<'_>, policy: &Policy) -> Self {
        let role = message.role;
        let is_kept = is_instructing(role) && policy.keep.iter().any(|it| it == role);
        let facts: Vec<PartFact> = message.facts.iter().collect();
        let kinds = if is_kept {
            Kinds::default()
        } else {
            policy.drop_first
        };
        let is_droppable = facts.iter().any(|fact| kinds.contains(fact.kind));
        let treated = |_, fact: &PartFact| treatment(fact, kinds);
        let skipped = |_, fact: &PartFact| kinds.contains(fact.kind).then_some(Treatment::Omit);
        let tokens = message.tokens;
        let whole = match policy.strategy {
            Strategy::SkipParts { .. } => weight(tokens, &facts, skipped),
            _ => u64::from(tokens),
        };
        Self {
            seq,
            tokens,
            is_estimated: message.is_estimated,
            tokens_before: message.links.tokens_before,
            whole,
            stubbed: weight(tokens, &facts, treated),
            opens_turn: !matches!(role, "assistant" | "tool") && !is_instructing(role),
            is_kept,
            is_droppable,
            facts,
        }
    }
}

/// How a part of one of these kinds is shown when it is old.
pub(super) fn treatment(fact: &PartFact, kinds: Kinds) -> Option<Treatment> {
    if !kinds.contains(fact.kind) {
        return None;
    }
    match fact.kind {
        PartKind::Reasoning => Some(Treatment::Omit),
        _ => fact.stub.tokens().map(|_| Treatment::Stub),
    }
}

/// What a message weighs of which some parts are treated: its tokens in proportion to the bytes of
/// the others, rounded up, and the stubs; never more than all of it. Each part counts with the comma
/// or the bracket behind it, and all of them with the bracket before.
pub(super) fn weight(
    tokens: u32,
    facts: &[PartFact],
    treated: impl Fn(usize, &PartFact) -> Option<Treatment>,
) -> u64 {
    let tokens = u64::from(tokens);
    let (mut all, mut shown, mut stubs) = (1_u64, 1_u64, 0);
    for (index, fact) in facts.iter().enumerate() {
        let size = u64::from(fact.size) + 1;
        all += size;
        match treated(index, fact) {
            None => shown += size,
            Some(Treatment::Omit) => {}
            Some(Treatment::Stub) => stubs += fact.stub.tokens().unwrap_or(0),
        }
    }
    if shown == all {
        return tokens;
    }
    let share = (u128::from(tokens) * u128::from(shown)).div_ceil(u128::from(all));
    (share as u64 + stubs).min(tokens)
}
