//! Messages to and from agents: send, subscribe, write.

pub(crate) mod description;
pub(crate) mod envelope;
pub(crate) mod envelope_queue;
pub(crate) mod messaging;
pub(crate) mod one_way;
pub(crate) mod subscription;
pub(crate) mod write;
