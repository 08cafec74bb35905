//! Traces: the trace context is passed on, and spans are exported to a collector that the test is.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use client::{Client, Request, Server};
use serde_json::{Value, json};

use crate::support::{Node, Place, eventually, free_port};
use crate::webhooks::PATIENCE;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn traceparent() -> String {
    format!("00-{TRACE}-{PARENT}-01")
}

/// A span as the collector gets it.
#[derive(Debug, Default)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    kind: u64,
    attributes: BTreeMap<String, String>,
    /// The trace and the span of each link.
    links: Vec<(String, String)>,
    is_failed: bool,
}

/// A server that takes requests and answers each with a status.
struct HttpServer {
    url: String,
    requests: Receiver<(Vec<String>, Vec<u8>)>,
}

impl HttpServer {
    fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let sender = sender.clone();
                thread::spawn(move || serve(socket.unwrap(), status, &sender));
            }
        });
        Self { url, requests }
    }

    /// Returns the lines of the head of the next request, and its body.
    #[track_caller]
    fn next(&self) -> (Vec<String>, Vec<u8>) {
        self.requests.recv_timeout(PATIENCE).unwrap()
    }
}

/// Answers the requests of one connection.
fn serve(mut socket: TcpStream, status: &str, sender: &Sender<(Vec<String>, Vec<u8>)>) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_ascii_lowercase()),
            }
        }
        let size = head
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; size.map_or(0, |it| it.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        // The test may have ended.
        let _ = sender.send((head, body));
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        if socket.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A collector of spans.
struct Collector {
    server: HttpServer,
    spans: Vec<Span>,
}

impl Collector {
    fn start() -> Self {
        Self {
            server: HttpServer::start("200 OK"),
            spans: Vec::new(),
        }
    }

    fn serve(&self, place: &Place, flags: &str) -> Node {
        let url = &self.server.url;
        place.serve(&format!("--dev --telemetry-otlp-endpoint {url} {flags}"))
    }

    /// Waits for a span of this name.
    #[track_caller]
    fn span(&mut self, name: &str) -> &Span {
        loop {
            if let Some(index) = self.spans.iter().position(|it| it.name == name) {
                return &self.spans[index];
            }
            let (head, body) = self.server.next();
            assert!(head[0].starts_with("post /v1/traces "), "{head:?}");
            let is_protobuf = |line: &String| line == "content-type: application/x-protobuf";
            assert!(head.iter().any(is_protobuf), "{head:?}");
            self.spans.extend(decode(&body));
        }
    }
}

/// A field of a protobuf message: its number, and its bytes or its number's value.
enum Field<'a> {
    Bytes(u64, &'a [u8]),
    Number(u64, u64),
}

/// Returns the fields of a protobuf message.
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = key >> 3;
        fields.push(match key & 7 {
            0 => Field::Number(number, varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_first_chunk().unwrap();
                bytes = rest;
                Field::Number(number, u64::from_le_bytes(*value))
            }
            2 => {
                let size = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(size);
                bytes = rest;
                Field::Bytes(number, value)
            }
            other => panic!("wire type {other}"),
        });
    }
    fields
}

/// Returns the messages or texts of a field.
fn all(bytes: &[u8], wanted: u64) -> Vec<&[u8]> {
    let fields = fields(bytes).into_iter();
    let wanted = fields.filter_map(|field| match field {
        Field::Bytes(number, bytes) if number == wanted => Some(bytes),
        _ => None,
    });
    wanted.collect()
}

fn number(bytes: &[u8], wanted: u64) -> Option<u64> {
    fields(bytes).into_iter().find_map(|field| match field {
        Field::Number(number, value) if number == wanted => Some(value),
        _ => None,
    })
}

fn text(bytes: &[u8], wanted: u64) -> String {
    let found = all(bytes, wanted).first().copied().unwrap_or_default();
    String::from_utf8(found.to_vec()).unwrap()
}

fn hex(bytes: &[u8], wanted: u64) -> String {
    let found = all(bytes, wanted).first().copied().unwrap_or_default();
    found.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(bytes: &[u8], field: u64) -> BTreeMap<String, String> {
    let attributes = all(bytes, field).into_iter().map(|attribute| {
        let value = all(attribute, 2)[0];
        let value = number(value, 3).map_or_else(|| text(value, 1), |it| it.to_string());
        (text(attribute, 1), value)
    });
    attributes.collect()
}

/// Decodes an `ExportTraceServiceRequest`.
fn decode(request: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for resource_spans in all(request, 1) {
        let resource = attributes(all(resource_spans, 1)[0], 1);
        assert_eq!(resource["service.name"], "telpher");
        for span in all(resource_spans, 2).into_iter().flat_map(|it| all(it, 2)) {
            let (begin, end) = (number(span, 7).unwrap(), number(span, 8).unwrap());
            // Later than 2020-01-01.
            assert!(begin > 1_577_836_800_000_000_000 && end >= begin);
            let links = all(span, 13).into_iter();
            let links = links.map(|link| (hex(link, 1), hex(link, 2)));
            spans.push(Span {
                trace: hex(span, 1),
                id: hex(span, 2),
                parent: hex(span, 4),
                name: text(span, 5),
                kind: number(span, 6).unwrap_or_default(),
                attributes: attributes(span, 9),
                links: links.collect(),
                is_failed: all(span, 15).iter().any(|it| number(it, 3) == Some(2)),
            });
        }
    }
    spans
}

/// Sends a request with a trace context; returns the answer.
fn post(place: &Place, node: &Node, path: &str, body: &str, kind: &str) -> String {
    let url = node.url("http");
    let trace = traceparent();
    let script = format!(
        "curl -s -X POST '{url}{path}' -H 'traceparent: {trace}' -H 'tracestate: a=1' \
         -H 'Content-Type: {kind}' -d '{body}'"
    );
    place.shell(&script).expect(0).stdout.clone()
}

/// An agent that answers with the trace context that it was called with.
async fn echo(node: &Node, name: &str) -> (Client, client::Attachment) {
    let server = Server::new().handle("trace", |request: Request| async move {
        let trace = request.metadata().get("traceparent").unwrap_or_default();
        Ok::<_, client::Fault>(trace.to_vec())
    });
    let agent = Client::connect(node.url("native")).await.unwrap();
    let attached = server.attach(&agent, &name.parse().unwrap()).await;
    (agent, attached.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn trace_context_is_passed_on_without_a_collector() {
    let place = Place::new();
    let node = place.serve("--dev");
    let _echo = echo(&node, "acme/demo/echo").await;
    let path = "/v1/acme/demo/agents/echo/request/trace";
    assert_eq!(post(&place, &node, path, "x", "text/plain"), traceparent());

    post(
        &place,
        &node,
        "/v1/acme/demo/agents/box/write",
        "x",
        "text/plain",
    );
    let path = "/v1/acme/demo/agents/box/mailbox/take";
    let taken = post(&place, &node, path, "{}", "application/json");
    assert!(taken.contains(&traceparent()), "{taken}");

    let records = "[{\"value\":\"x\"},{\"value\":\"y\",\"headers\":{\"traceparent\":\"own\"}}]";
    post(
        &place,
        &node,
        "/v1/topics/jobs/records",
        records,
        "application/json",
    );
    let broker = node.url("kafka");
    let script = format!("kcat -q -e -b {broker} -C -t jobs -f '%h\\n'");
    let headers = place.shell(&script).expect(0).stdout.clone();
    let expected = format!("traceparent={},tracestate=a=1", traceparent());
    assert!(headers.lines().any(|line| line == expected), "{headers}");
    assert!(
        headers.lines().any(|line| line == "traceparent=own"),
        "{headers}"
    );
    let (_, metrics) = node.get("/metrics", None);
    assert!(!metrics.contains("telpher_spans"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_request_is_a_span_and_the_parent_of_its_call() {
    let place = Place::new();
    let mut collector = Collector::start();
    let node = collector.serve(&place, "");
    let _echo = echo(&node, "acme/demo/echo").await;
    let path = "/v1/acme/demo/agents/echo/request/trace";
    let called_with = post(&place, &node, path, "x", "text/plain");
    let span = collector.span("POST /v1/{org}/{namespace}/agents/{name}/request/{method}");
    assert_eq!((&*span.trace, &*span.parent, span.kind), (TRACE, PARENT, 2));
    assert_eq!(called_with, format!("00-{TRACE}-{}-01", span.id));
    assert_eq!(span.attributes["http.response.status_code"], "200");
    assert_eq!(span.attributes["http.request.method"], "POST");
    assert!(!span.is_failed);
    eventually("the span is counted", || {
        node.metric("telpher_spans_exported_total") >= 1
    });
    let names: Vec<_> = collector.spans.iter().map(|it| &it.name).collect();
    assert!(
        !names.iter().any(|it| it.ends_with("/metrics")),
        "{names:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn native_calls_writes_and_deliveries_are_spans() {
    let place = Place::new();
    let mut collector = Collector::start();
    let node = collector.serve(&place, "--telemetry-sampling-ratio 0");
    let _echo = echo(&node, "acme/demo/echo").await;
    let caller = client::Caller::connect(&format!("{}#acme/demo/echo", node.url("native")))
        .await
        .unwrap();
    let call = caller.call("trace", "x").traceparent(&traceparent());
    assert_eq!(call.await.unwrap(), traceparent().as_bytes());
    let span = collector.span("request");
    assert_eq!((&*span.trace, &*span.parent, span.kind), (TRACE, PARENT, 2));
    assert_eq!(span.attributes["telpher.name"], "acme/demo/echo");
    assert!(!span.is_failed);

    // Not sampled: a call without a trace context, at a ratio of 0.
    caller.call("trace", "x").await.unwrap();
    // The write is answered on disk, and delivered to the agent, which has no handler for it.
    let client = Client::connect(node.url("native")).await.unwrap();
    let metadata = client::Metadata::new().with("traceparent", traceparent());
    let name = "acme/demo/echo".parse().unwrap();
    client.write(&name, "x").metadata(metadata).await.unwrap();
    let span = collector.span("write");
    assert_eq!((&*span.trace, &*span.parent, span.kind), (TRACE, PARENT, 4));
    let span = collector.span("deliver");
    assert_eq!((&*span.trace, &*span.parent, span.kind), (TRACE, PARENT, 5));
    assert_eq!(span.attributes["telpher.name"], "acme/demo/echo");
    let requests = collector.spans.iter().filter(|it| it.name == "request");
    assert_eq!(requests.count(), 1);
}

#[test]
fn kafka_requests_are_spans_that_link_the_traces_of_records() {
    let place = Place::new();
    let mut collector = Collector::start();
    let node = collector.serve(&place, "");
    let broker = node.url("kafka");
    let produce = format!(
        "printf 'x' | kcat -b {broker} -P -t jobs -H traceparent={}",
        traceparent()
    );
    place.shell(&produce).expect(0);
    let span = collector.span("kafka Produce");
    assert_eq!((span.kind, &*span.parent), (2, ""));
    assert_eq!(span.attributes["messaging.system"], "kafka");
    assert_eq!(span.attributes["telpher.kafka.topics"], "1");
    assert_eq!(span.attributes["messaging.client.id"], "rdkafka");
    assert_eq!(span.links, [(TRACE.to_owned(), PARENT.to_owned())]);
    assert!(!span.is_failed);
    let beyond = format!("kcat -q -b {broker} -C -t jobs -o 99 -X auto.offset.reset=error -e");
    place.shell(&beyond);
    let fetch = collector.span("kafka Fetch");
    assert!(fetch.is_failed, "{fetch:?}");
    assert_eq!(fetch.attributes["telpher.kafka.error"], "OffsetOutOfRange");
}

#[test]
fn traced_request_is_the_exemplar_of_its_bucket() {
    let place = Place::new();
    let mut collector = Collector::start();
    let node = collector.serve(&place, "--telemetry-sampling-ratio 0");
    post(&place, &node, "/v1/agents", "", "text/plain");
    collector.span("POST /v1/agents");
    let url = node.url("http");
    let accept = "-H 'Accept: application/openmetrics-text'";
    let page = place.shell(&format!("curl -s {accept} {url}/metrics"));
    let exemplar = format!("# {{trace_id=\"{TRACE}\"}} ");
    let is_bucket = |line: &&str| line.starts_with("telpher_http_request_duration_seconds_bucket");
    let page = &page.expect(0).stdout;
    let mut exemplars = page.lines().filter(|it| it.contains(&exemplar));
    let bucket = exemplars.next().unwrap();
    assert!(
        is_bucket(&bucket) && bucket.contains("/v1/agents"),
        "{bucket}"
    );
    assert_eq!(exemplars.next(), None);
    let (_, plain) = node.get("/metrics", None);
    assert!(plain.lines().any(|it| is_bucket(&it)), "{plain}");
    assert!(!plain.contains("trace_id"), "{plain}");
}

#[test]
fn webhook_call_continues_the_trace_of_its_message() {
    let place = Place::new();
    let mut collector = Collector::start();
    let hook = HttpServer::start("204 No Content");
    let node = collector.serve(&place, "");
    let other = Place::new();
    let untraced = other.serve("--dev");
    let agent = json!({"url": format!("{}/hook", hook.url), "debounce_ms": 10});
    let message = json!({
        "role": "user", "content": "hello", "metadata": {"traceparent": traceparent()},
    });
    let header = |head: &[String]| {
        let mut lines = head.iter();
        lines.find_map(|line| Some(line.strip_prefix("traceparent: ")?.to_owned()))
    };
    for node in [&untraced, &node] {
        for (method, path, body) in [
            ("PUT", "/v1/agents/support", &agent),
            ("PUT", "/v1/conversations/c1", &json!({"agent": "support"})),
            (
                "POST",
                "/v1/conversations/c1/messages",
                &json!({"messages": [message]}),
            ),
        ] {
            send(&place, node, method, path, body);
        }
        let (head, _) = hook.next();
        let called_with = header(&head).unwrap();
        if std::ptr::eq(node, &untraced) {
            assert_eq!(called_with, traceparent());
            continue;
        }
        let span = collector.span("webhook");
        assert_eq!((&*span.trace, &*span.parent, span.kind), (TRACE, PARENT, 3));
        assert_eq!(called_with, format!("00-{TRACE}-{}-01", span.id));
        assert_eq!(span.attributes["telpher.agent"], "default/default/support");
        assert_eq!(span.attributes["http.response.status_code"], "204");
    }
}

fn send(place: &Place, node: &Node, method: &str, path: &str, body: &Value) {
    let url = node.url("http");
    let script = format!("curl -sf -X {method} '{url}{path}' --json '{body}'");
    place.shell(&script).expect(0);
}

#[test]
fn absent_collector_costs_only_spans_which_are_counted() {
    let place = Place::new();
    let away = free_port();
    let node = place.serve(&format!(
        "--dev --telemetry-otlp-endpoint http://127.0.0.1:{away} --telemetry-queue-max 2"
    ));
    for _ in 0..20 {
        assert_eq!(node.get("/v1/topics", None).0, 200);
    }
    eventually("spans are dropped", || {
        node.get("/v1/topics", None);
        node.metric("telpher_spans_dropped_total") >= 1
    });
    eventually("the failure is counted", || {
        node.metric("telpher_spans_export_failures_total") >= 1
    });
    assert!(node.metric("telpher_spans_waiting") <= 2);
    assert_eq!(node.metric("telpher_spans_exported_total"), 0);
}

#[test]
fn spans_that_the_collector_refuses_are_dropped() {
    let place = Place::new();
    let collector = HttpServer::start("400 Bad Request");
    let node = place.serve(&format!(
        "--dev --telemetry-otlp-endpoint {}",
        collector.url
    ));
    assert_eq!(node.get("/v1/topics", None).0, 200);
    collector.next();
    eventually("the span is dropped", || {
        node.metric("telpher_spans_dropped_total") == 1
    });
}

#[test]
fn invalid_endpoint_and_ratio_are_refused() {
    let place = Place::new();
    let refused = place.run("serve --dev --telemetry-otlp-endpoint collector:4318");
    refused.expect(2);
    refused.shows_error("telemetry.otlp_endpoint", "http://127.0.0.1:4318");
    let refused = place.run("serve --dev --telemetry-sampling-ratio 1.5");
    refused.expect(2);
    assert!(refused.stderr.contains("from 0 to 1"), "{}", refused.stderr);
}
