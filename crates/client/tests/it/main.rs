//! Client, server and node together over every transport.
//!
//! Tests of deadlines, and tests that wait until all tasks are idle, run in process on a paused
//! clock (`start_paused`). The others use real sockets on the loopback interface.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

// Dependents rename the crate to `client` in their manifests; the tests do too.
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
