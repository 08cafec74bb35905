//! `telpher cluster init`: makes a stopped node the first member of a new cluster.

use std::path::PathBuf;
use std::sync::Arc;

use ::journal::Journal;
use cluster::{InitState, Member};
use config::{Config, Loaded};
use console::{Exit, Failure};
use node::{Node, Parts};
use platform::Ports;
use store::{Kind, Store};

use super::identity::{Identity, addresses, identity, key_path, make_key, read_key};
use crate::{journal, lock_data, parts, ports, workers};

/// A cluster that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initialized {
    /// The cluster's id.
    pub cluster: u64,
    /// The id of this node.
    pub id: u64,
    /// File with the key, which every other member needs.
    pub key_file: PathBuf,
    /// The address on which others join.
    pub link: String,
}

/// Makes the data directory that of the first member of a new cluster. If a call was interrupted,
/// the next one completes it.
pub fn init(loaded: &Loaded) -> Result<Initialized, Failure> {
    let config = &loaded.config;
    let data = &config.data.dir;
    let _lock = lock_data(config)?;
    if let Some(known) = identity(data)? {
        let message = format!(
            "{} is a member of the cluster {:016x} already, with the id {}",
            data.display(),
            known.cluster().unwrap_or_default(),
            known.id
        );
        return Err(Failure::new(Exit::Usage, message).hint("start it: telpher serve"));
    }
    if config.journal.accept_loss {
        let message = "a member does not accept losses: `journal.accept_loss` is set";
        return Err(Failure::new(Exit::Usage, message)
            .hint("start the node once with it and without a cluster"));
    }
    let addresses = addresses(config)?;
    let ports = ports::real();
    prepare(config, &ports)?;
    let runtime = workers::runtime().map_err(failed)?;
    let (opened, _) = journal::open_member(config, &ports)?;
    let begun = cluster::members_on_disk(&opened).map_err(failed)?;
    // An interrupted call has chosen the id already.
    let id = match begun.first() {
        Some(member) => member.id,
        None => cluster::founder_id(&opened),
    };
    if cluster::init_state(&opened).map_err(failed)? != InitState::Complete {
        let members = [Member {
            id,
            addresses: addresses.clone(),
        }];
        let begun = cluster::init(&opened, &members, ports.clock.unix_ms());
        runtime.block_on(begun).map_err(failed)?;
    }
    if config.cluster.key.is_none() {
        make_key(data)?;
    }
    let key_file = key_path(config);
    read_key(&key_file)?;
    let cluster = opened.id();
    // The identity is written last: without it, the next call completes this one.
    Identity::new(cluster, id).write(data)?;
    Ok(Initialized {
        cluster,
        id,
        key_file: std::path::absolute(&key_file).unwrap_or(key_file),
        link: addresses.link,
    })
}

/// Checks that a cluster can serve what is stored, and files all of it.
fn prepare(config: &Config, ports: &Ports) -> Result<(), Failure> {
    let (opened, _) = journal::open(config, ports)?;
    if cluster::init_state(&opened).map_err(failed)? != InitState::NotBegun {
        return Ok(());
    }
    check_holdings(config, ports, &opened)?;
    journal::wait_until_filed(&opened, opened.seal()).map_err(failed)
}

/// Refuses data that a cluster does not serve yet, by name.
fn check_holdings(config: &Config, ports: &Ports, opened: &Arc<Journal>) -> Result<(), Failure> {
    let names_max = config.namespace.names_max as usize;
    let store = Store::open(opened.clone(), names_max, ports.clock.unix_ms()).map_err(failed)?;
    let mut holdings = Vec::new();
    for (kind, what) in [
        (Kind::Conversation, "conversation"),
        (Kind::Mailbox, "mailbox"),
        (Kind::Agent, "webhook agent"),
    ] {
        let found = store.all(kind);
        if let Some((name, _)) = found.first() {
            let more = match found.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            holdings.push(format!("{what} {name}{more}"));
        }
    }
    drop(store);
    let storage = parts::storage(config, opened.clone());
    let node = Node::open(Parts::with_storage(ports.clone(), storage)).map_err(failed)?;
    let topics = node.topics();
    let open = topics.iter().flat_map(|it| it.transactions());
    let open: Vec<_> = open.filter(|it| !it.participants.is_empty()).collect();
    if let Some(first) = open.first() {
        holdings.push(format!("open transaction {}", first.name));
    }
    let policies = node.quotas().policies();
    if let Some((_, limit)) = policies.limits().first() {
        holdings.push(format!("limit {}", limit.name));
    }
    if let Some(limit) = config.limits.first() {
        holdings.push(format!("configured limit {}", limit.name));
    }
    if holdings.is_empty() {
        return Ok(());
    }
    let message = format!(
        "a cluster serves topics and streams only, and this node holds: {}",
        holdings.join(", ")
    );
    Err(Failure::new(Exit::Usage, message)
        .hint("begin the cluster with another data directory: --data PATH"))
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("cannot begin a cluster: {error}"))
}
