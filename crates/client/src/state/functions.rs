//! `Functions`: callbacks used by the calls of one connection, each stored once.
//!
//! A call refers to its function by index, so starting and ending a call only changes a counter
//! under the lock that is held anyway. A function is removed when its [`Function`] is dropped *and*
//! all its calls have ended.
//!
//! The reference dropped here is never the last one, because dropping that would run user code
//! under the lock: the [`Function`] owns one, and [`Completions`] owns one after the last call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::state::completions::Completions;
use crate::state::outcome::{Callback, FunctionIndex};

/// Counter of functions over all connections.
static FUNCTIONS: AtomicU64 = AtomicU64::new(1);

/// A function for calls, usable on every connection of a client.
pub(crate) struct Function {
    id: u64,
    callback: Arc<Callback>,
}

/// Table of the functions of one connection.
#[derive(Default)]
pub(crate) struct Functions {
    entries: Vec<Option<Entry>>,
    free: Vec<FunctionIndex>,
}

struct Entry {
    id: u64,
    callback: Arc<Callback>,
    /// Number of calls in flight.
    waiting: u32,
    /// True once no more calls will be made.
    is_closed: bool,
}

impl Function {
    pub(crate) fn new(callback: Arc<Callback>) -> Self {
        let id = FUNCTIONS.fetch_add(1, Ordering::Relaxed);
        Self { id, callback }
    }
}

impl Functions {
    /// Counts a new call. `known` is the function's index at its last call. Returns its index now.
    #[inline]
    pub(crate) fn enter(&mut self, function: &Function, known: FunctionIndex) -> FunctionIndex {
        match self.entries.get_mut(known as usize) {
            Some(Some(entry)) if entry.id == function.id => {
                entry.waiting += 1;
                known
            }
            _ => self.admit(function),
        }
    }

    /// Adds a function with one call to the table.
    fn admit(&mut self, function: &Function) -> FunctionIndex {
        let entry = Some(Entry {
            id: function.id,
            callback: function.callback.clone(),
            waiting: 1,
            is_closed: false,
        });
        match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as FunctionIndex - 1
            }
        }
    }

    /// Counts the end of a call. Returns the index of its function in `completions`.
    #[inline]
    pub(crate) fn leave(&mut self, index: FunctionIndex, completions: &mut Completions) -> u32 {
        let slot = &mut self.entries[index as usize];
        let Some(entry) = slot else {
            unreachable!("a function stays until its last call has ended");
        };
        let number = completions.function(entry.id, &entry.callback);
        entry.waiting -= 1;
        if entry.waiting == 0 && entry.is_closed {
            *slot = None;
            self.free.push(index);
        }
        number
    }

    /// Closes a function, which gets no more calls. The caller holds a reference, so nothing is
    /// dropped here.
    pub(crate) fn close(&mut self, function: &Function) {
        let mut entries = self.entries.iter_mut().zip(0..);
        let is_it = |entry: &Option<Entry>| entry.as_ref().is_some_and(|e| e.id == function.id);
        let Some((slot, index)) = entries.find(|(slot, _)| is_it(slot)) else {
            return;
        };
        match slot {
            Some(entry) if entry.waiting > 0 => entry.is_closed = true,
            _ => {
                *slot = None;
                self.free.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> Function {
        Function::new(Arc::new(|_| {}))
    }

    fn count(function: &Function) -> usize {
        Arc::strong_count(&function.callback)
    }

    #[test]
    fn a_function_is_stored_once_until_its_last_call_ends() {
        let (mut functions, mut completions) = (Functions::default(), Completions::default());
        let (first, second) = (function(), function());
        let index = functions.enter(&first, 0);
        assert_eq!(functions.enter(&first, index), index);
        let other = functions.enter(&second, index);
        assert_ne!(other, index);
        assert_eq!((count(&first), count(&second)), (2, 2));

        functions.leave(index, &mut completions);
        functions.close(&first);
        completions.finish(&[]);
        assert_eq!(count(&first), 2);
        functions.leave(index, &mut completions);
        completions.finish(&[]);
        assert_eq!(count(&first), 1);

        functions.leave(other, &mut completions);
        completions.finish(&[]);
        assert_eq!(count(&second), 2);
        functions.close(&second);
        assert_eq!(count(&second), 1);
    }

    #[test]
    fn a_reused_function_index_is_not_confused() {
        let (mut functions, mut completions) = (Functions::default(), Completions::default());
        let (first, second) = (function(), function());
        let index = functions.enter(&first, 0);
        functions.leave(index, &mut completions);
        functions.close(&first);
        assert_eq!(functions.enter(&second, 7), index);
        assert_ne!(functions.enter(&first, index), index);
    }
}
