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
mod borrowed_handlers;
mod callback_batches;
mod cancelling;
mod connection_loss;
mod deadlines;
mod draining;
mod examples;
mod flow_control;
mod late_replies;
mod listening;
mod metadata;
mod mixed_calls;
mod modes;
mod quotas;
mod racing;
mod reconnecting;
mod retrying;
mod simulated_node;
mod sizes;
mod streams;
mod typed;
mod windows;
