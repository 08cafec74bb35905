//! Client, server and node together, over every transport.
//!
//! Tests that watch deadlines or wait until everybody rests run in process on a clock that
//! stands still (`start_paused`); everything else runs on real sockets of the loopback.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

// Dependents call the crate `client` in their manifests; tests do as well.
extern crate telpher_client as client;

mod support;

mod agents;
mod backpressure;
mod bad_input;
mod blocking;
mod cancelling;
mod deadlines;
mod draining;
mod examples;
mod flow;
mod late;
mod listening;
mod losing;
mod mixed;
mod modes;
mod nodes;
mod quotas;
mod racing;
mod reconnecting;
mod retrying;
mod sizes;
mod streams;
mod surroundings;
mod typed;
mod windows;
