//! A Redis Cluster of three masters.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use super::Redis;
use crate::support::eventually;

const MORE: &[&str] = &["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];

/// The servers of the cluster, killed on drop.
pub(crate) struct Cluster(Vec<Redis>);

impl Cluster {
    pub(crate) fn started() -> Self {
        let servers = (0..3).map(|_| Redis::started_on(free_port(), MORE));
        let cluster = Self(servers.collect());
        let mut create = Command::new("redis-cli");
        create.args(["--cluster", "create", "--cluster-yes"]);
        create.args(cluster.0.iter().map(Redis::address));
        let created = create.stdin(Stdio::null()).output();
        let created = created.expect("redis-cli is installed");
        assert!(created.status.success(), "{created:?}");
        cluster.is_whole();
        cluster
    }

    /// True if every server reports that the cluster is up.
    pub(crate) fn is_whole(&self) {
        eventually("the cluster is whole", || {
            let mut servers = self.0.iter();
            servers.all(|server| {
                server
                    .ask(&["cluster", "info"])
                    .contains("cluster_state:ok")
            })
        });
    }

    /// Returns the addresses in the form of `quota.store.redis`.
    pub(crate) fn urls(&self) -> String {
        let urls: Vec<_> = self.0.iter().map(Redis::url).collect();
        urls.join(",")
    }

    /// Returns the master that stores the quotas of an organisation.
    pub(crate) fn master_of(&mut self, org: &str) -> &mut Redis {
        let slot = self.0[0].ask(&["cluster", "keyslot", &format!("{{{org}}}")]);
        let has_it = |server: &Redis| {
            let count = server.ask(&["cluster", "countkeysinslot", slot.trim()]);
            count.trim().parse::<u64>().is_ok_and(|count| count > 0)
        };
        let place = self.0.iter().position(has_it);
        &mut self.0[place.expect("something is known of it")]
    }

    /// Restarts the master that is down.
    pub(crate) fn crashed(&mut self) -> &mut Redis {
        let down = self.0.iter().position(|server| server.child.is_none());
        &mut self.0[down.expect("one was killed")]
    }
}

impl Redis {
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &self.port.to_string()]).args(words);
        let output = command.stdin(Stdio::null()).output();
        let output = output.expect("redis-cli is installed");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Finds a free port; a cluster server also uses the port 10,000 above it.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            return port;
        }
    }
}
