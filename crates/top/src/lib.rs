//! `telpher top`: the numbers of a node in a terminal.
//!
//! A sample is what the node's own agents answer at one moment (`sample`). The model turns two
//! samples into the rows of a view (`views`, `table`) and keys into a state (`state`); both
//! know neither the terminal nor the node. Drawing (`draw`) knows the state only.
//!
//! Invariant: *the terminal is restored however the command ends.*

mod ask;
mod draw;
mod metrics;
mod once;
mod sample;
mod screen;
mod state;
mod table;
#[cfg(test)]
mod testing;
mod views;

use std::time::Duration;

use client::Client;
use console::Failure;

pub use ask::OwnAgents;
pub use once::Output;
pub use state::INTERVALS;
pub use views::View;

/// Shows the numbers of a node until the user quits. Needs a terminal.
pub async fn show(
    client: &Client,
    agents: OwnAgents,
    url: String,
    view: View,
    interval: Duration,
) -> Result<(), Failure> {
    let node = ask::Node::new(client, agents)?;
    screen::run(&node, state::State::new(url, view, interval)).await
}

/// Takes two samples an interval apart, and returns the tables of the views.
pub async fn once(
    client: &Client,
    agents: OwnAgents,
    views: &[View],
    interval: Duration,
) -> Result<Output, Failure> {
    let node = ask::Node::new(client, agents)?;
    once::sample(&node, views, interval).await
}
