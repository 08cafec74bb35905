//! `cargo xtask oracle`: sends the same requests to Apache Kafka and to a node, and compares the
//! responses.
//!
//! Kafka's documentation lists the errors, but rarely says which of them applies when; Apache Kafka
//! itself shows it. Both brokers start empty. Every request goes to both in the same version. The
//! responses are decoded and compared field by field, without fields that differ by nature (ids,
//! addresses, messages). Requests that the node does not support are reported separately from
//! differences. The task fails on any difference that is not listed, with its reason, in
//! [`intended`].
//!
//! `--cluster` compares three brokers of Apache Kafka with three nodes: [`cluster`].

mod brokers;
mod cluster;
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

use self::brokers::{Kafka, Node, Nodes};
use self::intended::{INTENDED, INTENDED_OF_CLUSTER};
use self::script::{NOT_YET, Rules, Script};
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

/// Starts both brokers and compares them. With `--cluster`, starts three of each.
pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [flag] if flag == "--cluster" => compare_clusters(),
        args => expect_none(args).and_then(|()| compare_brokers()),
    }
}

fn compare_brokers() -> Result<()> {
    let node = Node::start()?;
    let kafka = Kafka::start(1)?;
    let rules = Rules {
        compared: &["epoch"],
        not_yet: &NOT_YET,
        intended: INTENDED,
    };
    let mut script = Script::new(&kafka.address, &node.address, rules)?;
    for (name, compare) in COMPARISONS {
        heading(name);
        compare(&mut script)?;
    }
    report(script)
}

fn compare_clusters() -> Result<()> {
    let mut nodes = Nodes::start()?;
    let mut kafka = Kafka::start(3)?;
    let rules = Rules {
        compared: &["broker_ids", "isr_nodes", "replica_nodes"],
        // A broker that does not coordinate a group says so.
        not_yet: &NOT_YET[..NOT_YET.len() - 1],
        intended: INTENDED_OF_CLUSTER,
    };
    let mut script = Script::new(&kafka.address, &nodes.address, rules)?;
    let compared = cluster::compare(&mut script, &mut kafka, &mut nodes);
    let reported = report(script);
    compared.and(reported)
}

fn report(script: Script) -> Result<()> {
    heading("result");
    match script.report() {
        0 => Ok(()),
        count => bail!("{count} responses differ from those of Apache Kafka"),
    }
}
