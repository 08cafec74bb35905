//! Options of a member of a cluster.

use std::path::PathBuf;

use model::ByteSize;

use super::HostPort;

options! {
    /// The cluster, for a node that is a member of one: see `telpher cluster`.
    cluster, "Cluster";

    /// Address on which the other members connect. A node that is no member does not listen.
    "cluster.listen" => listen: Option<HostPort> = Some(HostPort::loopback(7402));

    /// Address that the other members are told to connect to; `none` is `cluster.listen`.
    "cluster.advertised" => advertised: Option<HostPort> = None;

    /// File with the key that all members share; `none` is `cluster.key` in the data directory.
    "cluster.key" => key: Option<PathBuf> = None;

    /// Log to hold for members that are behind. A member that is further behind cannot catch up: it
    /// must be removed, and join again with an empty data directory.
    "cluster.hold_size" => hold_size: ByteSize = ByteSize::gibibytes(1), from "64MiB" to "1024GiB";

    /// Connect members without TLS, also beyond this machine.
    "cluster.insecure" => insecure: bool = false;
}
