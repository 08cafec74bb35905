//! `telpher serve --join`: becoming a member, with an image of the leader's journal.

use std::path::Path;
use std::sync::Arc;

use cluster::JoinError;
use config::Config;
use console::{Exit, Failure};
use journal::disk::RealDisk;
use model::ByteSize;

use super::consensus::{TcpDialer, Tls};
use super::identity::{Identity, addresses, identity, keep_key, key_path, read_key};
use crate::journal::DIRECTORY;
use crate::workers;

/// Directory of a journal that is not complete yet, in the data directory.
const UNFINISHED: &str = "journal.joining";

/// Bytes between two lines of progress.
const PROGRESS: u64 = 64 << 20;

/// Makes the data directory that of a member, unless it is one already.
pub(crate) fn join(config: &Config, contact: &str) -> Result<(), Failure> {
    let data = &config.data.dir;
    let key_path = key_path(config);
    if let Some(known) = identity(data)? {
        check_key(&key_path, data)?;
        tracing::info!(
            id = known.id,
            "this node is a member already; --join has no effect"
        );
        return Ok(());
    }
    if data.join(DIRECTORY).exists() {
        let message = format!("{} holds data of its own, and cannot join", data.display());
        return Err(Failure::new(Exit::Usage, message)
            .hint("a node joins with an empty data directory: --data PATH"));
    }
    let key = read_key(&key_path)?;
    let addresses = addresses(config)?;
    let unfinished = data.join(UNFINISHED);
    remove(&unfinished)?;
    let dialer = TcpDialer {
        tls: Tls::new(config, &key)?,
    };
    let runtime = workers::runtime().map_err(|error| failed(data, error))?;
    let mut told = 0;
    let progress = |bytes: u64| {
        if bytes >= told + PROGRESS {
            told = bytes;
            tracing::info!(received = %ByteSize::bytes(bytes), "receiving the journal");
        }
    };
    tracing::info!(contact, "joining");
    let target = Arc::new(RealDisk::new(&unfinished));
    let joined = cluster::join(&dialer, contact, &key, &addresses, target, progress);
    let joined = runtime
        .block_on(joined)
        .map_err(|error| refused(contact, &error))?;
    if key_path != data.join(super::KEY_FILE) {
        keep_key(&key_path, data)?;
    }
    // One rename makes the node a member: the next start finds the journal with the identity, or
    // neither, and then it joins anew.
    Identity::new(joined.cluster, joined.id).write(&unfinished)?;
    let renamed = std::fs::rename(&unfinished, data.join(DIRECTORY));
    let synced = renamed.and_then(|()| std::fs::File::open(data)?.sync_all());
    synced.map_err(|error| failed(data, error))?;
    tracing::info!(
        id = joined.id,
        received = %ByteSize::bytes(joined.bytes),
        "joined the cluster"
    );
    Ok(())
}

/// Refuses a member that is told to join with the key of another cluster.
fn check_key(given: &Path, data: &Path) -> Result<(), Failure> {
    let own = data.join(super::KEY_FILE);
    let read = |path: &Path| std::fs::read(path).map(|bytes| bytes.trim_ascii().to_vec());
    match (read(given), read(&own)) {
        (Ok(given), Ok(own)) if given == own => Ok(()),
        (Ok(_), Ok(_)) => {
            let message = format!(
                "{} is a member of another cluster: its key is not the one in {}",
                data.display(),
                given.display()
            );
            Err(Failure::new(Exit::Usage, message)
                .hint("a node joins with an empty data directory: --data PATH"))
        }
        // The start reads the key that it needs, and says so if it cannot.
        _ => Ok(()),
    }
}

fn remove(directory: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(directory, error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("{}: {error}", path.display()))
}

fn refused(contact: &str, error: &JoinError) -> Failure {
    let message = format!("cannot join through {contact}: {error}");
    match error {
        JoinError::Connection { .. } | JoinError::NoLeader => {
            Failure::new(Exit::Unavailable, message)
                .hint("give the address of a running member (its `cluster.listen`) and its key")
        }
        JoinError::Refused { .. } => Failure::new(Exit::Failed, message).hint(
            "`telpher cluster status` lists the members; `telpher cluster remove ID` removes one",
        ),
        JoinError::Io(_) => Failure::new(Exit::Failed, message).hint("start this command again"),
    }
}
