//! The console and the administration of groups at a member that does not lead.

use serde_json::{Value, json};

use super::{Cluster, ask};
use crate::support::eventually;

/// Posts JSON at a node; returns the status and the document.
fn post(cluster: &Cluster, node: usize, path: &str, body: &Value) -> (u16, Value) {
    let (address, body) = (cluster.address(node, "http"), body.to_string());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let (status, body) = ask(address, &(head + &body)).unwrap_or_default();
    (status, serde_json::from_str(&body).unwrap_or_default())
}

#[test]
fn console_and_groups_work_at_a_member_that_does_not_lead() {
    let cluster = Cluster::start();
    let leader = cluster.leader();
    let (follower, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let topic = json!({"name": "orders", "partitions": 1});
    eventually("a topic is created at a follower", || {
        post(&cluster, follower, "/v1/topics", &topic).0 == 201
    });
    let records = json!([{"value": "a"}, {"value": "b"}]);
    let appended = post(&cluster, follower, "/v1/topics/orders/records", &records);
    assert_eq!(appended.0, 200, "{}", appended.1);
    let reset = json!({"topic": "orders", "offset": 1});
    let made = post(&cluster, follower, "/v1/groups/billing/offsets", &reset);
    assert_eq!(made.0, 200, "{}", made.1);
    let (status, group) = cluster.get(leader, "/v1/groups/billing");
    let group: Value = serde_json::from_str(&group).unwrap();
    assert_eq!(
        (status, &group["partitions"][0]["committed"]),
        (200, &json!(1))
    );

    let (status, page) = cluster.get(follower, "/ui/");
    assert_eq!(status, 200, "{page}");
    let (status, members) = cluster.get(follower, "/v1/cluster");
    let members: Value = serde_json::from_str(&members).unwrap();
    assert_eq!(
        (status, &members["node"]),
        (200, &json!(cluster.id(leader)))
    );
    let listed = members["members"].as_array().unwrap();
    let of_follower = listed.iter().find(|it| it["id"] == cluster.id(follower));
    assert_eq!(
        of_follower.unwrap()["http"],
        cluster.address(follower, "http")
    );

    // In this order no other member is elected in between.
    cluster.kill_and_wait(other);
    cluster.kill_and_wait(leader);
    eventually("the follower says that there is no leader", || {
        let (status, problem) = cluster.get(follower, "/v1/topics");
        let reasons = ["no member leads", "the member that leads does not answer"];
        status == 503 && reasons.iter().any(|it| problem.contains(it))
    });
    let (status, without_leader) = cluster.get(follower, "/ui/");
    assert_eq!(
        (status, without_leader),
        (200, page),
        "the console is there"
    );
}
