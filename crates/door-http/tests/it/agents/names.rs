//! Names, limits and halts of clients that use agents over HTTP.

use serde_json::json;

use super::Worker;
use crate::name_tokens::NameTokens;
use crate::{Answer, Door, client};

#[tokio::test]
async fn a_client_speaks_and_takes_only_under_its_own_name() {
    let door = Door::open().await;
    let address = NameTokens::serve(&door).await;
    let ask = async |path: &str, headers: &[(&str, &str)]| -> Answer {
        let path = format!("/v1/acme/demo/agents/{path}");
        client::ask(
            address,
            "POST",
            &path,
            headers,
            b"{\"leases\":[\"7-0000000000000000\"]}",
        )
        .await
    };
    let bob = ("authorization", "Bearer acme/demo/bob");
    let json = ("content-type", "application/json");
    ask("job/write", &[]).await.problem(401, "unauthenticated");
    let worker = Worker::subscribe(&door, "acme/demo/job");
    assert_eq!(ask("job/send", &[bob]).await.status, 200);
    assert_eq!(worker.next().await.source.as_deref(), Some("acme/demo/bob"));
    let claimed = ("telpher-name", "acme/demo/alice");
    ask("job/send", &[bob, claimed])
        .await
        .problem(403, "denied");
    let invalid = ("telpher-name", "a/b");
    ask("job/send", &[bob, invalid])
        .await
        .problem(400, "invalid_argument");
    for path in ["take", "ack", "nack", "renew"] {
        let path = format!("job/mailbox/{path}");
        ask(&path, &[bob, json]).await.problem(403, "denied");
    }
    assert_eq!(ask("bob/mailbox/take", &[bob]).await.status, 200);
    // Anybody may write to a mailbox.
    assert_eq!(ask("job/write", &[bob]).await.status, 201);
}

#[tokio::test]
async fn a_halted_client_is_refused_but_answers_what_it_has_taken() {
    let door = Door::open().await;
    let _worker = Worker::subscribe(&door, "acme/demo/upper");
    let name = [("telpher-name", "acme/demo/bob")];
    let ask = async |path: &str| {
        let path = format!("/v1/acme/demo/agents/{path}");
        door.ask_with("POST", &path, &name, b"x").await
    };
    assert_eq!(ask("job/write").await.status, 201);
    let taken = ask("job/mailbox/take").await.json();
    let halt = json!({"prefix": "acme/demo/bob", "reason": "enough"});
    assert_eq!(door.ask("POST", "/v1/halt", &halt).await.status, 200);
    for path in [
        "upper/request",
        "upper/send",
        "upper/write",
        "upper/write?durability=memory",
    ] {
        ask(path).await.problem(403, "denied");
    }
    let halt = json!({"prefix": "default/default/anonymous", "reason": "enough"});
    assert_eq!(door.ask("POST", "/v1/halt", &halt).await.status, 200);
    ask("job/mailbox/take").await.problem(403, "denied");
    let leases = json!({"leases": [taken["messages"][0]["lease"]]});
    let acked = door
        .ask("POST", "/v1/acme/demo/agents/job/mailbox/ack", &leases)
        .await;
    assert_eq!(acked.status, 200, "{acked:?}");
}

#[tokio::test]
async fn a_member_of_a_cluster_refuses_agents_and_serves_streams() {
    let door = Door::of_cluster().await;
    for path in ["request", "send", "write", "mailbox/take", "mailbox/ack"] {
        let path = format!("/v1/acme/demo/agents/job/{path}");
        let refused = door
            .ask("POST", &path, &json!({"leases": ["7-0000000000000000"]}))
            .await;
        let detail = refused.problem(501, "unsupported");
        assert!(
            detail.starts_with("a cluster serves topics and streams only"),
            "{detail}"
        );
    }
    let records = "/v1/acme/demo/streams/log/records";
    let batch = json!({"records": [{"body": "x"}]});
    assert_eq!(door.ask("POST", records, &batch).await.status, 201);
    assert_eq!(door.get(records).await.json()["records"][0]["body"], "x");
}
