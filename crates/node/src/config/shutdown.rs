//! How the node goes down.

use std::time::Duration;

options! {
    /// How the node goes down after SIGTERM or SIGINT; a second signal ends it at once.
    shutdown, "Shutdown";

    /// Time for which the HTTP listener answers `/readyz` with 503 before it closes, so that load
    /// balancers see it.
    "shutdown.notice" => notice: Duration = Duration::from_millis(200), from "0s" to "1h";

    /// Time that clients have to finish what is in flight and leave.
    "shutdown.drain" => drain: Duration = Duration::from_secs(5), from "0s" to "1h";

    /// Time after which the process ends, come what may.
    "shutdown.limit" => limit: Duration = Duration::from_secs(10), from "0s" to "1h";
}
