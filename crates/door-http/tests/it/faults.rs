//! Disk faults as a client sees them.

use journal::disk::simulated::{Call, Fault, Kind};

use crate::{Door, text_batch};

const PATH: &str = "/v1/conversations/c-1/messages";

#[tokio::test]
async fn a_failed_sync_is_unconfirmed_and_later_writes_are_refused() {
    let door = Door::open().await;
    door.append_text("c-1", "kept").await;
    door.disk
        .fail_once(Fault::Broken, |call: &Call<'_>| call.kind == Kind::SyncData);
    let answer = door.ask("POST", PATH, &text_batch("lost")).await;
    answer.problem(503, "unconfirmed");
    let answer = door.ask("POST", PATH, &text_batch("refused")).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(door.get("/readyz").await.status, 503);
    // What was acknowledged is still read.
    let page = door.get(PATH).await.json();
    assert_eq!(page["head_seq"], 1);
    assert_eq!(page["messages"][0]["parts"][0]["text"], "kept");
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_space_is_freed_and_serves_reads() {
    let door = Door::open().await;
    door.append_text("c-1", "kept").await;
    let large = text_batch(&"x".repeat(500_000));
    door.disk.set_capacity(door.disk.used() + (1 << 20));
    let refused = loop {
        let answer = door.ask("POST", PATH, &large).await;
        if answer.status != 201 {
            break answer;
        }
    };
    let detail = refused.problem(503, "unavailable");
    assert!(detail.contains("disk"), "{detail}");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Acknowledged messages are still read, and watchers continue.
    let page = door.get(&format!("{PATH}?limit=1")).await.json();
    assert_eq!(page["messages"][0]["parts"][0]["text"], "kept");
    let head = page["head_seq"].as_u64().unwrap();
    let mut events = door.follow("c-1", "1").await;
    assert_eq!(events.messages(1, head).await.len() as u64, head - 1);
    // Space is freed. The node retries the disk from time to time.
    door.disk.set_capacity(u64::MAX);
    let taken = loop {
        door.pass_ms(60_000);
        let answer = door.ask("POST", PATH, &large).await;
        if answer.status == 201 {
            break answer.json();
        }
        answer.problem(503, "unavailable");
    };
    assert_eq!(taken["first_seq"], head + 1);
    assert_eq!(events.messages(head, head + 1).await.len(), 1);
}

#[tokio::test]
async fn a_flipped_bit_in_an_old_segment_is_reported_and_never_served() {
    let door = Door::open().await;
    door.append_text("c-2", "elsewhere").await;
    door.append_text("c-1", &"Q".repeat(50_000)).await;
    for _ in 0..12 {
        door.append_text("c-1", &"x".repeat(900_000)).await;
    }
    // Nothing of it is in the memory of the next node.
    let disk = door.disk.fork();
    let mut flipped = Vec::new();
    for (path, _) in disk.files() {
        let (bytes, _) = disk.images(&path).unwrap();
        let found = bytes
            .windows(1_000)
            .position(|it| it.iter().all(|byte| *byte == b'Q'));
        if let Some(at) = found {
            disk.flip(&path, (at as u64 + 100) * 8).unwrap();
            flipped.push(path);
        }
    }
    assert!(!flipped.is_empty());
    let door = Door::on(disk, node::StoreOptions::default(), 2).await;
    let answer = door.get(&format!("{PATH}?limit=1")).await;
    let detail = answer.problem(500, "internal");
    assert!(flipped.iter().any(|path| detail.contains(path)), "{detail}");
    let mut events = door.follow("c-1", "0").await;
    let event = events.next().await;
    assert_eq!(
        (event.kind.as_str(), &event.json()["code"]),
        ("error", &"internal".into())
    );
    // What is not damaged is there, and others go on.
    let page = door.get(&format!("{PATH}?after=1&limit=1")).await.json();
    assert_eq!(page["messages"][0]["seq"], 2);
    assert_eq!(door.append_text("c-2", "still here").await, 2);
}

#[tokio::test]
async fn a_node_without_storage_answers_conversations_with_501() {
    let clock = std::sync::Arc::new(crate::ManualClock::default());
    let ports = door_testing::ports(clock, 1);
    let node = node::Node::open(node::Parts::in_memory(ports)).unwrap();
    let address = crate::serve(&node).await;
    let answer = crate::client::ask(address, "GET", PATH, &[], b"").await;
    answer.problem(501, "unsupported");
}
