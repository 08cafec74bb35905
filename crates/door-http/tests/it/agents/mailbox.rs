//! Mailboxes over HTTP: writes, takes with a lease, and their answers.

use door_testing::until;
use messaging::mailboxes::Part;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Worker;
use crate::Door;
use node::StoreOptions;

const AGENT: &str = "/v1/acme/demo/agents/job";

async fn write(door: &Door, query: &str, body: &[u8]) -> Value {
    let path = format!("{AGENT}/write{query}");
    let headers = [("content-type", "text/plain")];
    let answer = door.ask_with("POST", &path, &headers, body).await;
    assert!(matches!(answer.status, 200 | 201), "{answer:?}");
    answer.json()
}

async fn take(door: &Door, query: &str) -> Vec<Value> {
    let path = format!("{AGENT}/mailbox/take{query}");
    let answer = door.ask_with("POST", &path, &[], b"").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["messages"].as_array().unwrap().clone()
}

async fn answer(door: &Door, how: &str, body: Value) -> crate::Answer {
    door.ask("POST", &format!("{AGENT}/mailbox/{how}"), &body)
        .await
}

fn lease(message: &Value) -> &str {
    message["lease"].as_str().unwrap()
}

#[tokio::test]
async fn a_written_message_is_taken_and_acknowledged_over_http() {
    let door = Door::open().await;
    let id = "?id=00000000000000000000000000000007&method=resize&ttl_ms=60000";
    assert_eq!(
        write(&door, id, b"one").await,
        json!({"offset": 0, "duplicate": false})
    );
    assert_eq!(
        write(&door, id, b"one").await,
        json!({"offset": 0, "duplicate": true})
    );
    write(&door, "", b"\xff").await;
    let taken = take(&door, "?max=10&lease_ms=5000").await;
    assert_eq!(taken.len(), 2);
    let first = &taken[0];
    for (member, value) in [
        ("body", json!("one")),
        ("method", json!("resize")),
        ("offset", json!(0)),
        ("delivery", json!(1)),
        ("metadata", json!({"content-type": "text/plain"})),
    ] {
        assert_eq!(first[member], value, "{member}");
    }
    assert_eq!(taken[1]["body_base64"], "/w==");
    let lasts_ms =
        first["lease_until_ms"].as_u64().unwrap() - first["written_ms"].as_u64().unwrap();
    assert_eq!(lasts_ms, 5_000);
    assert!(take(&door, "?max=10").await.is_empty());
    let leases = json!({"leases": [lease(first), lease(&taken[1])]});
    let acked = answer(&door, "ack", leases.clone()).await;
    assert_eq!((acked.status, acked.json()), (200, json!({"answered": 2})));
    door.pass_ms(60_000);
    door.node.sweep();
    assert!(take(&door, "?max=10").await.is_empty());
    // A second answer finds no lease.
    let again = answer(&door, "ack", leases.clone()).await;
    again.problem(409, "lease_expired");
    assert_eq!(again.json()["ended"], leases["leases"]);
    let memory = write(&door, "?durability=memory", b"x").await;
    assert_eq!(memory, json!({"copies": 0}));
}

#[tokio::test]
async fn a_lease_that_runs_out_gives_the_message_to_another_taker() {
    let door = Door::open().await;
    write(&door, "", b"one").await;
    let first = take(&door, "?lease_ms=1000").await.remove(0);
    door.pass_ms(999);
    door.node.sweep();
    assert!(take(&door, "").await.is_empty());
    door.pass_ms(1);
    // Before the node notices, the lease has ended already.
    let late = answer(&door, "ack", json!({"leases": [lease(&first)]})).await;
    late.problem(409, "lease_expired");
    door.node.sweep();
    let second = take(&door, "?instance=other&lease_ms=1000").await.remove(0);
    assert_eq!(
        (&second["offset"], &second["delivery"]),
        (&json!(0), &json!(2))
    );
    for how in ["ack", "nack", "renew"] {
        let mut body = json!({"leases": [lease(&first)]});
        if how == "renew" {
            body["lease_ms"] = json!(60_000);
        }
        answer(&door, how, body).await.problem(409, "lease_expired");
    }
    // What the late answers said did not confirm the delivery of the other taker.
    door.pass_ms(1_000);
    door.node.sweep();
    let third = take(&door, "").await.remove(0);
    assert_eq!(third["delivery"], 3);
    let body = json!({"leases": [lease(&third), lease(&second)]});
    let partly = answer(&door, "ack", body).await;
    partly.problem(409, "lease_expired");
    assert_eq!(partly.json()["ended"], json!([lease(&second)]));
    door.pass_ms(60_000);
    door.node.sweep();
    assert!(take(&door, "").await.is_empty());
}

#[tokio::test]
async fn a_lease_is_renewed_and_a_returned_message_waits_for_its_delay() {
    let door = Door::open().await;
    write(&door, "", b"one").await;
    let taken = take(&door, "?lease_ms=1000").await.remove(0);
    for _ in 0..3 {
        door.pass_ms(900);
        door.node.sweep();
        let body = json!({"leases": [lease(&taken)], "lease_ms": 1_000});
        assert_eq!(answer(&door, "renew", body).await.status, 200);
    }
    let body = json!({"leases": [lease(&taken)], "delay_ms": 5_000});
    assert_eq!(answer(&door, "nack", body).await.status, 200);
    door.pass_ms(4_999);
    door.node.sweep();
    assert!(take(&door, "").await.is_empty());
    door.pass_ms(1);
    let taken = take(&door, "").await.remove(0);
    assert_eq!(taken["delivery"], 2);
    let body = json!({"leases": [lease(&taken)], "delay_ms": 0});
    assert_eq!(answer(&door, "nack", body).await.status, 200);
    assert_eq!(take(&door, "").await[0]["delivery"], 3);
}

#[tokio::test]
async fn a_take_waits_for_the_first_message() {
    let door = Door::open().await;
    let waiting = take(&door, "?wait_ms=20000");
    let writing = async {
        let messaging = door.node.messaging();
        let mailboxes = messaging.mailboxes().unwrap();
        until("the taker", || mailboxes.taker_count("acme/demo/job") == 1).await;
        write(&door, "", b"one").await
    };
    let (taken, _) = tokio::join!(waiting, writing);
    assert_eq!(taken[0]["body"], "one");
    // A wait without a message ends, and leaves nothing behind.
    assert!(take(&door, "?wait_ms=1").await.is_empty());
    write(&door, "", b"two").await;
    assert_eq!(take(&door, "").await[0]["body"], "two");
}

#[tokio::test]
async fn a_taker_that_disconnected_is_lent_nothing() {
    let door = Door::open().await;
    let mut stream = TcpStream::connect(door.address).await.unwrap();
    let head = format!(
        "POST {AGENT}/mailbox/take?wait_ms=60000&lease_ms=43200000 HTTP/1.1\r\nhost: localhost\r\n\
         content-length: 0\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mailboxes = door.node.messaging().mailboxes().unwrap().clone();
    until("the taker", || mailboxes.taker_count("acme/demo/job") == 1).await;
    drop(stream);
    until("its end", || mailboxes.taker_count("acme/demo/job") == 0).await;
    write(&door, "", b"one").await;
    let taken = take(&door, "").await;
    assert_eq!(
        (&taken[0]["body"], &taken[0]["delivery"]),
        (&json!("one"), &json!(1))
    );
}

#[tokio::test]
async fn subscribers_and_takers_share_a_mailbox() {
    let door = Door::open().await;
    let mut worker = Worker::with_calls(&door, "acme/demo/job", 1);
    // Each sender's messages go to one receiver while they are unanswered.
    for sender in ["a", "b", "c", "d"] {
        let name = format!("acme/demo/{sender}");
        let headers = [("telpher-name", name.as_str())];
        let path = format!("{AGENT}/write");
        let answer = door
            .ask_with("POST", &path, &headers, sender.as_bytes())
            .await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let delivery = worker.next().await;
    assert_eq!((delivery.kind, &*delivery.body), ("delivery", &b"a"[..]));
    let taken = take(&door, "?max=10").await;
    let bodies: Vec<_> = taken
        .iter()
        .map(|it| it["body"].as_str().unwrap())
        .collect();
    assert_eq!(bodies, ["b", "c", "d"]);
    assert_eq!(taken[0]["sender"], "acme/demo/b");
    // The subscriber has room again, and the taker returns one.
    worker.reply(delivery.ticket, false, &[], b"");
    let body = json!({"leases": [lease(&taken[1])], "delay_ms": 0});
    assert_eq!(answer(&door, "nack", body).await.status, 200);
    assert_eq!(worker.next().await.body, b"c");
    assert!(worker.is_idle());
}

#[tokio::test]
async fn messages_of_one_sender_go_to_one_instance_until_they_are_answered() {
    let door = Door::open().await;
    for body in ["one", "two", "three"] {
        let headers = [("telpher-name", "acme/demo/boss")];
        let path = format!("{AGENT}/write");
        door.ask_with("POST", &path, &headers, body.as_bytes())
            .await;
    }
    let first = take(&door, "?instance=w1").await.remove(0);
    assert_eq!(first["body"], "one");
    assert!(take(&door, "?instance=w2").await.is_empty());
    let second = take(&door, "?instance=w1").await.remove(0);
    assert_eq!(second["body"], "two");
    let body = json!({"leases": [lease(&first), lease(&second)]});
    assert_eq!(answer(&door, "ack", body).await.status, 200);
    assert_eq!(take(&door, "?instance=w2").await[0]["body"], "three");
}

#[tokio::test]
async fn a_lease_ends_with_the_node_and_its_message_is_delivered_again() {
    let door = Door::open().await;
    write(&door, "", b"one").await;
    write(&door, "", b"two").await;
    let taken = take(&door, "?max=2&lease_ms=43200000").await;
    let body = json!({"leases": [lease(&taken[1])]});
    assert_eq!(answer(&door, "ack", body).await.status, 200);
    let disk = door.disk.clone();
    drop(door);
    disk.crash(&mut fastrand::Rng::with_seed(7));
    let door = Door::on(disk, StoreOptions::default(), 2).await;
    let late = answer(&door, "ack", json!({"leases": [lease(&taken[0])]})).await;
    late.problem(409, "lease_expired");
    let again = take(&door, "?max=10").await;
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!(again[0]["body"], "one");
    let late = answer(&door, "ack", json!({"leases": [lease(&taken[0])]})).await;
    late.problem(409, "lease_expired");
    let body = json!({"leases": [lease(&again[0])]});
    assert_eq!(answer(&door, "ack", body).await.status, 200);
}

#[tokio::test]
async fn invalid_takes_and_answers_are_refused() {
    let door = Door::open().await;
    for query in [
        "max=0",
        "max=257",
        "wait_ms=60001",
        "lease_ms=0",
        "lease_ms=43200001",
        "instance=a/b",
        "limit=7",
    ] {
        let path = format!("{AGENT}/mailbox/take?{query}");
        let answer = door.ask_with("POST", &path, &[], b"").await;
        answer.problem(400, "invalid_argument");
    }
    for (how, body) in [
        ("ack", json!({"leases": []})),
        ("ack", json!({"leases": ["7"]})),
        ("ack", json!({"leases": ["7-00"]})),
        ("ack", json!({"leases": ["+7-0000000000000000"]})),
        ("ack", json!({"lease": "x"})),
        (
            "nack",
            json!({"leases": ["7-0000000000000000"], "delay_ms": 86_400_001}),
        ),
        (
            "renew",
            json!({"leases": ["7-0000000000000000"], "lease_ms": 0}),
        ),
    ] {
        answer(&door, how, body)
            .await
            .problem(400, "invalid_argument");
    }
    let unknown = json!({"leases": ["7-0000000000000000"]});
    answer(&door, "ack", unknown)
        .await
        .problem(409, "lease_expired");
    for query in ["id=7", "durability=tape", "durability=memory&ttl_ms=1"] {
        let path = format!("{AGENT}/write?{query}");
        let answer = door.ask_with("POST", &path, &[], b"").await;
        answer.problem(400, "invalid_argument");
    }
    let own = "/v1/telpher/system/agents/node/write";
    door.ask_with("POST", own, &[], b"")
        .await
        .problem(403, "denied");
}

#[tokio::test]
async fn a_lease_of_a_purged_message_answers_nothing() {
    let door = Door::open().await;
    write(&door, "", b"one").await;
    let taken = take(&door, "?lease_ms=43200000").await.remove(0);
    let mailboxes = door.node.messaging().mailboxes().unwrap();
    assert_eq!(mailboxes.purge("acme/demo/job", Part::All), Ok(1));
    let body = json!({"leases": [lease(&taken)], "lease_ms": 1_000});
    answer(&door, "renew", body)
        .await
        .problem(409, "lease_expired");
    door.node.sweep();
    let body = json!({"leases": [lease(&taken)]});
    answer(&door, "ack", body)
        .await
        .problem(409, "lease_expired");
}
