//! Calls that were forwarded to a responder and have not been answered.
//!
//! There is one table per responder. A call leaves it exactly once: by its last reply, its
//! deadline, its cancellation, or the end of the responder.

/// Identifies a call to a responder. A used ticket never matches again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Index in the table.
    pub slot: u32,
    /// Number of uses of the slot, from 1.
    pub generation: u32,
}

/// A call without a reply so far.
#[derive(Debug, PartialEq, Eq)]
pub struct Call<C> {
    /// The caller, as the shell identifies it.
    pub caller: C,
    /// Deadline in nanoseconds of the shell's clock; `u64::MAX` for none.
    pub deadline_ns: u64,
}

struct Slot<C> {
    generation: u32,
    call: Option<Call<C>>,
}

/// The unanswered calls of one responder.
pub struct Calls<C> {
    slots: Vec<Slot<C>>,
    free: Vec<u32>,
    /// Lower bound of all deadlines.
    earliest_ns: u64,
}

impl<C> Default for Calls<C> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            earliest_ns: u64::MAX,
        }
    }
}

impl<C> Calls<C> {
    /// Returns the number of unanswered calls.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a call.
    pub fn insert(&mut self, call: Call<C>) -> Ticket {
        self.earliest_ns = self.earliest_ns.min(call.deadline_ns);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(Slot {
                    generation: 0,
                    call: None,
                });
                self.slots.len() as u32 - 1
            }
        };
        let entry = &mut self.slots[slot as usize];
        // Generation 0 would make slot 0's ticket look like "no call" on the wire.
        entry.generation = entry.generation.wrapping_add(1).max(1);
        entry.call = Some(call);
        Ticket {
            slot,
            generation: entry.generation,
        }
    }

    /// Returns the call, unless it has ended.
    pub fn get(&self, ticket: Ticket) -> Option<&Call<C>> {
        let entry = self.slots.get(ticket.slot as usize)?;
        entry
            .call
            .as_ref()
            .filter(|_| entry.generation == ticket.generation)
    }

    /// Ends a call and returns it, unless it has ended before.
    pub fn take(&mut self, ticket: Ticket) -> Option<Call<C>> {
        let entry = self.slots.get_mut(ticket.slot as usize)?;
        if entry.generation != ticket.generation {
            return None;
        }
        let call = entry.call.take()?;
        self.free.push(ticket.slot);
        Some(call)
    }

    /// Ends and returns all calls with a deadline at or before `now_ns`.
    pub fn expire(&mut self, now_ns: u64) -> Vec<(Ticket, Call<C>)> {
        if self.earliest_ns > now_ns {
            return Vec::new();
        }
        let due = |call: &Call<C>| call.deadline_ns <= now_ns;
        let expired = self.take_where(due);
        let left = self.slots.iter().filter_map(|slot| slot.call.as_ref());
        self.earliest_ns = left.map(|call| call.deadline_ns).min().unwrap_or(u64::MAX);
        expired
    }

    /// Ends and returns all calls, and frees the memory.
    pub fn drain(&mut self) -> Vec<(Ticket, Call<C>)> {
        let drained = self.take_where(|_| true);
        *self = Self::default();
        drained
    }

    fn take_where(&mut self, condition: impl Fn(&Call<C>) -> bool) -> Vec<(Ticket, Call<C>)> {
        let mut taken = Vec::new();
        for (slot, entry) in self.slots.iter_mut().enumerate() {
            let slot = slot as u32;
            if let Some(call) = entry.call.take_if(|call| condition(call)) {
                self.free.push(slot);
                taken.push((
                    Ticket {
                        slot,
                        generation: entry.generation,
                    },
                    call,
                ));
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(caller: u32, deadline_ns: u64) -> Call<u32> {
        Call {
            caller,
            deadline_ns,
        }
    }

    #[test]
    fn used_ticket_never_matches_again() {
        let mut calls = Calls::default();
        let first = calls.insert(call(1, u64::MAX));
        assert_eq!(calls.take(first).unwrap().caller, 1);
        let second = calls.insert(call(2, u64::MAX));
        assert_eq!(second.slot, first.slot);
        assert!(calls.get(first).is_none() && calls.take(first).is_none());
        assert_eq!(calls.take(second).unwrap().caller, 2);
        assert!(calls.is_empty());
    }

    proptest! {
        #[test]
        fn every_call_ends_exactly_once(
            steps in prop::collection::vec((0u8..4, 0usize..40, 1u64..100), 0..200)
        ) {
            let mut calls = Calls::default();
            let mut open: Vec<(Ticket, u32, u64)> = Vec::new();
            let mut next = 0;
            for (verb, index, time) in steps {
                match verb {
                    0 | 1 => {
                        next += 1;
                        open.push((calls.insert(call(next, time)), next, time));
                    }
                    2 if !open.is_empty() => {
                        let (ticket, caller, _) = open.remove(index % open.len());
                        prop_assert_eq!(calls.take(ticket).unwrap().caller, caller);
                        prop_assert!(calls.take(ticket).is_none());
                    }
                    2 => {}
                    _ => {
                        let mut expired: Vec<_> =
                            calls.expire(time).into_iter().map(|(_, call)| call.caller).collect();
                        expired.sort_unstable();
                        let (due, left): (Vec<_>, Vec<_>) =
                            open.into_iter().partition(|(_, _, deadline)| *deadline <= time);
                        open = left;
                        let mut due: Vec<_> = due.into_iter().map(|(_, caller, _)| caller).collect();
                        due.sort_unstable();
                        prop_assert_eq!(expired, due);
                    }
                }
                prop_assert_eq!(calls.len(), open.len());
            }
            prop_assert_eq!(calls.drain().len(), open.len());
        }
    }
}
