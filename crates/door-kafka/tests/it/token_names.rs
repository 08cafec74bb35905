//! Names of tokens over Kafka: allowed user names, and topics that may be deleted.

use std::sync::Arc;

use access::tokens::{ENTROPY_SIZE, Token};
use door::{Gate, Pass, Refused, Role};
use door_kafka::NoUsers;
use kafka::{ErrorCode, alter_configs, delete_records, delete_topics};

use crate::authentication::{choose, send_sasl};
use crate::{Bench, Client};

/// Knows the tokens `pay`, for names of `acme/pay/`, and `orders`, for its own name.
struct Tokens;

impl Gate for Tokens {
    fn admit(&self, token: &str) -> Result<Pass, Refused> {
        let names = match token {
            "pay" => vec!["acme/pay/*".parse().unwrap()],
            "orders" => Vec::new(),
            "" => return Err(Refused::Missing),
            _ => return Err(Refused::Unknown),
        };
        let entropy = [1; ENTROPY_SIZE];
        let (_, token) = Token::generate(token, Role::Agent, Some(names.into()), 0, &entropy);
        Ok(Pass::of_token(Arc::new(token)))
    }
}

async fn log_in(client: &mut Client, name: &str, token: &str) -> (ErrorCode, String) {
    choose(client, "PLAIN").await;
    let told = send_sasl(client, format!("\0{name}\0{token}").as_bytes()).await;
    (told.error_code, told.error_message.unwrap_or_default())
}

#[tokio::test]
async fn a_user_name_with_a_token_must_be_allowed_by_the_token() {
    let bench = Bench::with(Arc::new(Tokens), Arc::new(NoUsers));
    for (name, expected) in [
        ("pay", "acme/pay/pay"),
        ("acme/pay/one", "acme/pay/one"),
        // No name of an agent: it claims nothing.
        ("not a name", "acme/pay/pay"),
    ] {
        let mut client = bench.connect();
        let told = log_in(&mut client, name, "pay").await;
        assert_eq!(told.0, ErrorCode::None, "{name}: {}", told.1);
        let connections = bench.node.messaging().connections();
        let shown = connections.last().unwrap();
        assert_eq!(shown.principal, expected);
    }
    for name in ["ann", "acme/other/one", "telpher/system/node"] {
        let mut client = bench.connect();
        let (code, message) = log_in(&mut client, name, "pay").await;
        assert_eq!(code, ErrorCode::SaslAuthenticationFailed, "{name}");
        assert!(message.starts_with("Authentication failed: "), "{message}");
        assert!(client.is_closed().await);
    }
}

#[tokio::test]
async fn changing_or_deleting_a_topic_needs_a_token_for_its_name() {
    let mut bench = Bench::with(Arc::new(Tokens), Arc::new(NoUsers));
    let mut client = bench.connect();
    assert_eq!(
        log_in(&mut client, "orders", "orders").await.0,
        ErrorCode::None
    );
    for name in ["orders", "others"] {
        client.create_topic(name).await;
        bench.connect().flush_requests().await;
        bench.sync();
        client.created().await;
    }
    let resource = |name: &str| alter_configs::Resource {
        resource_type: 2,
        resource_name: name.to_owned(),
        ..Default::default()
    };
    let altering = alter_configs::Request {
        resources: vec![resource("others")],
        ..Default::default()
    };
    let told = client.ask(1, &altering).await;
    let code = told.responses[0].error_code;
    assert_eq!(code, ErrorCode::TopicAuthorizationFailed);
    let partition = delete_records::Partition {
        partition_index: 0,
        offset: 0,
    };
    let topic = delete_records::Topic {
        name: "others".to_owned(),
        partitions: vec![partition],
    };
    let removing = delete_records::Request {
        topics: vec![topic],
        timeout_ms: 1_000,
    };
    let told = client.ask(1, &removing).await;
    let code = told.topics[0].partitions[0].error_code;
    assert_eq!(code, ErrorCode::TopicAuthorizationFailed);

    let names = ["orders", "others", "neither"].map(str::to_owned);
    let deleting = delete_topics::Request {
        topic_names: names.to_vec(),
        timeout_ms: 1_000,
        ..Default::default()
    };
    client.send(5, &deleting).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, told) = client.receive::<delete_topics::Request>(5).await;
    let codes: Vec<_> = told.responses.iter().map(|it| it.error_code).collect();
    let expected = [
        ErrorCode::None,
        ErrorCode::TopicAuthorizationFailed,
        ErrorCode::UnknownTopicOrPartition,
    ];
    assert_eq!(codes, expected);
}
