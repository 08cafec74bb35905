//! The queue of takes that wait for a cell: ordered by priority, then by weighted fair share, then
//! by arrival.
//!
//! Within a priority, each subject is served in proportion to its weight: each waiting take has a
//! *virtual finish*, which grows by cost ÷ weight with each take of the subject, and the earliest
//! finish goes first (Demers, Keshav, Shenker, *Analysis and Simulation of a Fair Queueing
//! Algorithm*, SIGCOMM 1989). Invariant: *takes of one subject and priority leave in the order in
//! which they came.*

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The position of a waiting take; the smallest position is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition {
    priority: Reverse<u8>,
    finish: u64,
    turn: u64,
}

/// The queue of waiting takes; see the module's documentation.
#[derive(Debug)]
pub struct Queue<W> {
    waiting: BTreeMap<QueuePosition, (Box<str>, u64, W)>,
    /// By priority and waiting subject: the virtual finish of its last take, and the number of its
    /// waiting takes.
    finishes: BTreeMap<(Reverse<u8>, Box<str>), (u64, usize)>,
    /// By priority: the virtual finish of the last admitted take.
    virtual_now: BTreeMap<Reverse<u8>, u64>,
    turns: u64,
    cost: u64,
}

/// The virtual length of a cost of 1 at a weight of 1; larger than any weight.
const SCALE: u64 = 1 << 20;

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            finishes: BTreeMap::new(),
            virtual_now: BTreeMap::new(),
            turns: 0,
            cost: 0,
        }
    }
}

impl<W> Queue<W> {
    /// Adds a waiting take and returns its position. A higher priority is served first.
    pub fn push(
        &mut self,
        subject: &str,
        priority: u8,
        cost: u64,
        weight: u32,
        who: W,
    ) -> QueuePosition {
        let priority = Reverse(priority);
        let length = cost.min(u64::MAX / SCALE).saturating_mul(SCALE) / u64::from(weight.max(1));
        let start = self.virtual_now.get(&priority).copied().unwrap_or(0);
        let entry = self
            .finishes
            .entry((priority, subject.into()))
            .or_insert((start, 0));
        *entry = (entry.0.max(start).saturating_add(length), entry.1 + 1);
        self.turns += 1;
        let place = QueuePosition {
            priority,
            finish: entry.0,
            turn: self.turns,
        };
        self.waiting.insert(place, (subject.into(), cost, who));
        self.cost = self.cost.saturating_add(cost);
        place
    }

    /// Returns the take to be served next.
    pub fn first(&self) -> Option<(QueuePosition, &W)> {
        let (place, (_, _, who)) = self.waiting.first_key_value()?;
        Some((*place, who))
    }

    /// Removes the first take, which was admitted.
    pub fn admit(&mut self) -> Option<W> {
        let (place, _) = self.first()?;
        self.virtual_now.insert(place.priority, place.finish);
        self.remove(place)
    }

    /// Removes a take that no longer waits.
    pub fn remove(&mut self, place: QueuePosition) -> Option<W> {
        let (subject, cost, who) = self.waiting.remove(&place)?;
        self.cost = self.cost.saturating_sub(cost);
        let key = (place.priority, subject);
        if let Some((_, count)) = self.finishes.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.finishes.remove(&key);
            }
        }
        Some(who)
    }

    /// Returns the total cost of all waiting takes.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the take at that position.
    pub fn at(&mut self, place: QueuePosition) -> Option<&mut W> {
        self.waiting.get_mut(&place).map(|(_, _, who)| who)
    }

    /// Returns the number of waiting takes.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether no take waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &mut Queue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.admit()).collect()
    }

    #[test]
    fn a_higher_priority_goes_first_and_equals_in_turn() {
        let mut queue = Queue::default();
        for (subject, priority, who) in [
            ("a", 1, "a1"),
            ("b", 1, "b1"),
            ("c", 5, "c5"),
            ("a", 1, "a2"),
        ] {
            queue.push(subject, priority, 1, 1, who);
        }
        assert_eq!(order(&mut queue), ["c5", "a1", "b1", "a2"]);
    }

    #[test]
    fn a_waiter_of_weight_three_gets_three_quarters() {
        let mut queue = Queue::default();
        for _ in 0..40 {
            queue.push("light", 0, 2, 1, "light");
            queue.push("heavy", 0, 2, 3, "heavy");
        }
        let first: Vec<_> = order(&mut queue).into_iter().take(40).collect();
        assert_eq!(first.iter().filter(|who| **who == "heavy").count(), 30);
    }

    #[test]
    fn many_takes_of_one_subject_do_not_delay_another() {
        let mut queue = Queue::default();
        for _ in 0..100 {
            queue.push("greedy", 0, 1, 1, "greedy");
        }
        queue.push("modest", 0, 1, 1, "modest");
        assert_eq!(
            order(&mut queue).iter().position(|who| *who == "modest"),
            Some(1)
        );
    }

    #[test]
    fn removed_takes_are_not_served() {
        let mut queue = Queue::default();
        let place = queue.push("a", 0, 1, 1, "gone");
        queue.push("a", 0, 1, 1, "stays");
        assert_eq!(queue.remove(place), Some("gone"));
        assert_eq!((queue.remove(place), queue.len()), (None, 1));
        assert_eq!(order(&mut queue), ["stays"]);
        assert!(queue.is_empty() && queue.finishes.is_empty());
    }
}
