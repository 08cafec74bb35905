//! The queues of waiting takes.

use std::collections::BTreeMap;
use std::task::Waker;

use quota::{LimitId, Queue};

/// The key of a queue: the limit, and the cell's prefix in text form.
pub(super) type Cell = (LimitId, Box<str>);

/// The queues of waiting takes, by cell.
#[derive(Default)]
pub(super) struct Queues {
    pub(super) by_cell: BTreeMap<Cell, Queue<Option<Waker>>>,
}
