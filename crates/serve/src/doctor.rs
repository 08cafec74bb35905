//! Checks of the environment of a node: directory, disk, tokens, listeners, limits.
//!
//! `telpher doctor` makes them for a node that may be started, and a running node makes them for its
//! administrators. Nothing is repaired, and no files are left behind.

mod directory;
mod finding;
mod listeners;
mod mounts;
mod sync;
mod tokens;

use config::{Config, Loaded};
use journal::SyncTimes;

use crate::backup::LastBackup;
use directory::InUse;

pub use finding::{Finding, Verdict};

/// Checks the environment of the node that `telpher serve` would start with this configuration. Syncs
/// small writes for one second.
pub fn check(loaded: &Loaded) -> Vec<Finding> {
    let config = &loaded.config;
    let dir = &config.data.dir;
    let (used, in_use) = directory::check_use(dir);
    let mut findings = vec![used];
    findings.extend(directory::check(dir));
    findings.extend(tokens::check(dir));
    findings.push(sync::check(&directory::nearest(dir)));
    findings.extend(listeners::check(config, in_use));
    findings.push(listeners::check_descriptors(loaded));
    findings
}

/// Checks the environment of the node that runs in this process with the configuration `config`. The
/// durations of syncs are those of its own writes.
pub(crate) fn check_running(
    config: &Config,
    loaded: &Loaded,
    sync_times: &SyncTimes,
    backup: Option<&LastBackup>,
) -> Vec<Finding> {
    let mut findings = directory::check(&config.data.dir);
    findings.extend(tokens::check(&config.data.dir));
    findings.push(sync::check_running(&sync_times.counts()));
    findings.extend(listeners::check(config, InUse::Yes));
    findings.push(listeners::check_descriptors(loaded));
    findings.push(LastBackup::finding(backup));
    findings
}
