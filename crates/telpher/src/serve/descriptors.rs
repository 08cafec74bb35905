//! A connection costs a descriptor: as many as the system grants.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not connections: listeners, files, the runtimes' own.
const OTHERS: u64 = 64;

/// How many descriptors the process may get, without a limit `None`, and how many it wants.
pub(crate) fn granted(connections_max: u32) -> (Option<u64>, u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    (maximum, u64::from(connections_max) + OTHERS)
}

/// Raises the process's limit as far as it may, and warns when that is too little.
pub(crate) fn raise(connections_max: u32) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let granted = match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    ) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    let wanted = u64::from(connections_max) + OTHERS;
    // No limit at all is `None`.
    if let Some(granted) = granted.filter(|granted| *granted < wanted) {
        tracing::warn!(
            granted,
            wanted,
            "the system grants fewer descriptors than that many connections need"
        );
    }
}
