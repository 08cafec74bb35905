//! Options of a member of a cluster.

use std::path::PathBuf;

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

    /// Connect members without TLS, also beyond this machine.
    "cluster.insecure" => insecure: bool = false;
}
