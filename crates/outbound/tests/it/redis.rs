//! Quotas in a real Redis, which each test starts for itself.

mod agreement;
mod cluster;
mod leases;
mod protected;
mod refusals;
mod server;
mod trouble;
mod verbs;
