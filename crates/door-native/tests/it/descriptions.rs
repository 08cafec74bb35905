//! Descriptions that agents give of themselves when they subscribe.

use model::{ErrorCode, Name};
use wire::{DescribedMethod, DescribedMethods, Description, Kind, Subscribe};

use crate::Bench;
use crate::agent::{Agent, tag};

const NAME: &str = "a/b/sum/1";

/// Subscribes with one method, whose input has that schema.
async fn subscribe(
    agent: &mut Agent,
    version: &str,
    text: &str,
    input: &str,
) -> crate::agent::Frame {
    let method = DescribedMethod {
        name: "add",
        is_streamed: true,
        text: "",
        input,
        output: "true",
    };
    let mut buffer = Vec::new();
    let subscribe = Subscribe {
        options: 0,
        name: NAME,
        description: Some(Description {
            version,
            text,
            methods: DescribedMethods::encode([method].into_iter(), &mut buffer),
        }),
    };
    let encode = |out: &mut Vec<u8>| subscribe.encode(tag(0), out);
    agent.frame(encode).await;
    agent.next().await
}

fn shown(bench: &Bench) -> Option<messaging::Description> {
    let name = Name::parse("a/b/sum").unwrap();
    let view = bench.node.messaging().agent(&name)?;
    view.description.as_deref().cloned()
}

#[tokio::test]
async fn a_description_lasts_as_long_as_its_subscription() {
    let bench = Bench::new();
    let mut agent = bench.agent("").await;
    assert_eq!(shown(&bench), None);
    let schema = "{\"type\": \"array\"}";
    assert_eq!(
        subscribe(&mut agent, "1.0", "Sums", schema)
            .await
            .header
            .kind,
        Kind::REPLY
    );
    let first = shown(&bench).unwrap();
    assert_eq!((&*first.version, &*first.text), ("1.0", "Sums"));
    let method = &first.methods[0];
    assert_eq!((&*method.input, &*method.output), (schema, "true"));
    assert!(method.is_streamed);
    // The same instance describes itself anew.
    subscribe(&mut agent, "1.1", "Sums", schema).await;
    assert_eq!(shown(&bench).unwrap().version, "1.1");
    agent
        .frame(|out| wire::encode_unsubscribe(NAME, tag(0), out))
        .await;
    assert_eq!(agent.next().await.header.kind, Kind::REPLY);
    assert_eq!(shown(&bench), None);
    // Without a description, the instance is subscribed and describes nothing.
    agent.subscribe(NAME).await;
    assert_eq!(shown(&bench), None);
}

#[tokio::test]
async fn an_invalid_description_is_refused_with_its_subscription() {
    let bench = Bench::new();
    let mut agent = bench.agent("").await;
    for schema in ["{", "[]", "7"] {
        let refused = subscribe(&mut agent, "1", "", schema).await;
        assert_eq!(refused.failure().code, ErrorCode::InvalidArgument);
        let message = refused.failure().message.to_owned();
        let expected = "`input` of the method `add` is no JSON Schema: ";
        assert!(message.starts_with(expected), "{message}");
    }
    let large = format!("\"{}\"", "x".repeat(128 << 10));
    let schema = format!("{{\"title\": {large}}}");
    let refused = subscribe(&mut agent, "1", "", &schema).await;
    assert_eq!(refused.failure().code, ErrorCode::TooLarge);
    assert_eq!(shown(&bench), None);
    let name = Name::parse("a/b/sum").unwrap();
    assert!(bench.node.messaging().agent(&name).is_none());
}
