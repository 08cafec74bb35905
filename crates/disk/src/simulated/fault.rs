//! Fault injection.

use std::fmt;

/// A fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device fails (EIO). A write may have been made partially. After a failed sync, any part
    /// of what it covered may be durable, and a later sync proves nothing about it.
    Broken,
    /// There is no space (ENOSPC); nothing is done.
    Full,
    /// A short write, reported as such. Other calls are unaffected.
    Short,
    /// A sync that reports success but does nothing: what it covered is lost at the next crash.
    /// Other calls are unaffected.
    Lie,
}

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the calls of the contract")]
pub enum Kind {
    Create,
    Open,
    CreateDir,
    List,
    Rename,
    Remove,
    SyncDir,
    Read,
    Write,
    SetSize,
    SyncData,
    SyncAll,
}

/// A call that is about to run.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// Number of the call since the disk was created, from 0.
    pub number: u64,
    /// Kind of the call.
    pub kind: Kind,
    /// Path of the file or directory; for a rename the new one. "" if an open file has no name any
    /// more.
    pub path: &'a str,
}

type Predicate = Box<dyn FnMut(&Call<'_>) -> bool + Send>;

struct Plan {
    fault: Fault,
    once: bool,
    predicate: Predicate,
}

/// Faults to inject.
#[derive(Default)]
pub(super) struct Plans(Vec<Plan>);

impl Plans {
    pub(super) fn add(&mut self, fault: Fault, once: bool, predicate: Predicate) {
        self.0.push(Plan {
            fault,
            once,
            predicate,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the fault of this call, if one is due.
    pub(super) fn draw(&mut self, call: &Call<'_>) -> Option<Fault> {
        let place = self.0.iter_mut().position(|plan| (plan.predicate)(call))?;
        let fault = self.0[place].fault;
        if self.0[place].once {
            self.0.remove(place);
        }
        Some(fault)
    }
}

impl fmt::Debug for Plans {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = self.0.iter().map(|plan| plan.fault);
        formatter.debug_list().entries(faults).finish()
    }
}
