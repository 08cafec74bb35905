//! Construction of the final window: the parts of each message that are shown, omitted or replaced.

use super::pairing::UnpairedParts;
use super::parts::{ExaminedMessage, Treatment, treatment, weight};
use super::turns::{Choice, Turns};
use super::{Cut, Kinds, Strategy, Window, WindowError, WindowMessage};
use crate::message::{PartFact, PartKind};

/// Implements [`Window::cut`].
pub(super) fn cut(window: &Window) -> Result<Cut, WindowError> {
    let messages: Vec<&ExaminedMessage> = window.entries.iter().rev().collect();
    let summary = window.bounds.summary.map_or(0, |it| u64::from(it.tokens));
    let fixed = summary + window.kept_tokens;
    let limit = window.limit.unwrap_or(u64::MAX);
    let Some(room) = limit.checked_sub(fixed) else {
        return Err(WindowError::FixedOverBudget {
            tokens: fixed,
            limit,
        });
    };
    let turns = Turns::new(window, &messages);
    if let Some(choice) = turns.choose(room) {
        return Ok(show(window, &messages, choice));
    }
    let begin = match window.policy.strategy {
        Strategy::Manual => 0,
        _ => turns.newest(),
    };
    let has_to = &messages[begin..];
    Err(WindowError::OverBudget {
        from_seq: has_to.first().map_or(window.floor, |entry| entry.seq),
        to_seq: window.bounds.head,
        tokens: fixed + whole(has_to),
        limit,
    })
}

/// Returns the cost of messages without stubs, excluding kept instructions.
fn whole(messages: &[&ExaminedMessage]) -> u64 {
    let messages = messages.iter().filter(|entry| !entry.is_kept);
    messages.map(|entry| entry.whole).sum()
}

/// Returns the kinds of parts that are always omitted.
fn skipped(window: &Window) -> Kinds {
    match window.policy.strategy {
        Strategy::SkipParts { .. } => window.policy.drop_first,
        _ => Kinds::default(),
    }
}

/// Returns the window that a choice describes.
fn show(window: &Window, messages: &[&ExaminedMessage], choice: Choice) -> Cut {
    let begin = choice.begin;
    let kept = window.kept.iter().rev();
    let kept = kept.chain(messages[..begin].iter().copied().filter(|it| it.is_kept));
    let summary = window.bounds.summary;
    let mut cut = Cut {
        has_summary: summary.is_some(),
        from_seq: messages
            .get(begin)
            .map_or(window.bounds.head + 1, |entry| entry.seq),
        head_seq: window.bounds.head,
        messages: Vec::new(),
        tokens: summary.map_or(0, |it| u64::from(it.tokens)),
        is_estimated: summary.is_some_and(|it| it.is_estimated),
        dropped: [0; 9],
    };
    for entry in kept {
        push(&mut cut, entry, alone);
    }
    let skipped = skipped(window);
    let unpaired = UnpairedParts::new(&messages[begin..], |fact| skipped.contains(fact.kind));
    for (index, entry) in messages.iter().enumerate().skip(begin) {
        if entry.is_kept {
            push(&mut cut, entry, alone);
            continue;
        }
        push(&mut cut, entry, |part, fact| {
            let is_lost = unpaired.contains(index - begin, part as u16);
            if is_lost || skipped.contains(fact.kind) {
                Some(Treatment::Omit)
            } else if index < choice.stubs_end {
                treatment(fact, window.policy.drop_first)
            } else {
                None
            }
        });
    }
    cut
}

/// Returns the treatment of a part of a kept instruction, in which calls and results are omitted.
fn alone(_: usize, fact: &PartFact) -> Option<Treatment> {
    let is_half = matches!(fact.kind, PartKind::ToolCall | PartKind::ToolResult);
    is_half.then_some(Treatment::Omit)
}

/// Adds a message, unless all of its parts are omitted.
fn push(
    cut: &mut Cut,
    entry: &ExaminedMessage,
    treated: impl Fn(usize, &PartFact) -> Option<Treatment>,
) {
    let mut shown = WindowMessage {
        seq: entry.seq,
        treated: Vec::new(),
    };
    for (index, fact) in entry.facts.iter().enumerate() {
        if let Some(treatment) = treated(index, fact) {
            cut.dropped[fact.kind as usize] += 1;
            shown.treated.push((index as u16, treatment));
        }
    }
    let is_omitted = |(_, treatment): &(u16, Treatment)| *treatment == Treatment::Omit;
    let is_empty = !entry.facts.is_empty()
        && shown.treated.len() == entry.facts.len()
        && shown.treated.iter().all(is_omitted);
    if is_empty {
        return;
    }
    cut.tokens += weight(entry.tokens, &entry.facts, &treated);
    cut.is_estimated |= entry.is_estimated || !shown.treated.is_empty();
    cut.messages.push(shown);
}
