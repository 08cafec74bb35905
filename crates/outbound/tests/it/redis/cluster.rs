//! A Redis Cluster with three masters.

use std::process::Command;

use outbound::redis::Redis;
use quota_service::quota_store::QuotaStore;
use tokio::runtime::Runtime;

use super::server::{Server, eventually, remaining, runtime, slow, store, take};

const MORE: [&str; 4] = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];

fn cluster() -> Vec<Server> {
    let servers: Vec<Server> = (0..3).map(|_| Server::started_with(&MORE)).collect();
    let mut create = vec!["create".to_owned(), "--cluster-yes".to_owned()];
    create.extend(servers.iter().map(address));
    manage(&create);
    for server in &servers {
        eventually("the cluster is whole", || {
            let info = server.cli(&["cluster", "info"]);
            info.contains("cluster_state:ok")
        });
    }
    servers
}

fn manage(words: &[String]) {
    let mut command = Command::new("redis-cli");
    let done = command.arg("--cluster").args(words).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn address(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port)
}

/// The master with the keys of an organisation.
fn master_of(servers: &[Server], org: &str) -> usize {
    let slot = servers[0].cli(&["cluster", "keyslot", &format!("{{{org}}}")]);
    let has_it = |server: &Server| {
        let count = server.cli(&["cluster", "countkeysinslot", slot.trim()]);
        count.trim() != "0"
    };
    servers.iter().position(has_it).unwrap()
}

/// A replica of the master that has all its data.
fn replica_of(master: &Server) -> Server {
    let replica = Server::started_with(&MORE);
    let id = master.cli(&["cluster", "myid"]).trim().to_owned();
    manage(&[
        "add-node".to_owned(),
        address(&replica),
        address(master),
        "--cluster-slave".to_owned(),
        "--cluster-master-id".to_owned(),
        id,
    ]);
    replica
}

fn is_caught_up(replica: &Server, master: &Server) -> bool {
    let offset = |server: &Server| {
        let info = server.cli(&["info", "replication"]);
        let mut lines = info.lines();
        let line = lines.find_map(|line| line.strip_prefix("master_repl_offset:"));
        line.map(str::to_owned)
    };
    let info = replica.cli(&["info", "replication"]);
    info.contains("master_link_status:up") && offset(replica) == offset(master)
}

/// Counts the admitted takes up to the first denial, across any failures.
fn drain(runtime: &Runtime, store: &Redis, org: &str, capacity: u64) -> u64 {
    let (key, mut admitted, mut is_denied) = (format!("{{{org}}}/a"), 0, false);
    eventually("it is denied", || {
        while let Ok(decided) = runtime.block_on(store.decide(take(vec![slow(&key, capacity, 1)])))
        {
            match decided[0].denied_by {
                None => admitted += 1,
                Some(_) => {
                    is_denied = true;
                    break;
                }
            }
        }
        is_denied
    });
    admitted
}

#[test]
fn a_cluster_admits_exactly_each_capacity_across_a_master_restart() {
    let mut servers = cluster();
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let runtime = runtime();
    let stores: Vec<_> = (0..3).map(|_| store(urls.clone(), 3)).collect();
    let drain = |org: &'static str, capacity: u64| {
        runtime.block_on(async {
            let takers = stores.iter().map(|store| {
                let store = store.clone();
                tokio::spawn(async move {
                    let (key, wide) = (format!("{{{org}}}/a"), format!("{{{org}}}"));
                    let mut admitted = 0;
                    loop {
                        let cells = vec![slow(&key, capacity, 1), slow(&wide, 1_000, 1)];
                        match store.decide(take(cells)).await.unwrap()[0].denied_by {
                            None => admitted += 1,
                            Some(_) => return admitted,
                        }
                    }
                })
            });
            let mut admitted = 0;
            for taker in takers.collect::<Vec<_>>() {
                admitted += taker.await.unwrap();
            }
            admitted
        })
    };
    for org in ["acme", "umbrella", "initech", "hooli", "globex", "soylent"] {
        assert_eq!(drain(org, 90), 90, "{org}");
    }
    servers[0].crash();
    servers[0].start();
    for org in ["acme", "umbrella", "initech", "hooli", "globex", "soylent"] {
        let key = format!("{{{org}}}/a");
        eventually("it is denied again", || {
            let decided = stores[0].decide(take(vec![slow(&key, 90, 1)]));
            let decided = runtime.block_on(decided);
            // One more admitted take would exceed the capacity.
            decided.is_ok_and(|it| {
                assert!(it[0].denied_by.is_some(), "{org}");
                true
            })
        });
    }
}

#[test]
fn a_promoted_replica_continues_with_the_replicated_cells() {
    let mut servers = cluster();
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let (runtime, store) = (runtime(), store(urls, 1));
    let ask = |count| store.decide(take(vec![slow("{acme}/a", 50, count)]));
    let first = runtime.block_on(ask(20)).unwrap();
    assert_eq!(remaining(&first[0]), [30]);
    let master = master_of(&servers, "acme");
    let replica = replica_of(&servers[master]);
    eventually("the replica has everything", || {
        is_caught_up(&replica, &servers[master])
    });
    servers[master].crash();
    assert_eq!(drain(&runtime, &store, "acme", 50), 30);
    eventually("the replica is a master", || {
        replica
            .cli(&["info", "replication"])
            .contains("role:master")
    });
}
