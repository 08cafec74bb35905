//! State that handles and tasks of a client share under one lock: connections, calls, queues.

pub(crate) mod clock;
pub(crate) mod completions;
pub(crate) mod core;
pub(crate) mod exchange;
pub(crate) mod functions;
pub(crate) mod holder;
pub(crate) mod item_call;
pub(crate) mod items;
pub(crate) mod link;
pub(crate) mod outcome;
pub(crate) mod pending;
pub(crate) mod queue;
pub(crate) mod registry;
pub(crate) mod reply_batch;
pub(crate) mod routes;
