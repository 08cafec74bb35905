//! Messages as spans, on a node that exports spans.

use platform::{AttributeValue, Counter, EndedSpan};

use crate::agent::CARRIERS;
use crate::{Agent, Bench};

const ONE: u32 = 1;

/// Returns the name, the number of copies and the error of each span.
fn outcomes(spans: &[EndedSpan]) -> Vec<(&str, Option<&AttributeValue>, Option<&str>)> {
    spans
        .iter()
        .map(|span| {
            let mut attributes = span.attributes.iter();
            let delivered = attributes.find(|(key, _)| *key == "telpher.delivered");
            let delivered = delivered.map(|(_, value)| value);
            (span.name.as_str(), delivered, span.error.as_deref())
        })
        .collect()
}

#[tokio::test]
async fn slim_messages_are_spans_with_their_outcome() {
    let bench = Bench::traced().await;
    let mut publisher = Agent::linked(&bench, "publisher", 1).await;
    let mut subscriber = Agent::subscribed_over(&bench, CARRIERS[0], "subscriber", 2).await;
    publisher.publish(subscriber.name(), ONE, b"arrives");
    assert_eq!(subscriber.received().await.payload, b"arrives");
    publisher.publish(publisher.name(), ONE, b"has no subscriber");
    bench.counted(Counter::Undeliverable, 1).await;
    let tracer = bench.node.tracer().unwrap();
    let mut spans = Vec::new();
    crate::until("three spans have ended", || {
        spans.extend(tracer.take(10));
        spans.len() == 3
    })
    .await;
    let [none, one] = [0, 1].map(AttributeValue::Number);
    assert_eq!(
        outcomes(&spans),
        [
            ("slim subscribe", None, None),
            ("slim publish", Some(&one), None),
            ("slim publish", Some(&none), Some("no subscriber")),
        ]
    );
    let name = subscriber.name().to_string();
    let named = ("telpher.name", AttributeValue::Text(name));
    assert!(spans[1].attributes.contains(&named), "{:?}", spans[1]);
}
