//! What goes wrong, and when.

use std::fmt;

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The device fails (EIO). A write may have been made in part; of what a sync covered,
    /// anything may be durable, and a later sync says nothing about it.
    Broken,
    /// There is no room (ENOSPC): nothing is done.
    Full,
    /// A write stops before its end and says so. Other calls are made as usual.
    Short,
    /// A sync says that it did and did not: what it covered is lost at the next crash. Other calls
    /// are made as usual.
    Lie,
}

/// Which call it is.
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

/// A call that is about to be made.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// Calls before this one, since the disk was made.
    pub number: u64,
    /// What is asked for.
    pub kind: Kind,
    /// Of what; a file by the name it has now, "" when it has none. A rename's is the new name.
    pub path: &'a str,
}

type Predicate = Box<dyn FnMut(&Call<'_>) -> bool + Send>;

struct Plan {
    fault: Fault,
    once: bool,
    predicate: Predicate,
}

/// What is going to go wrong.
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

    /// The fault of this call, if it has one.
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
