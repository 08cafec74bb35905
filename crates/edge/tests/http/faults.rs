//! What the disk does wrong, as a client sees it.

use journal::disk::simulated::{Call, Fault, Kind};

use crate::{Door, said};

const PATH: &str = "/v1/conversations/c-1/messages";

#[tokio::test]
async fn a_failed_sync_is_no_acknowledgement_and_ends_writing() {
    let door = Door::open().await;
    door.say("c-1", "kept").await;
    door.disk
        .fail_once(Fault::Broken, |call: &Call<'_>| call.kind == Kind::SyncData);
    let answer = door.ask("POST", PATH, &said("lost")).await;
    answer.problem(503, "unconfirmed");
    let answer = door.ask("POST", PATH, &said("refused")).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(door.get("/readyz").await.status, 503);
    // What was acknowledged is still read.
    let page = door.get(PATH).await.json();
    assert_eq!(page["head_seq"], 1);
    assert_eq!(page["messages"][0]["parts"][0]["text"], "kept");
}

#[tokio::test]
async fn a_node_that_keeps_nothing_has_no_conversations() {
    let ports = node::Ports {
        clock: std::sync::Arc::new(crate::TestClock::default()),
        entropy: std::sync::Arc::new(crate::Counting(1.into())),
    };
    let node = node::Handle::new(node::Limits::default(), ports);
    let address = crate::serve(&node).await;
    let answer = crate::client::ask(address, "GET", PATH, &[], b"").await;
    answer.problem(501, "unsupported");
}
