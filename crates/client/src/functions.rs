//! The functions of one connection's calls with callbacks, each kept once.
//!
//! A call names its function by its place here, so that making and ending a call only changes a
//! number under the lock that is held anyway. A function leaves when nobody can make a call with it
//! any more *and* every call that was made has ended.
//!
//! What is dropped here is never the last reference, because that would run code that is not ours
//! under the lock: whoever can make calls has one, and so has whoever hears of the last end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::completed::{Callback, Completed};

/// Where a function may stand.
pub(crate) type Place = u32;

/// Counts functions, of all connections.
static FUNCTIONS: AtomicU64 = AtomicU64::new(1);

/// A function that calls can be made with, on whichever connection.
pub(crate) struct Function {
    id: u64,
    callback: Arc<Callback>,
}

#[derive(Default)]
pub(crate) struct Functions {
    entries: Vec<Option<Entry>>,
    free: Vec<Place>,
}

struct Entry {
    id: u64,
    callback: Arc<Callback>,
    /// Calls that have not ended.
    waiting: u32,
    /// No more calls are made.
    is_closed: bool,
}

impl Function {
    pub(crate) fn new(callback: Arc<Callback>) -> Self {
        let id = FUNCTIONS.fetch_add(1, Ordering::Relaxed);
        Self { id, callback }
    }
}

impl Functions {
    /// A call is made. `known` is where the function stood last, if it did.
    #[inline]
    pub(crate) fn enter(&mut self, function: &Function, known: Place) -> Place {
        match self.entries.get_mut(known as usize) {
            Some(Some(entry)) if entry.id == function.id => {
                entry.waiting += 1;
                known
            }
            _ => self.admit(function),
        }
    }

    fn admit(&mut self, function: &Function) -> Place {
        let entry = Some(Entry {
            id: function.id,
            callback: function.callback.clone(),
            waiting: 1,
            is_closed: false,
        });
        match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as Place - 1
            }
        }
    }

    /// A call ends. Returns the number under which `completed` has its function.
    #[inline]
    pub(crate) fn leave(&mut self, place: Place, completed: &mut Completed) -> u32 {
        let slot = &mut self.entries[place as usize];
        let Some(entry) = slot else {
            unreachable!("a function stays until its last call has ended");
        };
        let number = completed.function(entry.id, &entry.callback);
        entry.waiting -= 1;
        if entry.waiting == 0 && entry.is_closed {
            *slot = None;
            self.free.push(place);
        }
        number
    }

    /// No more calls are made with the function. Whoever says so still holds it: it is not dropped
    /// here.
    pub(crate) fn close(&mut self, function: &Function) {
        let mut entries = self.entries.iter_mut().zip(0..);
        let is_it = |entry: &Option<Entry>| entry.as_ref().is_some_and(|e| e.id == function.id);
        let Some((slot, place)) = entries.find(|(slot, _)| is_it(slot)) else {
            return;
        };
        match slot {
            Some(entry) if entry.waiting > 0 => entry.is_closed = true,
            _ => {
                *slot = None;
                self.free.push(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> Function {
        Function::new(Arc::new(|_, _| {}))
    }

    fn count(function: &Function) -> usize {
        Arc::strong_count(&function.callback)
    }

    #[test]
    fn a_function_is_kept_once_and_until_its_last_call_has_ended() {
        let (mut functions, mut completed) = (Functions::default(), Completed::default());
        let (first, second) = (function(), function());
        let place = functions.enter(&first, 0);
        assert_eq!(functions.enter(&first, place), place);
        let other = functions.enter(&second, place);
        assert_ne!(other, place);
        assert_eq!((count(&first), count(&second)), (2, 2));

        functions.leave(place, &mut completed);
        functions.close(&first);
        completed.finish(&[]);
        assert_eq!(count(&first), 2);
        functions.leave(place, &mut completed);
        completed.finish(&[]);
        assert_eq!(count(&first), 1);

        functions.leave(other, &mut completed);
        completed.finish(&[]);
        assert_eq!(count(&second), 2);
        functions.close(&second);
        assert_eq!(count(&second), 1);
    }

    #[test]
    fn a_place_that_means_another_function_now_is_not_used() {
        let (mut functions, mut completed) = (Functions::default(), Completed::default());
        let (first, second) = (function(), function());
        let place = functions.enter(&first, 0);
        functions.leave(place, &mut completed);
        functions.close(&first);
        assert_eq!(functions.enter(&second, 7), place);
        assert_ne!(functions.enter(&first, place), place);
    }
}
