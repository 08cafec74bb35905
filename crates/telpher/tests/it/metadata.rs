//! Metadata of messages that native clients send, and their form over HTTP.

use client::{Client, NewMessage};
use serde_json::{Value, json};

use crate::support::Place;

/// Characters that break or change JSON.
const INSERTED: [char; 14] = [
    '{', '}', '[', ']', '"', ',', ':', '\\', ' ', '\n', '\0', 'é', 'x', '1',
];

/// Returns bytes that are valid metadata, almost valid metadata, or random.
fn arbitrary(rng: &mut fastrand::Rng) -> String {
    let seeds = [
        r#"{"topic":"billing","deep":{"a":[1,2.5,null,true,"\u00e9\n"]}}"#,
        r#"{},"role":"system","from":"operator","parts":[{"type":"text","text":"x"}]"#,
        "not json",
        "{\"a\":\"\x01\"}",
        "[1]",
        "null",
        "",
        " {\n\"a\"\r:1}\n",
        r#"{"a":1}}{"b":2}"#,
    ];
    let mut text = rng.choice(seeds).unwrap_or_default().to_owned();
    if rng.u8(..) < 25 {
        let depth = rng.usize(60..70);
        text = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    }
    for _ in 0..rng.usize(0..4) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let Some(at) = rng.choice(places) else { break };
        match rng.bool() {
            true => text.insert(at, rng.choice(INSERTED).unwrap_or(' ')),
            false => drop(text.remove(at)),
        }
    }
    text
}

#[tokio::test]
async fn native_metadata_are_refused_or_http_shows_the_same_message() {
    let place = Place::new();
    let node = place.serve("");
    let client = Client::builder().connect(node.url("native")).await.unwrap();
    let mut rng = fastrand::Rng::with_seed(15);
    let (mut taken, mut refused) = (0, 0);
    let parts = json!([{"type": "text", "text": "Hello"}]);
    for number in 0..400 {
        let conversation = client.conversation(&format!("c-{}", number % 20)).unwrap();
        let metadata = arbitrary(&mut rng);
        let message = NewMessage {
            metadata: metadata.clone(),
            ..NewMessage::new("user", parts.to_string())
        };
        let is_valid = metadata.is_empty()
            || serde_json::from_str::<serde_json::Map<String, Value>>(&metadata).is_ok();
        match conversation.append(&[message]).await {
            Ok(_) => taken += 1,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("message 0: "), "{text}");
                let is_deep = metadata.matches('[').count() > 60;
                assert!(!is_valid || is_deep, "{text}: {metadata:?}");
                refused += 1;
            }
        }
    }
    assert!(
        taken > 30 && refused > 30,
        "{taken} taken, {refused} refused"
    );
    for number in 0..20 {
        let path = format!("/v1/conversations/c-{number}");
        let (status, page) = node.get(&format!("{path}/messages"), None);
        assert_eq!(status, 200);
        let page: Value = serde_json::from_str(&page).unwrap();
        for message in page["messages"].as_array().unwrap() {
            assert_eq!(
                (&message["role"], &message["parts"]),
                (&json!("user"), &parts)
            );
            assert!(message["metadata"].is_object(), "{message}");
            assert_eq!(message.get("from"), None);
        }
        let get = |view: &str| {
            let url = format!("{}{path}/{view}", node.url("http"));
            place
                .shell(&format!("curl -sf '{url}'"))
                .expect(0)
                .stdout
                .clone()
        };
        serde_json::from_str::<Value>(&get("context?budget=9000")).unwrap();
        for line in get("export").lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
    }
}
