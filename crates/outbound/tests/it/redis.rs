//! Quotas in a real Redis; each test starts its own server.

mod agreement;
mod cell_operations;
mod cluster;
mod leases;
mod outages;
mod refusals;
mod server;
mod tls;
