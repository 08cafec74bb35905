//! Web pages and the HTTP listener: pages of listed origins may use it, others may not.

mod chromium;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use self::chromium::{Chromium, Site};
use crate::support::{Node, Place};

/// An answer: status, head in lower case, body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// Returns the value of a field; empty if it is missing.
    fn field(&self, name: &str) -> &str {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = fields.filter(|(known, _)| *known == name);
        found.next().map_or("", |(_, value)| value)
    }
}

/// Sends a request unchanged, with `Connection: close`, to a listener of the node.
fn send(node: &Node, door: &str, request: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(node.address(door)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let request = format!("{}\r\nConnection: close\r\n", request.replace('\n', "\r\n"));
    let length = match body {
        "" => String::new(),
        body => format!("Content-Length: {}\r\n", body.len()),
    };
    stream
        .write_all(format!("{request}{length}\r\n{body}").as_bytes())
        .unwrap();
    let mut bytes = Vec::new();
    // An answer before the whole request was read ends with a reset.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or_else(|| panic!("no answer: {request}: {text}")),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

fn ask(node: &Node, request: &str, body: &str) -> Answer {
    send(node, "http", request, body)
}

const JSON: &str = "Content-Type: application/json";
const TAKE: &str = r#"{"subject":"a/b/c","cost":{"requests":1}}"#;
const MESSAGE: &str = r#"{"messages":[{"role":"user","content":"hello"}]}"#;

/// Requests to routes of every kind: parsed before hyper, by hyper, without a token, an upgrade.
fn requests() -> [(&'static str, String, &'static str); 6] {
    [
        ("POST /v1/take", JSON.to_owned(), TAKE),
        (
            "POST /v1/conversations/c/messages",
            JSON.to_owned(),
            MESSAGE,
        ),
        ("GET /v1/conversations", "Accept: */*".to_owned(), ""),
        ("GET /livez", "Accept: */*".to_owned(), ""),
        ("GET /nowhere", "Accept: */*".to_owned(), ""),
        (
            "GET /v1/ws",
            "Upgrade: websocket\nSec-WebSocket-Version: 13\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
                .to_owned(),
            "",
        ),
    ]
}

#[test]
fn open_node_refuses_names_that_are_not_its_own() {
    let place = Place::new();
    let node = place.serve("--http-hosts telpher,*.svc.local");
    for (line, fields, body) in requests() {
        for host in [
            "evil.example",
            "evil.example:7401",
            "localhost.evil.example",
        ] {
            let answer = ask(
                &node,
                &format!("{line} HTTP/1.1\nHost: {host}\n{fields}"),
                body,
            );
            assert_eq!(answer.status, 421, "{line}: {}", answer.body);
        }
        for host in [
            "127.0.0.1",
            "[::1]:7401",
            "localhost:7401",
            "telpher:7401",
            "a.svc.local",
        ] {
            let answer = ask(
                &node,
                &format!("{line} HTTP/1.1\nHost: {host}\n{fields}"),
                body,
            );
            assert_ne!(answer.status, 421, "{line} {host}: {}", answer.body);
        }
        let answer = ask(&node, &format!("{line} HTTP/1.1\n{fields}"), body);
        assert_eq!(answer.status, 400, "{line}: {}", answer.body);
    }
    let answer = ask(&node, "GET /livez HTTP/1.1\nHost: node-1:7401", "");
    let option = r#"`http.hosts = \"telpher,*.svc.local,node-1\"`"#;
    assert!(answer.body.contains(option), "{}", answer.body);
    assert_eq!(ask(&node, "GET /livez HTTP/1.0", "").status, 200);
}

#[test]
fn node_that_requires_tokens_answers_to_every_name() {
    let place = Place::new();
    let added = place.run("token add a --for */*/*");
    let token = added.expect(0).stdout.trim().to_owned();
    let node = place.serve("");
    let request =
        format!("GET /v1/agents HTTP/1.1\nHost: any.example\nAuthorization: Bearer {token}");
    assert_eq!(ask(&node, &request, "").status, 200);
    let fast =
        format!("POST /v1/take HTTP/1.1\nHost: any.example\n{JSON}\nAuthorization: Bearer {token}");
    assert_eq!(ask(&node, &fast, TAKE).status, 200);
    let foreign = format!("{request}\nOrigin: https://evil.example");
    assert_eq!(ask(&node, &foreign, "").status, 403);
}

#[test]
fn names_of_the_certificate_are_names_of_the_node() {
    let place = Place::new();
    let made = rcgen::generate_simple_self_signed(vec![
        "node.example.com".to_owned(),
        "*.nodes.example.com".to_owned(),
    ]);
    let made = made.unwrap();
    place.write("c.pem", &made.cert.pem());
    place.write("k.pem", &made.signing_key.serialize_pem());
    let node = place.serve("--tls-certificate c.pem --tls-key k.pem");
    let address = node.address("http");
    let (_, port) = address.rsplit_once(':').unwrap();
    for (name, status) in [
        ("node.example.com", "200"),
        ("a.nodes.example.com", "200"),
        ("other.example.com", "421"),
    ] {
        let asked = place.shell(&format!(
            "curl -s -o /dev/null -w '%{{http_code}}' --insecure --resolve {name}:{port}:127.0.0.1 \
             https://{name}:{port}/livez"
        ));
        assert_eq!(asked.expect(0).stdout, status, "{name}");
    }
}

#[test]
fn requests_of_foreign_pages_are_refused_on_every_route() {
    let place = Place::new();
    let node = place.serve("--http-origins https://app.example.com");
    for (line, fields, body) in requests() {
        let ask = |more: &str| {
            ask(
                &node,
                &format!("{line} HTTP/1.1\nHost: localhost:7401\n{fields}\n{more}"),
                body,
            )
        };
        for foreign in [
            "Origin: https://evil.example",
            "Origin: null",
            "Origin: http://localhost:3000",
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: same-site",
            "Origin: https://evil.example\nSec-Fetch-Site: cross-site",
        ] {
            let answer = ask(foreign);
            assert_eq!(answer.status, 403, "{line} {foreign}: {}", answer.body);
            assert_eq!(answer.field("access-control-allow-origin"), "");
        }
        for own in [
            "Origin: http://localhost:7401",
            "Sec-Fetch-Site: same-origin",
        ] {
            let answer = ask(own);
            assert_ne!(answer.status, 403, "{line} {own}: {}", answer.body);
            assert_eq!(answer.field("access-control-allow-origin"), "");
        }
        let listed = ask("Origin: https://app.example.com\nSec-Fetch-Site: cross-site");
        assert_ne!(listed.status, 403, "{line}: {}", listed.body);
        let allowed = listed.field("access-control-allow-origin");
        assert_eq!(allowed, "https://app.example.com", "{line}");
        assert!(listed.field("vary").contains("origin"), "{}", listed.head);
    }
    let refused = ask(
        &node,
        "GET /livez HTTP/1.1\nHost: localhost\nOrigin: http://localhost:3000",
        "",
    );
    let option = r#"`http.origins = \"https://app.example.com,http://localhost:3000\"`"#;
    assert!(refused.body.contains(option), "{}", refused.body);
    assert_eq!(
        ask(&node, "GET /v1/conversations HTTP/1.1\nHost: localhost", "")
            .body
            .matches("\"id\"")
            .count(),
        1
    );
}

#[test]
fn preflight_is_answered_for_listed_origins_only() {
    let place = Place::new();
    let token = place.run("token add a").expect(0).stdout.trim().to_owned();
    let node = place.serve("--http-origins https://app.example.com");
    let preflight = |origin: &str| {
        let request = format!(
            "OPTIONS /v1/conversations/c HTTP/1.1\nHost: localhost\nOrigin: {origin}\n\
             Access-Control-Request-Method: PATCH\nSec-Fetch-Site: cross-site\n\
             Access-Control-Request-Headers: authorization,content-type,if-match"
        );
        ask(&node, &request, "")
    };
    let answer = preflight("https://app.example.com");
    assert_eq!(answer.status, 204);
    assert_eq!(
        answer.field("access-control-allow-origin"),
        "https://app.example.com"
    );
    assert!(
        answer
            .field("access-control-allow-methods")
            .contains("patch"),
        "{}",
        answer.head
    );
    let fields = answer.field("access-control-allow-headers");
    assert_eq!(fields, "authorization,content-type,if-match");
    assert_eq!(answer.field("access-control-allow-credentials"), "");
    let refused = preflight("https://evil.example");
    assert_eq!(
        (refused.status, refused.field("access-control-allow-origin")),
        (403, "")
    );

    // A page can read the reason of the refusal.
    let request = "GET /v1/agents HTTP/1.1\nHost: localhost\nOrigin: https://app.example.com";
    let refused = ask(&node, request, "");
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.field("access-control-allow-origin"),
        "https://app.example.com"
    );
    let admitted = ask(
        &node,
        &format!("{request}\nAuthorization: Bearer {token}"),
        "",
    );
    assert_eq!(admitted.status, 200);
}

#[test]
fn body_without_content_type_is_refused() {
    let place = Place::new();
    let node = place.serve("");
    for (path, body) in [
        ("/v1/conversations/c/messages", MESSAGE),
        ("/v1/conversations/c/fork", "{}"),
        ("/v1/conversations/c/import", "{}"),
        ("/v1/conversations/c/messages/m/stream", "{}"),
        ("/v1/take", TAKE),
        ("/v1/settle", "{}"),
        ("/v1/halt", r#"{"prefix":"acme","reason":"x"}"#),
        ("/v1/reset", r#"{"prefix":"acme","reason":"x"}"#),
        ("/v1/topics", r#"{"name":"t"}"#),
        ("/v1/topics/t/records", r#"[{"value":1}]"#),
        ("/v1/tickets", r#"{"path":"/v1/watch"}"#),
    ] {
        for content_type in ["", "\nContent-Type: text/plain"] {
            let request = format!("POST {path} HTTP/1.1\nHost: localhost{content_type}");
            let answer = ask(&node, &request, body);
            assert_eq!(answer.status, 415, "{path}: {}", answer.body);
        }
    }
    let halts = ask(&node, "GET /v1/halts HTTP/1.1\nHost: localhost", "");
    assert!(!halts.body.contains("acme"), "{}", halts.body);
}

#[test]
fn a_request_with_content_length_and_chunked_encoding_is_refused() {
    let place = Place::new();
    let node = place.serve("");
    for path in ["/v1/take", "/v1/conversations/c/messages"] {
        for fields in [
            "Content-Length: 4\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\nContent-Length: 4",
        ] {
            let request = format!("POST {path} HTTP/1.1\nHost: localhost\n{JSON}\n{fields}");
            let answer = ask(&node, &request, "");
            assert_eq!(answer.status, 400, "{path} {fields}: {}", answer.body);
        }
    }
}

#[test]
fn a_pipelined_request_with_both_body_lengths_is_refused() {
    let place = Place::new();
    let node = place.serve("");
    let get = "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned();
    let size = MESSAGE.len();
    let with_length = format!(
        "POST /v1/conversations/c/messages HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n\
         Content-Length: {size}\r\n\r\n{MESSAGE}"
    );
    let chunked = format!(
        "POST /v1/conversations/c/messages HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n\
         Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n{MESSAGE}\r\n0\r\n\r\n"
    );
    let take = format!(
        "POST /v1/take HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\nContent-Length: {}\r\n\r\n{TAKE}",
        TAKE.len()
    );
    // The body is the end of the chunks for one reader and a request for another.
    let smuggled = "DELETE /v1/conversations/c HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let length = smuggled.len() + 5;
    let statuses = |requests: &[&str], in_pieces: bool| {
        let mut stream = TcpStream::connect(node.address("http")).unwrap();
        stream.set_nodelay(true).unwrap();
        let timeout = Some(Duration::from_secs(20));
        stream.set_read_timeout(timeout).unwrap();
        let bytes = requests.concat();
        let pieces: Vec<_> = match in_pieces {
            true => bytes.as_bytes().chunks(7).collect(),
            false => vec![bytes.as_bytes()],
        };
        for piece in pieces {
            // The node closes the connection before it has read all.
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        let mut answers = Vec::new();
        let _ = stream.read_to_end(&mut answers);
        let answers = String::from_utf8_lossy(&answers).into_owned();
        let found = answers.split("HTTP/1.1 ").skip(1);
        let found = found.filter_map(|answer| answer.get(..3)?.parse().ok());
        found.filter(|status| *status != 100).collect::<Vec<u16>>()
    };
    for fields in [
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {length}"),
    ] {
        let ambiguous = format!(
            "POST /v1/conversations/c/messages HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n\
             {fields}\r\n\r\n0\r\n\r\n{smuggled}"
        );
        for in_pieces in [false, true] {
            for (before, expected) in [
                (vec![], vec![400]),
                (vec![&*get], vec![200, 400]),
                (vec![&*take, &*get], vec![200, 200, 400]),
                (vec![&*with_length, &*chunked], vec![201, 201, 400]),
                (vec![&*chunked, &*take, &*get], vec![201, 200, 200, 400]),
            ] {
                let requests = [&before[..], &[&*ambiguous, &*get]].concat();
                assert_eq!(statuses(&requests, in_pieces), expected, "{requests:?}");
            }
        }
    }
    let there = ask(
        &node,
        "GET /v1/conversations/c HTTP/1.1\nHost: localhost",
        "",
    );
    assert_eq!(there.status, 200, "nothing was smuggled: {}", there.body);
}

#[test]
fn the_compat_limiter_refuses_foreign_pages_too() {
    let place = Place::new().with_variable("PORT", "0");
    let node = place.serve("--compat-limiter --http-origins https://app.example.com");
    let body = r#"{"agentId":"a"}"#;
    let ask = |more: &str| {
        let request = format!("POST /api/request HTTP/1.1\n{JSON}\n{more}");
        send(&node, "limiter", &request, body)
    };
    assert_eq!(ask("Host: localhost").status, 200);
    assert_eq!(ask("Host: evil.example").status, 421);
    assert_eq!(
        ask("Host: localhost\nOrigin: https://evil.example").status,
        403
    );
    let listed = ask("Host: localhost\nOrigin: https://app.example.com");
    assert_eq!(listed.status, 200);
    assert_eq!(
        listed.field("access-control-allow-origin"),
        "https://app.example.com"
    );
}

/// The requests that a page of a foreign origin makes to a node.
const ATTACK: &str = r#"
const body = JSON.stringify({messages: [{role: "user", content: "from a page"}]});
const halt = JSON.stringify({prefix: "acme", reason: "a page"});
const post = (path, mode, body) =>
    fetch(node + path, {method: "POST", mode, body: new Blob([body])}).then(answer => answer.type);
await attempt("read", () => fetch(node + "/v1/conversations").then(answer => answer.status));
await attempt("json", () => fetch(node + "/v1/conversations/json/messages", {
    method: "POST", body, headers: {"content-type": "application/json"}}).then(answer => answer.status));
await attempt("blob", () => post("/v1/conversations/blob/messages", "no-cors", body));
await attempt("halt", () => post("/v1/halt", "no-cors", halt));
await attempt("socket", () => socket([], {op: "append", ref: "r", conv: "socket",
    messages: [{role: "user", content: "from a page"}]}));
await attempt("events", () => events("/v1/watch", "halted"));
"#;

#[test]
fn foreign_page_in_chromium_can_neither_read_nor_write() {
    let place = Place::new();
    let site = Site::start();
    let port = site.port;
    let node = place.serve(&format!("--http-origins http://app.example:{port}"));
    let page = site.page("attack", &node, ATTACK);
    for host in ["evil.example", "localhost"] {
        let chromium = Chromium::open(&place, &format!("http://{host}:{port}{page}"));
        let found = site.report();
        drop(chromium);
        // With `no-cors` a page sees only that the request was answered.
        let expected = json!({"read": "TypeError", "json": "TypeError", "blob": "opaque",
            "halt": "opaque", "socket": "closed", "events": "closed"});
        assert_eq!(found, expected, "{host}");
    }
    let conversations = || node.get("/v1/conversations", None).1;
    assert!(!conversations().contains("\"id\""), "{}", conversations());
    assert!(!node.get("/v1/halts", None).1.contains("acme"));

    // The page of a listed origin is the same page.
    let _chromium = Chromium::open(&place, &format!("http://app.example:{port}{page}"));
    let found = site.report();
    assert_eq!(
        (&found["read"], &found["json"]),
        (&json!(200), &json!(201)),
        "{found}"
    );
    assert_eq!(found["socket"]["op"], "ack", "{found}");
    assert!(conversations().contains("\"json\""), "{}", conversations());
    assert!(!conversations().contains("\"blob\""), "{}", conversations());
}

#[test]
fn console_runs_in_chromium_under_its_policy() {
    let place = Place::new();
    let node = place.serve("");
    let page = Chromium::dump(&place, &format!("{}/ui/#/agents", node.url("http")));
    for text in [
        "Skip to the content",
        "aria-current=\"page\"",
        "<h1",
        "Names that begin with",
    ] {
        assert!(page.contains(text), "no `{text}`: {page}");
    }
}

#[test]
fn a_page_with_a_rebound_dns_name_is_refused_in_chromium() {
    let place = Place::new();
    let node = place.serve("");
    let (_, port) = node.address("http").rsplit_once(':').unwrap();
    let read =
        |host: &str| Chromium::dump(&place, &format!("http://{host}:{port}/v1/conversations"));
    let rebound = read("rebound.example");
    assert!(
        rebound.contains("`rebound.example` is not a name of this node"),
        "{rebound}"
    );
    let own = read("localhost");
    assert!(
        own.contains("conversations") && !own.contains("is not a name"),
        "{own}"
    );
}

/// The requests that a page makes to a node that requires tokens.
const WITH_TOKEN: &str = r#"
const path = "/v1/conversations/c/messages";
const authorization = {authorization: "Bearer " + token};
const json = {...authorization, "content-type": "application/json"};
const status = (path, init) => fetch(node + path, init).then(answer => answer.status);
const body = JSON.stringify({messages: [{role: "user", content: "hello"}]});
await attempt("without", () => status("/v1/conversations"));
await attempt("write", () => fetch(node + path, {method: "POST", headers: json, body}).then(answer =>
    [answer.status, answer.headers.get("etag")]));
await attempt("read", () => fetch(node + path, {headers: authorization}).then(async answer =>
    (await answer.json()).messages.length));
const append = {op: "append", ref: "r", conv: "c", messages: [{role: "user", content: "two"}]};
await attempt("socket", () => socket(["telpher", "bearer." + token], append));
await attempt("socket without", () => socket(["telpher"], append));
await attempt("socket wrong", () => socket(["telpher", "bearer.tlp_x"], append));
await attempt("stream", async () => {
    const answer = await fetch(node + path, {headers: {...authorization, accept: "text/event-stream"}});
    const {value} = await answer.body.getReader().read();
    return new TextDecoder().decode(value).includes("event: message");
});
const ticket = await fetch(node + "/v1/tickets", {method: "POST", headers: json,
    body: JSON.stringify({path})}).then(answer => answer.json());
await attempt("events other path", () => events("/v1/watch?ticket=" + ticket.ticket, "message"));
const second = await fetch(node + "/v1/tickets", {method: "POST", headers: json,
    body: JSON.stringify({path})}).then(answer => answer.json());
await attempt("events", () => events(path + "?after=1&ticket=" + second.ticket, "message"));
await attempt("events again", () => events(path + "?ticket=" + second.ticket, "message"));
await attempt("events without", () => events(path, "message"));
"#;

#[test]
fn listed_page_with_a_token_uses_everything_in_chromium() {
    let place = Place::new();
    let token = place
        .run("token add page")
        .expect(0)
        .stdout
        .trim()
        .to_owned();
    let site = Site::start();
    let origin = format!("http://app.example:{}", site.port);
    let node = place.serve(&format!("--http-origins {origin}"));
    let page = site.page(
        "use",
        &node,
        &format!("const token = {};{WITH_TOKEN}", json!(token)),
    );
    let _chromium = Chromium::open(&place, &format!("{origin}{page}"));
    let mut found = site.report();
    let ack = found["socket"].take();
    assert_eq!(
        (&ack["op"], &ack["first_seq"]),
        (&json!("ack"), &json!(2)),
        "{ack}"
    );
    let event: Value = serde_json::from_str(found["events"].take().as_str().unwrap()).unwrap();
    assert_eq!(event["seq"], 2);
    let expected = json!({"without": 401, "write": [201, "\"1\""], "read": 1, "socket": null,
        "socket without": "closed", "socket wrong": "closed", "stream": true, "events": null,
        "events other path": "closed", "events again": "closed", "events without": "closed"});
    assert_eq!(found, expected);
}
