//! Calls that the server refuses have no effect and are reported as not executed.

use std::process::{Command, Stdio};
use std::time::Duration;

use outbound::redis::Redis;
use quota_service::quota_store::{QuotaStore, StoreUnavailable};
use tokio::runtime::Runtime;

use super::server::{Server, eventually, remaining, runtime, slow, take};

struct StoreClient {
    runtime: Runtime,
    store: Redis,
}

impl StoreClient {
    fn new(server: &Server) -> Self {
        Self {
            runtime: runtime(),
            store: server.store(),
        }
    }

    /// Credit left of a hundred after one more take.
    fn ask(&self) -> Result<i64, StoreUnavailable> {
        let take = take(vec![slow("{o}/a", 100, 1), slow("{o}", 1_000, 1)]);
        let decided = self.runtime.block_on(self.store.decide(take))?;
        Ok(remaining(&decided[0])[0])
    }

    fn is_refused(&self, word: &str) -> bool {
        let Err(away) = self.ask() else { return false };
        assert!(!away.may_be_done, "{away}");
        assert!(!self.store.view().is_connected);
        away.reason.contains(word)
    }
}

#[test]
fn a_redis_server_without_memory_writes_or_replicas_takes_nothing() {
    let server = Server::started();
    let asker = StoreClient::new(&server);
    assert_eq!(asker.ask(), Ok(99));
    let cases = [
        ("config set maxmemory 1", "OOM", "config set maxmemory 0"),
        ("replicaof 127.0.0.1 1", "READONLY", "replicaof no one"),
        (
            "config set min-replicas-to-write 1",
            "NOREPLICAS",
            "config set min-replicas-to-write 0",
        ),
    ];
    for (place, (worse, word, better)) in (0..).zip(cases) {
        let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
        server.cli(&words(worse));
        eventually(word, || asker.is_refused(word));
        server.cli(&words(better));
        let mut after = None;
        eventually("it takes again", || {
            after = asker.ask().ok();
            after.is_some()
        });
        assert_eq!(
            after,
            Some(98 - place),
            "{word}: nothing was taken meanwhile"
        );
        assert!(asker.store.view().is_connected && asker.store.view().error.is_none());
    }
}

#[test]
fn a_busy_redis_server_takes_nothing() {
    let server = Server::started_with(&["--busy-reply-threshold", "1"]);
    let asker = StoreClient::new(&server);
    assert_eq!(asker.ask(), Ok(99));
    let mut endless = Command::new("redis-cli");
    endless.args(["-p", &server.port.to_string()]);
    endless.args(["eval", "while true do end", "0"]);
    let mut endless = endless.stdout(Stdio::null()).spawn().unwrap();
    let mut taken = 1;
    eventually("it is busy", || match asker.ask() {
        Ok(_) => {
            taken += 1;
            false
        }
        Err(away) => {
            assert!(!away.may_be_done && away.reason.contains("BUSY"), "{away}");
            true
        }
    });
    server.cli(&["script", "kill"]);
    endless.wait().unwrap();
    let mut after = None;
    eventually("it takes again", || {
        after = asker.ask().ok();
        after.is_some()
    });
    assert_eq!(after, Some(99 - taken));
}

#[test]
fn a_redis_server_that_is_loading_takes_nothing() {
    let mut server = Server::started();
    let asker = StoreClient::new(&server);
    assert_eq!(asker.ask(), Ok(99));
    let fill = "for i = 1, 1000 do redis.call('SET', i, string.rep('x', 200)) end";
    server.cli(&["eval", fill, "0"]);
    // While the server loads an append-only file it answers no one; while it loads a snapshot it
    // answers.
    server.cli(&["bgrewriteaof"]);
    eventually("there is an image", || {
        let info = server.cli(&["info", "persistence"]);
        let has = |word: &str| info.contains(word);
        has("aof_rewrites:1") && has("aof_rewrite_in_progress:0") && has("aof_rewrite_scheduled:0")
    });
    let slowly = ["--key-load-delay", "4000"];
    server.set(&slowly);
    server.set(&["--loading-process-events-interval-bytes", "1024"]);
    let (mut remaining, mut is_seen) = (99, false);
    eventually("it is asked while it is loading", || {
        server.crash();
        server.spawn();
        eventually("it takes again", || match asker.ask() {
            Ok(now) => {
                assert_eq!(now, remaining - 1, "nothing was taken while it was loading");
                remaining = now;
                true
            }
            Err(away) => {
                let is_loading = away.reason.contains("LOADING");
                assert!(!is_loading || !away.may_be_done, "{away}");
                is_seen |= is_loading;
                false
            }
        });
        is_seen
    });
}

#[test]
fn a_flushed_script_is_loaded_again() {
    let server = Server::started();
    let asker = StoreClient::new(&server);
    assert_eq!(asker.ask(), Ok(99));
    server.cli(&["script", "flush"]);
    let batch = (0..40).flat_map(|_| take(vec![slow("{o}/a", 100, 1)]));
    let decided = asker.store.decide(batch.collect());
    let decided = asker.runtime.block_on(decided).unwrap();
    let remaining: Vec<i64> = decided.iter().map(|it| remaining(it)[0]).collect();
    assert_eq!(
        remaining,
        (59..99).rev().collect::<Vec<_>>(),
        "in their order"
    );
}

/// A server that loses its data starts with new cells, as documented, and has no other effect.
#[test]
fn flushed_cells_are_full_and_old_leases_add_no_credit() {
    let server = Server::started();
    let asker = StoreClient::new(&server);
    let lease = |want, before| {
        let lease = asker.store.lease(slow("{o}/a", 100, 0), want, before);
        asker.runtime.block_on(lease).unwrap()
    };
    let before = lease(1_000, None);
    assert_eq!((before.granted, before.have), (25, 75));
    server.cli(&["flushall"]);
    let returned = quota_service::quota_store::ReturnedLease {
        lease: before,
        spent: 5,
    };
    let after = lease(0, Some(returned));
    assert_eq!((after.granted, after.have), (0, 100));
}

#[test]
fn a_wrong_password_is_refused_and_never_shown() {
    let server = Server::started_with(&["--requirepass", "open-sesame"]);
    let runtime = runtime();
    let ask = |user: &str| {
        let url = format!("redis://{user}127.0.0.1:{}", server.port);
        let store = super::server::store(vec![url], 1);
        let probed = runtime.block_on(store.probe());
        probed.map(|version| version.contains('.'))
    };
    assert_eq!(ask(":open-sesame@"), Ok(true));
    for user in ["", ":friend@"] {
        let away = ask(user).unwrap_err();
        assert!(!away.may_be_done, "{away}");
        assert!(!away.reason.contains("friend"), "{away}");
    }
    let options = super::server::options(vec!["redis//:secret@host".to_owned()], 1);
    let error = Redis::new(options).err().unwrap().to_string();
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn the_number_of_waiting_requests_is_limited() {
    let server = Server::started();
    let options = outbound::redis::Options {
        waiting_max: 10,
        deadline: Duration::from_secs(5),
        ..super::server::options(vec![server.url()], 1)
    };
    let store = Redis::new(options).unwrap();
    let batch = |size| {
        (0..size)
            .flat_map(|_| take(vec![slow("{o}/a", 100, 1)]))
            .collect()
    };
    let away = runtime().block_on(store.decide(batch(11))).unwrap_err();
    assert!(
        !away.may_be_done && away.reason.contains("too many"),
        "{away}"
    );
    assert_eq!(
        runtime().block_on(store.decide(batch(10))).unwrap().len(),
        10
    );
}
