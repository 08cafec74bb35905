//! Refusals: the log has one line for each address and minute, and applications of SLIM 1.x are stopped.
//!
//! SLIM's library comes back at once when a stream ends with an error, and gives up when a stream does not
//! begin. A 1.x application is recognized by its first message, which is after its stream has begun. So its
//! first stream ends with the reason, and the next stream from the same address and of the same software is
//! refused before it begins.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The text that such an application and the log are given.
pub(super) const LEGACY: &str =
    "this application speaks SLIM 1.x; slim-bindings 2.0 to 3.3 are spoken here";

/// At most one line per address in this time.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// How soon a 1.x application comes back; it takes milliseconds unless its machine is busy.
const RETURN_LIMIT: Duration = Duration::from_secs(2);

/// Addresses that are remembered. Beyond, all of them are forgotten.
const ADDRESSES_MAX: usize = 1024;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Refusals {
    logged: Mutex<HashMap<String, Logged>>,
    returning: Mutex<HashMap<Caller, Vec<Instant>>>,
}

/// The last line about an address.
struct Logged {
    at: Instant,
    /// Refusals since then.
    silent: u64,
}

/// An address without its port, and the `user-agent` of a request.
type Caller = (String, String);

impl Refusals {
    /// Logs a refusal, unless one of that address was logged within the last minute.
    pub(super) fn log(&self, remote: &str, reason: &dyn std::fmt::Display) {
        if let Some(silent) = self.count(remote, Instant::now()) {
            tracing::info!(%remote, %reason, silent, "SLIM connection refused");
        }
    }

    /// Logs that an application waits until the node has room, as seldom.
    pub(super) fn log_waiting(&self, remote: &str, reason: &dyn std::fmt::Display) {
        if let Some(silent) = self.count(remote, Instant::now()) {
            tracing::warn!(%remote, %reason, silent, "a SLIM application waits for a connection");
        }
    }

    /// Counts a refusal. If a line about it is due: how many refusals had none since the last line.
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

    /// A 1.x application was refused, and will come back once.
    pub(super) fn expect(&self, remote: &str, software: &str) {
        let mut returning = self.returning.lock();
        if returning.len() >= ADDRESSES_MAX {
            returning.clear();
        }
        let caller = (host(remote).to_owned(), software.to_owned());
        returning.entry(caller).or_default().push(Instant::now());
    }

    /// Whether this is a 1.x application that comes back. It is expected once for each refusal.
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

/// An address without its port.
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
    async fn a_refused_application_is_expected_once_and_soon() {
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
