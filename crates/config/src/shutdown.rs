//! Options of the shutdown.

use std::time::Duration;

options! {
    /// The shutdown after SIGTERM or SIGINT; a second signal ends the node at once.
    shutdown, "Shutdown";

    /// Time for which the HTTP listener answers `/readyz` with 503 before it closes, so that load
    /// balancers see it.
    "shutdown.notice" => notice: Duration = Duration::from_millis(200), from "0s" to "1h";

    /// Time for requests in flight to finish and for clients to disconnect.
    "shutdown.drain" => drain: Duration = Duration::from_secs(5), from "0s" to "1h";

    /// Time after which the process exits in any case.
    "shutdown.limit" => limit: Duration = Duration::from_secs(10), from "0s" to "1h";
}
