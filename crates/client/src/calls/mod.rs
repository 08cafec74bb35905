//! Calls of methods, by the way in which the reply arrives.

pub(crate) mod call;
pub(crate) mod call_all;
pub(crate) mod callbacks;
pub(crate) mod caller;
pub(crate) mod options;
pub(crate) mod race;
pub(crate) mod replies;
pub(crate) mod service;
pub(crate) mod typed;
