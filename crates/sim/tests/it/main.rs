//! Whole nodes and clients under many seeds.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod cluster;
mod conversations;
mod durable;
mod flood;
mod http;
mod retractions;
mod smoke;
mod support;
mod topics;
