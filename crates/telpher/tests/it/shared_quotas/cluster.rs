//! Quotas that several nodes share in a Redis Cluster of three masters, one of which is killed.

use serde_json::{Value, json};

use super::{Load, NODES, place, read_quota, remaining, serve_with};
use crate::quotas::HttpConnection;
use crate::redis::Cluster;
use crate::support::{Node, eventually};

fn take(node: &Node, cost: u64) -> (u16, Value) {
    let body = json!({"subject": "acme/load/hot", "cost": cost}).to_string();
    let mut asking = HttpConnection::open(node.url("http"));
    asking.ask("POST", "/v1/take", &body).unwrap()
}

#[test]
fn redis_cluster_master_killed_under_load_admits_no_credit_twice() {
    const CAPACITY: u64 = 20_000;
    let (mut cluster, place) = (Cluster::started(), place(CAPACITY, "0/s", "deny"));
    let nodes = ["a", "b"].map(|name| serve_with(&place, &cluster.urls(), name, ""));
    let loads = nodes.each_ref().map(Load::start);
    eventually("all take", || {
        loads.iter().all(|load| load.admitted() > 100)
    });
    cluster.master_of("acme").crash();
    let before = loads.each_ref().map(Load::unavailable);
    eventually("all are told so", || {
        let now = loads.each_ref().map(Load::unavailable);
        now.iter().zip(before).all(|(now, before)| *now > before)
    });
    let mut admitted: u64 = loads.into_iter().map(Load::end).sum();
    for node in &nodes {
        eventually("it has nothing leased any more and is told so", || {
            let (status, answer) = take(node, 1);
            admitted += u64::from(status == 200);
            // Takes on the other masters succeed in between and show the store as connected.
            let is_away = node.metric("telpher_quota_store_connected") == 0;
            is_away && (status, &answer["degraded"]) == (503, &json!(true))
        });
        assert!(node.metric("telpher_quota_degraded_total") > 0);
        assert!(node.metric("telpher_quota_store_errors_total") > 0);
    }
    cluster.crashed().start();
    cluster.is_whole();
    let loads = nodes.each_ref().map(Load::start);
    eventually("nothing is left", || {
        nodes.iter().all(|node| remaining(node) == Some(0))
    });
    admitted += loads.into_iter().map(Load::end).sum::<u64>();
    // At most the leases and the takes without an answer are lost.
    assert!(
        (CAPACITY / 2..=CAPACITY).contains(&admitted),
        "{admitted} of {CAPACITY}"
    );
    for node in nodes {
        node.stop().expect(0);
    }
}

#[test]
fn node_admits_its_share_as_debt_while_a_cluster_master_is_down() {
    const CAPACITY: u64 = 600;
    let (mut cluster, place) = (Cluster::started(), place(CAPACITY, "300/s", "degrade"));
    let nodes = ["a", "b"].map(|name| serve_with(&place, &cluster.urls(), name, ""));
    for node in &nodes {
        let (status, taken) = take(node, 50);
        assert_eq!((status, &taken["degraded"]), (200, &Value::Null), "{taken}");
    }
    cluster.master_of("acme").crash();
    let share = CAPACITY / NODES;
    for node in &nodes {
        eventually("its share has come back", || {
            let (status, answer) = take(node, share);
            assert_eq!(answer["degraded"], true, "{answer}");
            status == 200
        });
        let (status, answer) = take(node, share + 1);
        assert_eq!((status, &answer["degraded"]), (503, &json!(true)));
        assert_eq!(read_quota(node).0, 503);
    }
    cluster.crashed().start();
    cluster.is_whole();
    for node in &nodes {
        eventually("it is charged", || {
            node.metric("telpher_quota_store_owed") == 0 && remaining(node).is_some()
        });
    }
    for node in nodes {
        node.stop().expect(0);
    }
}
