//! `cargo xtask oracle`: the same requests to Apache Kafka and to a node, and where their answers differ.
//!
//! Kafka's documentation says what errors there are, and seldom which of them comes when: Apache Kafka
//! itself does. Both are started empty. Every request goes to both in the same version; the answers are
//! decoded and compared field by field, without those that are anybody's own (ids, addresses, words). What a
//! node does not serve is told apart from what it answers otherwise. It fails when anything differs that is
//! not meant to, with its reason, in `otherwise`.

mod brokers;
mod door;
mod groups;
mod otherwise;
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
use crate::expect_none;
use crate::step::heading;

/// Asks both about one thing.
type Part = fn(&mut Script) -> Result<()>;

/// What both are asked, in this order.
const PARTS: [(&str, Part); 7] = [
    ("topics", topics::compare),
    ("records", records::compare),
    ("producers", produced::compare),
    ("groups", groups::compare),
    ("transactions", transactions::compare),
    ("users", users::compare),
    ("rules", views::rules),
];

/// Starts both and compares them.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    let node = Node::start()?;
    let kafka = Kafka::start()?;
    let mut script = Script::new(&kafka.address, &node.address)?;
    for (name, compare) in PARTS {
        heading(name);
        compare(&mut script)?;
    }
    heading("what became of it");
    match script.tell() {
        0 => Ok(()),
        count => bail!("{count} answers differ from those of Apache Kafka"),
    }
}
