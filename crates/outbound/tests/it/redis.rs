//! Quotas in a real Redis; each test starts its own server.

mod agreement;
mod cluster;
mod leases;
mod protected;
mod refusals;
mod server;
mod trouble;
mod verbs;
