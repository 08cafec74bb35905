//! Agents with nothing but curl: calls, work from a mailbox across kills of the node, and streams.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Node, Place};

const AGENT: &str = "/v1/acme/demo/agents/job";

/// Sends a request with curl. Returns the status and the body.
fn curl(place: &Place, node: &Node, path: &str, arguments: &str) -> (u16, String) {
    let url = node.url("http");
    let script = format!("curl -sS -w '\\n%{{http_code}}' '{url}{path}' {arguments}");
    let done = place.shell(&script);
    let (body, status) = done.expect(0).stdout.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), body.to_owned())
}

fn take(place: &Place, node: &Node) -> Vec<Value> {
    let path = format!("{AGENT}/mailbox/take?max=10&wait_ms=200&lease_ms=43200000");
    let (status, body) = curl(place, node, &path, "-X POST");
    assert_eq!(status, 200, "{body}");
    let taken: Value = serde_json::from_str(&body).unwrap();
    taken["messages"].as_array().unwrap().clone()
}

fn ack(place: &Place, node: &Node, message: &Value) -> (u16, String) {
    let body = json!({"leases": [message["lease"]]});
    let path = format!("{AGENT}/mailbox/ack");
    curl(place, node, &path, &format!("--json '{body}'"))
}

#[test]
fn a_message_taken_over_http_is_lent_again_after_kill9() {
    let place = Place::new();
    let kill = |node: Node| {
        node.signal(Signal::KILL);
        node.end();
        place.serve("")
    };
    let node = place.serve("");
    let write = format!("{AGENT}/write?id=00000000000000000000000000000007");
    let (status, body) = curl(&place, &node, &write, "-d 'job 7'");
    assert_eq!(status, 201, "{body}");
    let first = take(&place, &node).remove(0);
    assert_eq!(
        (&first["body"], &first["delivery"]),
        (&json!("job 7"), &json!(1))
    );
    // The count of deliveries is stored without waiting for the disk. A later write to the mailbox
    // is acknowledged after it.
    let later = format!("{AGENT}/write");
    let (status, body) = curl(&place, &node, &later, "-d 'job 8'");
    assert_eq!(status, 201, "{body}");

    let node = kill(node);
    // A repeated write finds the message.
    let (status, body) = curl(&place, &node, &write, "-d 'job 7'");
    assert_eq!((status, &*body), (200, "{\"offset\":0,\"duplicate\":true}"));
    let (status, body) = ack(&place, &node, &first);
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("\"code\":\"lease_expired\""), "{body}");
    let mut again = take(&place, &node);
    if again.len() == 1 {
        again.extend(take(&place, &node));
    }
    let deliveries: Vec<_> = again
        .iter()
        .map(|it| {
            (
                it["body"].as_str().unwrap(),
                it["delivery"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(deliveries, [("job 7", 2), ("job 8", 1)]);
    let (status, body) = ack(&place, &node, &first);
    assert_eq!(status, 409, "{body}");
    for message in &again {
        let (status, body) = ack(&place, &node, message);
        assert_eq!(status, 200, "{body}");
    }

    // The acknowledgements were on disk when they were answered.
    let node = kill(node);
    assert_eq!(take(&place, &node), [] as [Value; 0]);
}

#[test]
fn an_agent_is_called_and_described_over_http() {
    let place = Place::new();
    let node = place.serve("");
    let client = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let description = json!({
        "version": "1.2.0",
        "description": "Makes text loud.",
        "methods": [{"name": "", "input": {"type": "string"}}],
    });
    client.write("upper.json", &description.to_string());
    let file = client.path("upper.json");
    let name = "acme/demo/upper/i-1";
    let words = [
        name,
        "--exec",
        "tr a-z A-Z",
        "--describe",
        file.to_str().unwrap(),
    ];
    let mut agent = client.listen(words);
    let request = "/v1/acme/demo/agents/upper/request";
    let (status, body) = curl(&place, &node, request, "-d hello");
    assert_eq!((status, &*body), (200, "HELLO"));
    assert!(agent.line().contains("hello"));
    let (status, body) = curl(
        &place,
        &node,
        request,
        "-d hi -H 'Accept: text/event-stream'",
    );
    let events = "event: item\ndata: {\"body\":\"HI\"}\n\nevent: end\ndata: {}\n\n";
    assert_eq!((status, &*body), (200, events));
    let path = "/v1/acme/demo/agents/upper/description";
    let (status, body) = node.get(path, None);
    let shown: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &shown["version"]), (200, &json!("1.2.0")));
    assert_eq!(shown["methods"][0]["input"], json!({"type": "string"}));
    let instances = json!([{"instance": "i-1", "version": "1.2.0", "differs": false}]);
    assert_eq!(shown["instances"], instances);
    let printed = client.run("agents acme/demo/upper");
    let printed = &printed.expect(0).stdout;
    for text in [
        "acme/demo/upper 1.2.0",
        "Makes text loud.",
        "input: {\"type\":\"string\"}",
    ] {
        assert!(printed.contains(text), "{text:?} is not in {printed}");
    }
    let json = client.run("agents acme/demo/upper --json").expect(0).json();
    assert_eq!(json, shown);
    client.run("agents acme/demo/nobody").expect(3);
    client.write("wrong.json", "{\"method\": []}");
    let wrong = client.path("wrong.json");
    let words = [
        "listen",
        "acme/demo/x",
        "--describe",
        wrong.to_str().unwrap(),
    ];
    client
        .run_words(words)
        .expect(2)
        .shows_error("unknown field `method`", "`telpher listen --help`");
}
