//! `telpher cluster leave`: makes the last member of a cluster a node alone, with its data.

use std::collections::BTreeSet;

use config::Loaded;
use console::{Exit, Failure};

use super::identity::{identity, remove};
use crate::{check_journal, journal, lock_data, ports, workers};

/// A cluster that its last member has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The cluster's id.
    pub cluster: u64,
    /// The id that this node had.
    pub id: u64,
}

/// Makes the data directory of the last member that of a node alone. If a call was interrupted, the
/// next one completes it; until then the node does not start.
pub fn leave(loaded: &Loaded) -> Result<Departure, Failure> {
    let config = &loaded.config;
    let data = &config.data.dir;
    let _lock = lock_data(config)?;
    let Some(known) = identity(data)? else {
        let message = format!("{} is no member of a cluster", data.display());
        return Err(
            Failure::new(Exit::Usage, message).hint("name the directory of a member: --data PATH")
        );
    };
    check_journal(config, &known)?;
    let ports = ports::real();
    let runtime = workers::runtime().map_err(failed)?;
    let (opened, _) = journal::open_member(config, &ports)?;
    let others = cluster::other_members(&opened, known.id).map_err(failed)?;
    if !others.is_empty() {
        return Err(not_last(&others));
    }
    let mut leaving = known.clone();
    leaving.is_leaving = true;
    leaving.write(data)?;
    let left = cluster::leave(&opened, ports.clock.unix_ms());
    runtime.block_on(left).map_err(failed)?;
    journal::flush(&opened);
    remove(data)?;
    Ok(Departure {
        cluster: known.cluster().unwrap_or_default(),
        id: known.id,
    })
}

fn not_last(others: &BTreeSet<u64>) -> Failure {
    let ids: Vec<_> = others.iter().map(u64::to_string).collect();
    let message = format!("the cluster has other members: {}", ids.join(", "));
    Failure::new(Exit::Usage, message)
        .hint("start this member, and remove each of them: telpher cluster remove ID")
        .hint("a member that is not the last one is removed at another: its data stays there")
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("cannot leave the cluster: {error}"))
}
