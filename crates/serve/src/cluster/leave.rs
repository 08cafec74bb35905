//! `telpher cluster leave`: makes the last member of a cluster a node alone, with its data.

use cluster::LeaveError;
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
    let members = cluster::members_on_disk(&opened).map_err(failed)?;
    refuse_others(members.iter().map(|it| it.id).filter(|id| *id != known.id))?;
    let mut leaving = known.clone();
    leaving.is_leaving = true;
    leaving.write(data)?;
    let left = runtime.block_on(cluster::leave(&opened, known.id, ports.clock.unix_ms()));
    match left {
        Ok(()) => {}
        Err(LeaveError::OtherMembers { ids }) => {
            known.write(data)?;
            refuse_others(ids.into_iter())?;
        }
        Err(error) => return Err(failed(error)),
    }
    journal::flush(&opened);
    remove(data)?;
    Ok(Departure {
        cluster: known.cluster().unwrap_or_default(),
        id: known.id,
    })
}

/// Refuses to leave a cluster that has other members.
fn refuse_others(ids: impl Iterator<Item = u64>) -> Result<(), Failure> {
    let ids: Vec<_> = ids.map(|id| id.to_string()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let message = format!("the cluster has other members: {}", ids.join(", "));
    Err(Failure::new(Exit::Usage, message)
        .hint("start this member, and remove each of them: telpher cluster remove ID")
        .hint("a member that is not the last one is removed at another: its data stays there"))
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("cannot leave the cluster: {error}"))
}
