//! Fits the number of connections to the limit of file descriptors.

use config::{Config, Loaded};
use net::SocketBudget;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for other uses than connections: listeners, files of the journal, runtimes.
const OTHERS: u64 = 256;

/// Returns the maximum number of descriptors of the process (`None` without a limit), and the
/// number that it needs.
pub fn granted(connections_max: u32) -> (Option<u64>, u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    (maximum, u64::from(connections_max) + OTHERS)
}

/// True if the number of connections was configured explicitly.
pub fn is_asked_for(loaded: &Loaded) -> bool {
    loaded.is_configured("native.connections_max")
}

/// The file descriptors that the system grants the process; `None` without a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant(Option<u64>);

impl Grant {
    /// No limit.
    pub(super) const UNLIMITED: Self = Self(None);

    /// Returns the maximum number of sockets of all listeners while the journal has this number of
    /// files open for its extents. It is at least one; of a small grant the journal gets half.
    pub(super) fn sockets(self, files: usize) -> usize {
        let Some(granted) = self.0 else {
            return usize::MAX;
        };
        let others = OTHERS.min(granted / 2);
        let free = granted - others;
        let sockets = free.saturating_sub(files as u64).max(granted / 8).max(1);
        usize::try_from(sockets).unwrap_or(usize::MAX)
    }

    /// Returns the number of connections for which there are descriptors, at most
    /// `connections_max`.
    fn fitting(self, connections_max: u32) -> u32 {
        let sockets = u32::try_from(self.sockets(0)).unwrap_or(u32::MAX);
        sockets.clamp(1, connections_max.max(1))
    }

    /// How many of the HTTP connections leave the sockets by which health checks are answered.
    fn fitting_http(self, connections_max: u32) -> u32 {
        let sockets = SocketBudget::shared(self.sockets(0));
        let sockets = u32::try_from(sockets).unwrap_or(u32::MAX);
        sockets.clamp(1, connections_max.max(1))
    }
}

/// Raises the process's limit of descriptors to its maximum. The default number of connections is
/// reduced to the available descriptors; a configured number that is too large is logged as a
/// warning. HTTP connections are always fewer than the sockets of the budget.
pub(super) fn fit(loaded: &Loaded) -> (Config, Grant) {
    let mut config = loaded.config.clone();
    let wanted = config.native.connections_max;
    let grant = raise_limit();
    let fitting = grant.fitting(wanted);
    if fitting < wanted {
        match is_asked_for(loaded) {
            true => tracing::warn!(
                fitting,
                wanted,
                "the limit of file descriptors is too low for native.connections_max"
            ),
            false => config.native.connections_max = fitting,
        }
    }
    let wanted = config.http.connections_max;
    let fitting = grant.fitting_http(wanted);
    if fitting < wanted {
        if loaded.is_configured("http.connections_max") {
            tracing::warn!(
                fitting,
                wanted,
                "http.connections_max is lowered: the system grants too few file descriptors; \
                 raise the limit of open files (`ulimit -n`, LimitNOFILE=)"
            );
        }
        config.http.connections_max = fitting;
    }
    (config, grant)
}

/// Raises the process's limit of descriptors to its maximum, and returns the number of connections
/// for which it is enough.
pub fn raise(connections_max: u32) -> u32 {
    raise_limit().fitting(connections_max)
}

fn raise_limit() -> Grant {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => Grant(maximum),
        Err(_) => Grant(current),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_by_descriptors() {
        for (granted, wanted, expected) in [
            (None, 20_000, 20_000),
            (Some(u64::MAX), 20_000, 20_000),
            (Some(20_256), 20_000, 20_000),
            (Some(20_000), 20_000, 19_744),
            (Some(1_024), 20_000, 768),
            (Some(1_024), 100, 100),
            (Some(100), 20_000, 50),
            (Some(1), 20_000, 1),
        ] {
            let fitting = Grant(granted).fitting(wanted);
            assert_eq!(fitting, expected, "{granted:?}, {wanted}");
        }
    }

    #[test]
    fn http_connections_leave_sockets_for_health_checks() {
        for (granted, wanted, expected) in [
            (None, 20_000, 20_000),
            (Some(1_024), 20_000, 736),
            (Some(192), 20_000, 84),
            (Some(192), 10, 10),
            (Some(1), 20_000, 1),
        ] {
            let fitting = Grant(granted).fitting_http(wanted);
            assert_eq!(fitting, expected, "{granted:?}, {wanted}");
        }
    }

    #[test]
    fn open_extents_leave_fewer_sockets() {
        assert_eq!(Grant(Some(1_024)).sockets(100), 668);
        assert_eq!(Grant(Some(1_024)).sockets(5_000), 128);
        assert_eq!(Grant::UNLIMITED.sockets(5_000), usize::MAX);
    }
}
