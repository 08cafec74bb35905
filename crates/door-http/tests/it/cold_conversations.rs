//! Conversations that are not in memory: only requests that need one wait for the disk.

use std::sync::Arc;

use door_testing::{Gate, Gated, ThreadPerWork, until};
use journal::disk::SimulatedDisk;
use node::StoreOptions;
use serde_json::json;

use crate::{Door, text_batch};

const CONVERSATION: &str = "/v1/conversations/c-1";

/// A door that has just been opened, with two messages in `c-1`, all of it on a disk behind a gate.
async fn started() -> (Door, Arc<Gate>) {
    let disk = SimulatedDisk::new(7);
    let door = Door::on(disk.clone(), StoreOptions::default(), 1).await;
    for text in ["one", "two"] {
        let message = json!({"id": text, "role": "user", "content": text});
        let path = format!("{CONVERSATION}/messages");
        let answer = door
            .ask("POST", &path, &json!({"messages": [message]}))
            .await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    door.node.messaging().close_all();
    disk.crash(&mut fastrand::Rng::with_seed(1));
    let gate = Arc::new(Gate::default());
    let front = Arc::new(Gated {
        disk: disk.clone(),
        gate: gate.clone(),
    });
    let door = Door::behind(front, disk, StoreOptions::default(), 2, 4 << 20).await;
    door.offload.switch_to(Arc::new(ThreadPerWork::default()));
    (door, gate)
}

/// All connections of a test are served by its one thread.
#[tokio::test]
async fn an_append_that_loads_a_conversation_from_disk_blocks_no_other() {
    let (door, gate) = started().await;
    gate.shut();
    let door = Arc::new(door);
    let append = {
        let door = door.clone();
        tokio::spawn(async move { door.append_text("c-1", "three").await })
    };
    until("a read to wait", || gate.waiting() > 0).await;
    assert_eq!(door.append_text("c-2", "hi").await, 1);
    assert!(!append.is_finished());
    gate.open();
    assert_eq!(append.await.unwrap(), 3);
}

#[tokio::test]
async fn deduplication_that_reads_ids_from_disk_blocks_no_other() {
    let (door, gate) = started().await;
    // It is loaded, but for the ids and the text of its older messages.
    assert_eq!(door.get(CONVERSATION).await.status, 200);
    gate.shut();
    let door = Arc::new(door);
    let retry = {
        let door = door.clone();
        let message = json!({"id": "one", "role": "user", "content": "one"});
        let body = json!({"messages": [message]});
        tokio::spawn(async move {
            let path = format!("{CONVERSATION}/messages");
            door.ask("POST", &path, &body).await
        })
    };
    until("a read to wait", || gate.waiting() > 0).await;
    assert_eq!(door.append_text("c-2", "hi").await, 1);
    // Not even in the same conversation.
    assert_eq!(door.append_text("c-1", "three").await, 3);
    assert!(!retry.is_finished());
    gate.open();
    let retry = retry.await.unwrap();
    assert_eq!(
        (retry.status, retry.json()["first_seq"].as_u64()),
        (200, Some(1))
    );
}

#[tokio::test]
async fn an_import_that_compares_messages_on_disk_blocks_no_other() {
    let (door, gate) = started().await;
    assert_eq!(door.get(CONVERSATION).await.status, 200);
    gate.shut();
    let door = Arc::new(door);
    let importing = {
        let door = door.clone();
        let lines = "{\"conversation\":{\"name\":\"c-1\"}}\n\
                     {\"id\":\"one\",\"role\":\"user\",\"content\":\"one\"}\n\
                     {\"id\":\"new\",\"role\":\"user\",\"content\":\"new\"}\n";
        let typed = [("Content-Type", "application/jsonl")];
        tokio::spawn(async move {
            let path = "/v1/import";
            crate::client::ask(door.address, "POST", path, &typed, lines.as_bytes()).await
        })
    };
    until("a read to wait", || gate.waiting() > 0).await;
    assert_eq!(door.append_text("c-2", "hi").await, 1);
    assert!(!importing.is_finished());
    gate.open();
    let imported = importing.await.unwrap();
    assert_eq!(imported.status, 200, "{imported:?}");
    let expected = json!({"conversations": 1, "appended": 1, "deduplicated": 1});
    assert_eq!(imported.json(), expected);
}

#[tokio::test]
async fn expiry_of_a_conversation_is_checked_without_reading_the_disk() {
    let (door, gate) = started().await;
    let kept = json!({"ttl_s": 3_600});
    assert_eq!(door.ask("PUT", CONVERSATION, &kept).await.status, 200);
    // Its messages are on the disk and nowhere else.
    gate.shut();
    assert_eq!(door.get(CONVERSATION).await.json()["head_seq"], 2);
    door.pass_ms(3_600_000);
    door.get(CONVERSATION).await.problem(410, "gone");
    gate.open();
}

#[tokio::test]
async fn a_follower_that_reads_from_disk_blocks_no_other() {
    let (door, gate) = started().await;
    assert_eq!(door.get(CONVERSATION).await.status, 200);
    gate.shut();
    let mut events = door.follow("c-1", "0").await;
    until("a read to wait", || gate.waiting() > 0).await;
    let path = "/v1/conversations/c-2/messages";
    assert_eq!(door.ask("POST", path, &text_batch("hi")).await.status, 201);
    gate.open();
    for seq in [1, 2] {
        let event = events.next().await;
        assert_eq!(event.json()["seq"], seq);
    }
}
