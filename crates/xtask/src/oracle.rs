//! `cargo xtask oracle`: sends the same requests to Apache Kafka and to a node, and compares the
//! responses.
//!
//! Kafka's documentation lists the errors, but rarely says which of them applies when; Apache Kafka
//! itself shows it. Both brokers start empty. Every request goes to both in the same version. The
//! responses are decoded and compared field by field, without fields that differ by nature (ids,
//! addresses, messages). Requests that the node does not support are reported separately from
//! differences. The task fails on any difference that is not listed, with its reason, in
//! `otherwise`.

mod brokers;
mod connection;
mod groups;
mod intended;
mod produced;
mod records;
mod script;
mod topics;
mod transactions;
mod users;
mod views;

use anyhow::{Result, bail};

use self::brokers::{Kafka, Node};
use self::script::Script;
use crate::step::expect_none;
use crate::step::heading;

/// Comparison of one group of requests.
type Comparison = fn(&mut Script) -> Result<()>;

/// Comparisons, in the order in which they run.
const COMPARISONS: [(&str, Comparison); 7] = [
    ("topics", topics::compare),
    ("records", records::compare),
    ("producers", produced::compare),
    ("groups", groups::compare),
    ("transactions", transactions::compare),
    ("users", users::compare),
    ("rules", views::compare_rules),
];

/// Starts both brokers and compares them.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    let node = Node::start()?;
    let kafka = Kafka::start()?;
    let mut script = Script::new(&kafka.address, &node.address)?;
    for (name, compare) in COMPARISONS {
        heading(name);
        compare(&mut script)?;
    }
    heading("result");
    match script.report() {
        0 => Ok(()),
        count => bail!("{count} responses differ from those of Apache Kafka"),
    }
}
