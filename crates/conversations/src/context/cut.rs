//! Where a window begins, and what of each message is shown.

use super::bonds::{Bonds, Reach};
use super::parts::{Entry, Treatment, treatment, weight};
use super::{Cut, Kinds, Shown, Strategy, Window, WindowError};
use crate::message::{PartFact, PartKind};

/// What was chosen.
struct Choice {
    /// The first message.
    begin: usize,
    /// Messages before this one are shown with stubs.
    stubs_end: usize,
    bonds: Bonds,
}

/// See [`Window::cut`].
pub(super) fn cut(window: &Window) -> Result<Cut, WindowError> {
    let messages: Vec<&Entry> = window.entries.iter().rev().collect();
    let summary = window.bounds.summary.map_or(0, |it| u64::from(it.tokens));
    let fixed = summary + window.kept_tokens;
    let limit = window.limit.unwrap_or(u64::MAX);
    let Some(room) = limit.checked_sub(fixed) else {
        return Err(WindowError::FixedOverBudget {
            tokens: fixed,
            limit,
        });
    };
    // A bond over several turns that is too long to be held is broken, and both its ends left out.
    for reach in [Reach::Far, Reach::Turn] {
        let turns = Turns::new(window, &messages, reach);
        if let Some((begin, stubs_end)) = turns.choose(room) {
            let choice = Choice {
                begin,
                stubs_end,
                bonds: turns.bonds,
            };
            return Ok(show(window, &messages, &choice));
        }
    }
    let begin = match window.policy.strategy {
        Strategy::Manual => 0,
        _ => Turns::new(window, &messages, Reach::Turn).newest(),
    };
    let has_to = &messages[begin..];
    Err(WindowError::OverBudget {
        from_seq: has_to.first().map_or(window.floor, |entry| entry.seq),
        to_seq: window.bounds.head,
        tokens: fixed + sum(has_to, |_, entry| entry.whole),
        limit,
    })
}

fn sum(messages: &[&Entry], weight: impl Fn(usize, &Entry) -> u64) -> u64 {
    let messages = messages.iter().enumerate();
    let weights = messages.filter(|(_, entry)| !entry.is_kept);
    weights.map(|(index, entry)| weight(index, entry)).sum()
}

/// Messages in order, and the turns they make.
struct Turns<'a> {
    window: &'a Window,
    messages: &'a [&'a Entry],
    /// Whether the first message is the first that there is.
    is_all: bool,
    bonds: Bonds,
    /// The first message of each turn.
    begins: Vec<usize>,
}

impl<'a> Turns<'a> {
    fn new(window: &'a Window, messages: &'a [&'a Entry], reach: Reach) -> Self {
        let is_all = messages.first().is_none_or(|it| it.seq <= window.floor);
        let skipped = skipped(window);
        let is_skipped = |fact: &PartFact| skipped.contains(fact.kind);
        let bonds = Bonds::new(messages, reach, is_all, is_skipped);
        let opens = |index: &usize| (is_all && *index == 0) || messages[*index].opens_turn;
        let begins = (0..messages.len()).filter(opens);
        let begins = begins.filter(|index| bonds.is_free(*index)).collect();
        Self {
            window,
            messages,
            is_all,
            bonds,
            begins,
        }
    }

    /// Where the newest turn begins, as far as was looked.
    fn newest(&self) -> usize {
        self.begins.last().copied().unwrap_or(0)
    }

    /// Where the window begins, and where the messages that are shown as they are.
    fn choose(&self, room: u64) -> Option<(usize, usize)> {
        let Self {
            window, messages, ..
        } = self;
        let whole = sum(messages, |_, entry| entry.whole);
        let is_count_well = window.count_max().is_none_or(|max| window.count <= max);
        if self.is_all && whole <= room && is_count_well {
            return Some((0, 0));
        }
        if window.policy.strategy == Strategy::Manual {
            return None;
        }
        let stubs_end = self.stubs_end();
        let begin = self.begin(room, stubs_end)?;
        Some((begin, stubs_end))
    }

    /// The oldest mark from which on everything fits; the oldest turn if there is no such mark.
    fn begin(&self, room: u64, stubs_end: usize) -> Option<usize> {
        let count_max = self.window.count_max().unwrap_or(u64::MAX);
        let (mut weight, mut count, mut end) = (0, 0, self.messages.len());
        let (mut mark, mut turn) = (None, None);
        for (index, begin) in self.begins.iter().enumerate().rev() {
            let messages = (*begin..end).map(|at| (at, self.messages[at]));
            for (at, entry) in messages.filter(|(_, entry)| !entry.is_kept) {
                count += 1;
                weight += match at < stubs_end {
                    true => entry.stubbed,
                    false => entry.whole,
                };
            }
            end = *begin;
            let is_newest = index + 1 == self.begins.len();
            if weight > room || (count > count_max && !is_newest) {
                break;
            }
            turn = Some(*begin);
            if self.is_mark(index) {
                mark = Some(*begin);
            }
        }
        mark.or(turn)
    }

    /// See [`super`].
    fn is_mark(&self, index: usize) -> bool {
        let begin = self.messages[self.begins[index]];
        let end = match self.begins.get(index + 1) {
            Some(next) => self.messages[*next - 1],
            None => self.messages[self.messages.len() - 1],
        };
        let before = index
            .checked_sub(1)
            .map(|it| self.messages[self.begins[it]]);
        if before.is_none() && self.is_all {
            return true;
        }
        self.window.scales().any(|(scale, step)| {
            let at = scale.begin(begin);
            let is_long = scale.end(end).saturating_sub(at) >= step;
            is_long
                || match before {
                    Some(before) => at / step != scale.begin(before) / step,
                    // The turn before it began before everything that was looked at.
                    None => at.saturating_sub(scale.begin(self.messages[0])) >= step,
                }
        })
    }

    /// Messages before this one are shown with stubs: those before the newest mark that leaves as
    /// many turns as they are, in which there is something to replace, as the policy says.
    fn stubs_end(&self) -> usize {
        let policy = &self.window.policy;
        if let Strategy::SkipParts { .. } = policy.strategy {
            return 0;
        }
        let mut left = policy.keep_tool_turns;
        let mut end = self.messages.len();
        for (index, begin) in self.begins.iter().enumerate().rev() {
            let mut messages = self.messages[*begin..end].iter();
            if left > 0 && messages.any(|entry| entry.is_droppable) {
                left -= 1;
            }
            end = *begin;
            if left == 0 && self.is_mark(index) {
                return *begin;
            }
        }
        0
    }
}

/// The kinds that are not shown at all.
fn skipped(window: &Window) -> Kinds {
    match window.policy.strategy {
        Strategy::SkipParts { .. } => window.policy.drop_first,
        _ => Kinds::default(),
    }
}

/// The window that begins there.
fn show(window: &Window, messages: &[&Entry], choice: &Choice) -> Cut {
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
    for (index, entry) in messages.iter().enumerate().skip(begin) {
        if entry.is_kept {
            push(&mut cut, entry, alone);
            continue;
        }
        push(&mut cut, entry, |part, fact| {
            let is_lost = choice.bonds.is_loose(index, part as u16);
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

/// What is treated of an instruction, which calls nothing and answers nothing.
fn alone(_: usize, fact: &PartFact) -> Option<Treatment> {
    let is_half = matches!(fact.kind, PartKind::ToolCall | PartKind::ToolResult);
    (is_half && fact.call != 0).then_some(Treatment::Omit)
}

/// Adds a message, unless nothing of it is shown.
fn push(cut: &mut Cut, entry: &Entry, treated: impl Fn(usize, &PartFact) -> Option<Treatment>) {
    let mut shown = Shown {
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
