//! Three nodes that are killed while producers write: every acknowledged record is there once, at its
//! offset, whichever node leads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kafka::{ErrorCode, create_topics};
use serde_json::Value;

use super::client::Client;
use super::kill9::{ProducerState, TOPIC, read_through};
use crate::cluster::{Cluster, copy_directory};
use crate::support::eventually;

const PRODUCERS: i32 = 3;

/// Pause of a producer without a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Time for which producers write between two faults.
const BETWEEN: Duration = Duration::from_millis(1500);

impl Cluster {
    /// Creates the topic, with a partition for each producer.
    fn create_topic(&self) -> Vec<ProducerState> {
        let topic = create_topics::Topic {
            name: TOPIC.to_owned(),
            num_partitions: PRODUCERS,
            replication_factor: 3,
            ..create_topics::Topic::default()
        };
        let request = create_topics::Request {
            topics: vec![topic],
            timeout_ms: 10_000,
            ..create_topics::Request::default()
        };
        let created = self.connect(1).ask(5, &request).unwrap();
        assert_eq!(created.topics[0].error_code, ErrorCode::None);
        (0..PRODUCERS).map(|_| ProducerState::default()).collect()
    }

    /// Lets producers write, through whichever node serves them, while `fault` runs.
    fn write_during(&mut self, states: &mut [ProducerState], fault: impl FnOnce(&mut Cluster)) {
        let is_over = AtomicBool::new(false);
        let addresses: Vec<_> = (0..3)
            .map(|it| self.address(it, "kafka").to_owned())
            .collect();
        thread::scope(|scope| {
            for (index, state) in (0..).zip(states) {
                let (addresses, is_over) = (&addresses, &is_over);
                scope.spawn(move || {
                    for address in addresses.iter().cycle() {
                        if is_over.load(Ordering::Relaxed) {
                            return;
                        }
                        if let Ok(mut client) = Client::connect_to(address) {
                            while !is_over.load(Ordering::Relaxed)
                                && state.write_next(index, &mut client)
                            {
                            }
                        }
                        thread::sleep(PAUSE);
                    }
                });
            }
            thread::sleep(BETWEEN);
            fault(self);
            thread::sleep(BETWEEN);
            is_over.store(true, Ordering::Relaxed);
        });
    }

    fn check(&self, states: &mut [ProducerState]) {
        let mut client = self.connect(self.leader());
        for (index, state) in (0..).zip(states) {
            state.check_stored(&read_through(&mut client, index));
        }
    }
}

#[test]
fn acked_records_survive_kill9_of_leaders_followers_and_all_nodes() {
    let mut cluster = Cluster::start();
    let mut states = cluster.create_topic();
    for round in 0..2 {
        let leader = cluster.leader();
        cluster.write_during(&mut states, |it| it.kill(leader));
        let next = cluster.leader();
        assert_ne!(next, leader, "another node leads");
        cluster.check(&mut states);
        cluster.restart(leader);
        cluster.connect(leader);
        let follower = (0..3).find(|it| *it != cluster.leader()).unwrap();
        cluster.write_during(&mut states, |it| it.kill(follower));
        cluster.restart(follower);
        cluster.check(&mut states);
        cluster.write_during(&mut states, |it| (0..3).for_each(|node| it.kill(node)));
        (0..3).for_each(|node| cluster.restart(node));
        cluster.check(&mut states);
        let kept: usize = states.iter().map(|it| it.kept.len()).sum();
        assert!(kept > 100 * (round + 1), "{kept}");
    }
    let url = format!("tcp://{}", cluster.address(0, "native"));
    let status = cluster
        .place
        .run(&format!("cluster status --json --url {url}"));
    let status = status.expect(0).json();
    assert_eq!(status["nodes"].as_array().unwrap().len(), 3, "{status:#}");
    let is_voter = |it: &Value| it["role"] == "voter";
    assert!(status["nodes"].as_array().unwrap().iter().all(is_voter));
    for (line, what) in [
        ("conversation append c-1 hello", "conversations"),
        ("write acme/demo/echo hello", "mailboxes"),
        ("request acme/demo/echo hello", "calls"),
        ("listen acme/demo/echo --echo", "agents"),
        ("quota take acme/demo/echo 1", "quotas"),
    ] {
        let refused = cluster.place.run(&format!("{line} --url {url}"));
        let error = &refused.stderr;
        assert_ne!(refused.code(), 0, "{line}: {error}");
        assert!(
            error.contains("a cluster serves topics and streams only"),
            "{line}: {error}"
        );
        assert!(error.contains(what), "{line}: {error}");
    }
    let appended = cluster
        .place
        .run(&format!("append acme/demo/log done --url {url}"));
    appended.expect(0);
}

#[test]
fn members_report_their_own_state_and_damage() {
    let mut cluster = Cluster::start();
    let leader = cluster.leader();
    let metric = |page: &str, name: &str| {
        let line = page.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name} is missing in {page}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    for node in 0..3 {
        let (status, page) = cluster.get(node, "/metrics");
        assert_eq!(status, 200, "{page}");
        let is_leader = metric(&page, "telpher_shard_is_leader{shard=\"0\"}");
        assert!(metric(&page, "telpher_shard_elections_total{shard=\"0\"}") < 100.0);
        assert_eq!(metric(&page, "telpher_member_clock_is_off"), 0.0);
        let mut clocks = String::new();
        eventually("the clocks of both others are measured", || {
            (_, clocks) = cluster.get(node, "/metrics");
            clocks
                .matches("telpher_member_clock_ahead_seconds{")
                .count()
                == 2
        });
        let ahead = metric(&clocks, "telpher_member_clock_ahead_seconds{");
        assert!(ahead.abs() < 0.5, "one machine has one clock: {ahead}");
        assert_eq!(is_leader, f64::from(node == leader), "{page}");
        assert_eq!(metric(&page, "telpher_shard_is_voter{shard=\"0\"}"), 1.0);
        let led_by = metric(&page, "telpher_shard_leader{shard=\"0\"}");
        assert_eq!(Value::from(led_by as u64), cluster.nodes[leader]["id"]);
        assert!(metric(&page, "telpher_shard_committed_block{shard=\"0\"}") > 0.0);
        assert!(metric(&page, "telpher_shard_term{shard=\"0\"}") > 0.0);
        assert!(metric(&page, "telpher_journal_syncs_total") > 0.0, "{page}");
        let peers = page
            .matches("telpher_shard_peer_behind_blocks{shard=\"0\"")
            .count();
        assert_eq!(peers, if node == leader { 2 } else { 0 }, "{page}");
        let bytes = page.matches("telpher_shard_peer_behind_bytes{shard=\"0\"");
        assert_eq!(bytes.count(), peers);
        assert_eq!(cluster.get(node, "/livez"), (200, "ok\n".to_owned()));
        assert_eq!(cluster.get(node, "/readyz").0, 200);
    }
    let damaged = (leader + 1) % 3;
    cluster.kill(damaged);
    let manifest = cluster.data(damaged).join("journal/MANIFEST");
    let mut bytes = std::fs::read(&manifest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&manifest, bytes).unwrap();
    cluster.restart(damaged);
    let mut answer = (0, String::new());
    eventually("the damaged member answers", || {
        answer = cluster.get(damaged, "/readyz");
        answer.0 == 503
    });
    assert!(answer.1.contains("MANIFEST"), "{}", answer.1);
    assert_eq!(cluster.get(damaged, "/livez").0, 200);
    assert_eq!(cluster.get(damaged, "/metrics").0, 200);
    let refused = cluster.get(damaged, "/v1/agents");
    assert_eq!(refused.0, 503, "{}", refused.1);
    assert!(refused.1.contains("MANIFEST"), "{}", refused.1);
    // The others go on, and one of them is left that may fail.
    let url = format!("tcp://{}", cluster.address(leader, "native"));
    let line = format!("append acme/demo/log done --url {url}");
    cluster.place.run(&line).expect(0);
}

#[test]
fn member_from_an_old_copy_is_kept_out_by_name() {
    let mut cluster = Cluster::start();
    let mut states = cluster.create_topic();
    cluster.write_during(&mut states, |_| {});
    let copied = (cluster.leader() + 1) % 3;
    let (data, id) = (cluster.data(copied), cluster.nodes[copied]["id"].clone());
    let [copy, newest] = ["copy", "newest"].map(|name| data.with_file_name(name));
    cluster.kill_and_wait(copied);
    copy_directory(&data, &copy);
    cluster.restart(copied);
    cluster.connect(copied);
    cluster.write_during(&mut states, |_| {});
    cluster.kill_and_wait(copied);
    std::fs::rename(&data, &newest).unwrap();
    std::fs::rename(&copy, &data).unwrap();

    cluster.restart(copied);
    let mut answer = (0, String::new());
    eventually("the old copy takes no part", || {
        answer = cluster.get(copied, "/readyz");
        answer.0 == 503 && answer.1.contains("old copy")
    });
    let named = format!("node {id} runs from an old copy of its data");
    assert!(answer.1.contains(&named), "{}", answer.1);
    assert!(
        cluster.try_connect(copied).is_none(),
        "it serves no clients"
    );
    cluster.write_during(&mut states, |_| {});
    cluster.check(&mut states);
    let kept_out = format!("telpher_member_is_kept_out{{peer=\"{id}\"}} 1");
    for node in (0..3).filter(|node| *node != copied) {
        eventually("each other member keeps it out", || {
            cluster.get(node, "/metrics").1.contains(&kept_out)
        });
    }

    // With the directory that it had, it is a member as before.
    cluster.kill_and_wait(copied);
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(&newest, &data).unwrap();
    cluster.restart(copied);
    cluster.connect(copied);
    assert_eq!(cluster.get(copied, "/readyz").0, 200);
    cluster.check(&mut states);
}
