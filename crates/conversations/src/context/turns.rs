//! Selection of a window's first message and of the messages shown with stubs.
//!
//! Both are computed by replaying how the window filled up, message by message. A turn that was
//! once left out because it did not fit stays out, even if stubs make room for it later. So the
//! window's beginning only moves forward while the conversation grows, and no returning turn
//! invalidates the provider's cache. Stubs are used only once something would not fit without them.
//!
//! The result depends only on the messages from the window's beginning on, so the number of older
//! messages examined does not matter.

use super::parts::ExaminedMessage;
use super::{Strategy, Window};

/// The selected range of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Index of the first message.
    pub(super) begin: usize,
    /// Messages before this index are shown with stubs.
    pub(super) stubs_end: usize,
}

/// Messages in order, divided into turns.
pub(super) struct Turns<'a> {
    window: &'a Window,
    messages: &'a [&'a ExaminedMessage],
    /// True if the first message is the first that a window may contain.
    is_all: bool,
    /// Index of the first message of each turn.
    begins: Vec<usize>,
}

impl<'a> Turns<'a> {
    pub(super) fn new(window: &'a Window, messages: &'a [&'a ExaminedMessage]) -> Self {
        let is_all = messages.first().is_none_or(|it| it.seq <= window.floor);
        let opens = |index: &usize| (is_all && *index == 0) || messages[*index].opens_turn;
        Self {
            window,
            messages,
            is_all,
            begins: (0..messages.len()).filter(opens).collect(),
        }
    }

    /// Returns the first message of the newest turn among the examined messages.
    pub(super) fn newest(&self) -> usize {
        self.begins.last().copied().unwrap_or(0)
    }

    /// Returns the selection for `room` tokens; `None` if even the newest turn does not fit.
    pub(super) fn choose(&self, room: u64) -> Option<Choice> {
        let sums = Sums::new(self.messages);
        let all = Choice {
            begin: 0,
            stubs_end: 0,
        };
        if self.messages.is_empty() {
            return Some(all);
        }
        let last = self.messages.len() - 1;
        if self.window.policy.strategy == Strategy::Manual {
            return (self.is_all && sums.weight(all, last) <= room).then_some(all);
        }
        let newest = Choice {
            begin: self.newest(),
            stubs_end: 0,
        };
        if sums.weight(newest, last) > room {
            return None;
        }
        let stub_ends = self.stub_ends();
        let first = self.first_that_fits(&sums, &stub_ends, room);
        let turns = (0..self.begins.len()).filter(|turn| self.begins[*turn] >= first);
        let mark = turns.clone().find(|turn| self.is_mark(*turn, last));
        let begin = self.begins[mark.or(turns.clone().next())?];
        let mut choice = Choice {
            begin,
            stubs_end: 0,
        };
        for (head, stubs_end) in stub_ends.into_iter().enumerate().skip(begin) {
            if sums.weight(choice, head) > room {
                choice.stubs_end = stubs_end;
            }
        }
        Some(choice)
    }

    /// Returns the oldest message from which on everything fitted at every moment, while messages
    /// were appended one by one. Moments at which the newest turn alone exceeded the room are
    /// skipped: there was no window, so nothing was left out.
    fn first_that_fits(&self, sums: &Sums, stub_ends: &[usize], room: u64) -> usize {
        let count_max = self.window.count_max().unwrap_or(u64::MAX);
        let mut begins = self.begins.iter().copied().peekable();
        let (mut first, mut newest) = (0, 0);
        for (head, stubs_end) in stub_ends.iter().copied().enumerate() {
            newest = begins.next_if_eq(&head).unwrap_or(newest);
            let turn = Choice {
                begin: newest,
                stubs_end: 0,
            };
            if sums.weight(turn, head) > room {
                continue;
            }
            while first <= head {
                let choice = Choice {
                    begin: first,
                    stubs_end,
                };
                // The newest turn is shown whole, regardless of its number of messages.
                let is_long = first < newest && sums.count(first, head) > count_max;
                if !is_long && sums.weight(choice, head) <= room {
                    break;
                }
                first += 1;
            }
        }
        first
    }

    /// Returns, for each message, the end of the range with stubs while that message was the newest
    /// one: the newest mark that leaves the `keep_tool_turns` newest turns with droppable parts
    /// unchanged.
    fn stub_ends(&self) -> Vec<usize> {
        let policy = &self.window.policy;
        let mut ends = vec![0; self.messages.len()];
        if matches!(policy.strategy, Strategy::SkipParts { .. })
            || !self.messages.iter().any(|it| it.is_droppable)
        {
            return ends;
        }
        let keep = policy.keep_tool_turns as usize;
        // For each turn, the newest mark up to it; and the turns with droppable parts.
        let mut marks: Vec<Option<usize>> = Vec::new();
        let mut droppable: Vec<usize> = Vec::new();
        for (turn, begin) in self.begins.iter().copied().enumerate() {
            let before = marks.last().copied().flatten();
            marks.push(before);
            let end = self.begins.get(turn + 1).copied();
            let end = end.unwrap_or(self.messages.len());
            for (head, stubs_end) in (begin..).zip(&mut ends[begin..end]) {
                if self.messages[head].is_droppable && droppable.last() != Some(&turn) {
                    droppable.push(turn);
                }
                if self.is_mark(turn, head) {
                    marks[turn] = Some(begin);
                }
                let last = match droppable.len().checked_sub(keep) {
                    Some(_) if keep == 0 => Some(turn),
                    Some(index) => droppable.get(index).copied(),
                    None => None,
                };
                *stubs_end = last.and_then(|turn| marks[turn]).unwrap_or(0);
            }
        }
        ends
    }

    /// Returns whether a turn is a mark while the newest message is `head`; see [`super`]. A mark
    /// stays a mark.
    fn is_mark(&self, turn: usize, head: usize) -> bool {
        let begin = self.messages[self.begins[turn]];
        let end = self.begins.get(turn + 1).map_or(head, |next| next - 1);
        let end = self.messages[end.min(head)];
        let before = turn.checked_sub(1).map(|it| self.messages[self.begins[it]]);
        if before.is_none() && self.is_all {
            return true;
        }
        self.window.scales().any(|(scale, step)| {
            let at = scale.begin(begin);
            let is_long = scale.end(end).saturating_sub(at) >= step;
            is_long
                || match before {
                    Some(before) => at / step != scale.begin(before) / step,
                    // The previous turn began before the examined messages.
                    None => at.saturating_sub(scale.begin(self.messages[0])) >= step,
                }
        })
    }
}

/// Prefix sums over the messages, excluding kept instructions.
struct Sums {
    whole: Vec<u64>,
    stubbed: Vec<u64>,
    count: Vec<u64>,
}

impl Sums {
    fn new(messages: &[&ExaminedMessage]) -> Self {
        let of = |weight: fn(&ExaminedMessage) -> u64| {
            let mut sum = 0;
            let weights = messages.iter().map(|entry| match entry.is_kept {
                true => 0,
                false => weight(entry),
            });
            let sums = weights.map(|weight| {
                sum += weight;
                sum
            });
            std::iter::once(0).chain(sums).collect()
        };
        Self {
            whole: of(|entry| entry.whole),
            stubbed: of(|entry| entry.stubbed),
            count: of(|_| 1),
        }
    }

    /// Returns the tokens of the messages of a choice up to and including `head`.
    fn weight(&self, choice: Choice, head: usize) -> u64 {
        let Choice { begin, stubs_end } = choice;
        let stubs_end = stubs_end.max(begin);
        let stubbed = self.stubbed[stubs_end] - self.stubbed[begin];
        stubbed + self.whole[head + 1] - self.whole[stubs_end]
    }

    /// Returns the number of messages from `begin` to `head`.
    fn count(&self, begin: usize, head: usize) -> u64 {
        self.count[head + 1] - self.count[begin]
    }
}
