//! Refused connections: their log is limited to one line per address and minute, and applications
//! of SLIM 1.x are stopped.
//!
//! SLIM's library reconnects at once when a stream ends with an error, and gives up when a stream
//! does not begin. A 1.x application is recognized by its first message, which comes after its
//! stream has begun. So its first stream ends with the reason, and the next stream from the same
//! address and software is refused before it begins.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The text for such an application and for the log.
pub(super) const LEGACY: &str =
    "this application uses SLIM 1.x; this node supports slim-bindings 2.0 to 3.3";

/// The interval of log lines per address.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The time within which a 1.x application reconnects; it needs milliseconds unless its machine is
/// busy.
const RETURN_LIMIT: Duration = Duration::from_secs(2);

/// The number of addresses that are remembered. Above it, all of them are forgotten.
const ADDRESSES_MAX: usize = 1024;

/// The refusals of one listener.
#[derive(Default)]
pub(super) struct Refusals {
    logged: Mutex<HashMap<String, Logged>>,
    returning: Mutex<HashMap<Caller, Vec<Instant>>>,
}

/// The last line about an address.
struct Logged {
    at: Instant,
    /// The number of refusals since then.
    silent: u64,
}

/// An address without its port, and the `user-agent` of a request.
type Caller = (String, String);

impl Refusals {
    /// Logs a refusal, unless one of this address was logged within the last minute.
    pub(super) fn log(&self, remote: &str, reason: &dyn std::fmt::Display) {
        if let Some(silent) = self.count(remote, Instant::now()) {
            tracing::info!(%remote, %reason, silent, "SLIM connection refused");
        }
    }

    /// Logs that an application waits for room, as rarely.
    pub(super) fn log_waiting(&self, remote: &str, reason: &dyn std::fmt::Display) {
        if let Some(silent) = self.count(remote, Instant::now()) {
            tracing::warn!(%remote, %reason, silent, "a SLIM application waits for a connection");
        }
    }

    /// Counts a refusal. If a line is due, returns the number of refusals since the last line.
    fn count(&self, remote: &str, now: Instant) -> Option<u64> {
        let mut logged = self.logged.lock();
        if let Some(last) = logged.get_mut(host(remote)) {
            if now.duration_since(last.at) < LOG_INTERVAL {
                last.silent += 1;
                return None;
            }
            last.at = now;
            return Some(std::mem::take(&mut last.silent));
        }
        if logged.len() >= ADDRESSES_MAX {
            logged.clear();
        }
        let first = Logged { at: now, silent: 0 };
        logged.insert(host(remote).to_owned(), first);
        Some(0)
    }

    /// Notes that a 1.x application was refused, and will reconnect once.
    pub(super) fn expect(&self, remote: &str, software: &str) {
        let mut returning = self.returning.lock();
        if returning.len() >= ADDRESSES_MAX {
            returning.clear();
        }
        let caller = (host(remote).to_owned(), software.to_owned());
        returning.entry(caller).or_default().push(Instant::now());
    }

    /// Returns whether this is a 1.x application that reconnects. It is expected once for each
    /// refusal.
    pub(super) fn is_returning(&self, remote: &str, software: &str) -> bool {
        let mut returning = self.returning.lock();
        if returning.is_empty() {
            return false;
        }
        let caller = (host(remote).to_owned(), software.to_owned());
        let Some(refused) = returning.get_mut(&caller) else {
            return false;
        };
        let now = Instant::now();
        refused.retain(|at| now.duration_since(*at) < RETURN_LIMIT);
        let is_returning = refused.pop().is_some();
        if refused.is_empty() {
            returning.remove(&caller);
        }
        is_returning
    }
}

/// Returns an address without its port.
fn host(remote: &str) -> &str {
    remote.rsplit_once(':').map_or(remote, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_is_logged_once_a_minute() {
        let refusals = Refusals::default();
        let count = |remote| refusals.count(remote, Instant::now());
        assert_eq!(count("127.0.0.1:1"), Some(0));
        assert_eq!(count("127.0.0.1:2"), None);
        assert_eq!(count("127.0.0.2:1"), Some(0));
        tokio::time::advance(LOG_INTERVAL).await;
        assert_eq!(count("127.0.0.1:3"), Some(1));
        assert_eq!(count("127.0.0.1:3"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_application_is_recognized_once_within_the_return_limit() {
        let refusals = Refusals::default();
        refusals.expect("127.0.0.1:1", "tonic/1");
        assert!(!refusals.is_returning("127.0.0.1:2", "tonic/2"));
        assert!(!refusals.is_returning("127.0.0.2:2", "tonic/1"));
        assert!(refusals.is_returning("127.0.0.1:2", "tonic/1"));
        assert!(!refusals.is_returning("127.0.0.1:3", "tonic/1"));
        refusals.expect("127.0.0.1:1", "tonic/1");
        tokio::time::advance(RETURN_LIMIT).await;
        assert!(!refusals.is_returning("127.0.0.1:2", "tonic/1"));
    }
}
