//! The cost of a message in a window, whole or with stubs.

use super::{Kinds, Policy, Strategy};
use crate::message::{PartFact, PartKind, is_instructing};
use crate::record::MessageView;

/// The way in which a part is shown that is not shown in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The part is omitted.
    Omit,
    /// A short stub replaces the part; for a call or a result, its input or output.
    Stub,
}

/// A message that was examined.
#[derive(Clone, Debug)]
pub(super) struct ExaminedMessage {
    pub(super) seq: u64,
    pub(super) tokens: u32,
    pub(super) is_estimated: bool,
    /// Tokens of all earlier messages.
    pub(super) tokens_before: u64,
    /// The cost of the message as far as the strategy shows it.
    pub(super) whole: u64,
    /// The cost with stubs.
    pub(super) stubbed: u64,
    /// True if the message begins a turn: it addresses the model.
    pub(super) opens_turn: bool,
    /// True if the message is a kept instruction, which is always shown in full.
    pub(super) is_kept: bool,
    /// True if the message has parts that may be replaced.
    pub(super) is_droppable: bool,
    pub(super) facts: Vec<PartFact>,
}

impl ExaminedMessage {
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

/// Returns the treatment of an old part: `None` unless its kind is in `kinds`.
pub(super) fn treatment(fact: &PartFact, kinds: Kinds) -> Option<Treatment> {
    if !kinds.contains(fact.kind) {
        return None;
    }
    match fact.kind {
        PartKind::Reasoning => Some(Treatment::Omit),
        _ => fact.stub.tokens().map(|_| Treatment::Stub),
    }
}

/// Returns the cost of a message with treated parts: its tokens in proportion to the bytes of the
/// untreated parts, rounded up, plus the stubs, but at most `tokens`. Each part counts with the
/// comma or bracket after it, and all of them with the opening bracket.
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
