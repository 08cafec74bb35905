//! A connection costs a descriptor: as many as the system grants.

use node::config::{Config, Loaded, Origin, find};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are not connections: listeners, files of the journal, the runtimes' own.
const OTHERS: u64 = 256;

/// How many descriptors the process may get, without a limit `None`, and how many it wants.
pub(crate) fn granted(connections_max: u32) -> (Option<u64>, u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    (maximum, u64::from(connections_max) + OTHERS)
}

/// Whether somebody asked for that many connections.
pub(crate) fn is_asked_for(loaded: &Loaded) -> bool {
    let spec = find("native.connections_max");
    spec.is_some_and(|spec| loaded.origin(spec) != Origin::Default)
}

/// Raises the process's limit as far as it may. A node that nobody told how many connections to
/// take takes as many as there are descriptors for; one that was told is warned when those are
/// fewer.
pub(super) fn fit(loaded: &Loaded) -> Config {
    let mut config = loaded.config.clone();
    let wanted = config.native.connections_max;
    let fitting = raise(wanted);
    if fitting < wanted {
        match is_asked_for(loaded) {
            true => tracing::warn!(
                fitting,
                wanted,
                "the system grants fewer descriptors than that many connections need"
            ),
            false => config.native.connections_max = fitting,
        }
    }
    config
}

/// Raises the process's limit as far as it may, and says for how many of the connections that is
/// enough.
pub(crate) fn raise(connections_max: u32) -> u32 {
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
    fitting(granted, connections_max)
}

/// How many of the connections there are descriptors for, at least one. No limit at all is `None`.
fn fitting(granted: Option<u64>, connections_max: u32) -> u32 {
    let free = granted.map_or(u64::MAX, |granted| granted.saturating_sub(OTHERS));
    u32::try_from(free).map_or(connections_max, |free| {
        free.clamp(1, connections_max.max(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_connections_fit_as_there_are_descriptors_for() {
        for (granted, wanted, expected) in [
            (None, 20_000, 20_000),
            (Some(u64::MAX), 20_000, 20_000),
            (Some(20_256), 20_000, 20_000),
            (Some(20_000), 20_000, 19_744),
            (Some(1_024), 20_000, 768),
            (Some(1_024), 100, 100),
            (Some(10), 20_000, 1),
        ] {
            assert_eq!(fitting(granted, wanted), expected, "{granted:?}, {wanted}");
        }
    }
}
