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

/// Starts both and compares them.
pub(crate) fn run(args: &[String]) -> Result<()> {
    expect_none(args)?;
    let kafka = Kafka::start()?;
    let node = Node::start()?;
    let mut script = Script::new(&kafka.address, &node.address)?;
    topics::compare(&mut script)?;
    records::compare(&mut script)?;
    produced::compare(&mut script)?;
    groups::compare(&mut script)?;
    transactions::compare(&mut script)?;
    users::compare(&mut script)?;
    views::rules(&mut script)?;
    match script.tell() {
        0 => Ok(()),
        count => bail!("{count} answers differ from those of Apache Kafka"),
    }
}
