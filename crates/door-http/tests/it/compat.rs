//! The surface of a limiter on Express and Redis: bodies key by key, and HTTP as its clients speak it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use journal::disk::simulated::{Call, Fault, Kind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::quotas::open_durable;
use crate::{Answer, Door, client, serve_routes};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// A node with the limit that the profile has, and the door of the profile.
struct Limiter {
    door: Door,
    address: SocketAddr,
}

impl Limiter {
    async fn open() -> Self {
        Self::behind(Vec::new()).await
    }

    async fn behind(proxies: Vec<IpAddr>) -> Self {
        let door = open_durable().await;
        let limit = json!({"name": "agent", "match": "default/default/*", "unit": "requests",
            "capacity": 100, "refill": "10/s"});
        let body = json!({"limits": [limit], "reason": "the profile"});
        assert_eq!(door.ask("PUT", "/v1/policies", &body).await.status, 200);
        let gate = Arc::new(door::Open);
        let routes = http_quotas::compat_routes(door.node.clone(), gate, proxies);
        let address = serve_routes(routes).await;
        Self { door, address }
    }

    async fn get(&self, path: &str) -> Answer {
        client::ask(self.address, "GET", path, &[], b"").await
    }

    async fn post(&self, body: &str) -> Answer {
        let path = "/api/request";
        client::ask(self.address, "POST", path, &JSON, body.as_bytes()).await
    }

    /// Sends bytes and hands out all that comes back until the door hangs up.
    async fn send_raw(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }
}

fn limits(answer: &Answer) -> [Option<&str>; 3] {
    [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ]
    .map(|name| answer.header(name))
}

#[tokio::test]
async fn a_request_is_answered_as_the_original_does() {
    let limiter = Limiter::open().await;
    let answer = limiter.post(r#"{"agentId":"a1"}"#).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.text(),
        r#"{"success":true,"message":"Request allowed","tokensConsumed":1,"remaining":99,"limit":100}"#
    );
    assert_eq!(
        limits(&answer),
        [Some("100"), Some("99"), Some("1700000000")]
    );
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(
        answer.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some("\"agent\";q=100;w=10")
    );
    assert_eq!(answer.header("retry-after"), None);
    let answer = limiter.post(r#"{"agentId":"a1","tokens":"99"}"#).await;
    assert_eq!(answer.json()["remaining"], 0);
    let answer = limiter.post(r#"{"agentId":"a1","tokens":25}"#).await;
    assert_eq!(answer.status, 429);
    assert_eq!(
        answer.text(),
        r#"{"error":"Too Many Requests","message":"Rate limit exceeded. Please try again later.","retryAfter":3,"remaining":0}"#
    );
    assert_eq!(
        limits(&answer),
        [Some("100"), Some("0"), Some("1700000003")]
    );
    assert_eq!(answer.header("retry-after"), Some("3"));
    assert_eq!(answer.header("ratelimit"), Some("\"agent\";r=0;t=3"));
    // What was said of when it would pass is exact.
    limiter.door.pass_ms(2_499);
    assert_eq!(
        limiter.post(r#"{"agentId":"a1","tokens":25}"#).await.status,
        429
    );
    limiter.door.pass_ms(1);
    assert_eq!(
        limiter.post(r#"{"agentId":"a1","tokens":25}"#).await.status,
        200
    );
}

#[tokio::test]
async fn invalid_requests_get_400_with_the_messages_of_the_original() {
    let limiter = Limiter::open().await;
    for (body, message) in [
        ("{\"agentId\":", "The body is not valid JSON"),
        ("", "agentId is required and must be a string"),
        ("{}", "agentId is required and must be a string"),
        (
            r#"{"agentId":7}"#,
            "agentId is required and must be a string",
        ),
        (
            r#"{"agentId":"","tokens":1}"#,
            "agentId is required and must be a string",
        ),
        (
            r#"{"agentId":"a","tokens":0}"#,
            "tokens must be a positive number",
        ),
        (
            r#"{"agentId":"a","tokens":-5}"#,
            "tokens must be a positive number",
        ),
        (
            r#"{"agentId":"a","tokens":null}"#,
            "tokens must be a positive number",
        ),
        (
            r#"{"agentId":"a","tokens":"many"}"#,
            "tokens must be a positive number",
        ),
        (
            r#"{"agentId":"a","tokens":1.5}"#,
            "tokens must be a whole number",
        ),
        (
            r#"{"agentId":"a","tokens":101}"#,
            "tokens exceeds capacity (100)",
        ),
        (
            r#"{"agentId":"a","tokens":1e300}"#,
            "tokens exceeds capacity (100)",
        ),
        (
            r#"{"agentId":"a","tokens":18446744073709551616}"#,
            "tokens exceeds capacity (100)",
        ),
    ] {
        let answer = limiter.post(body).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert_eq!(
            answer.text(),
            json!({"error": "Bad Request", "message": message}).to_string()
        );
        assert_eq!(answer.header("retry-after"), None);
    }
    let long = json!({"agentId": "x".repeat(300)}).to_string();
    assert_eq!(
        limiter.post(&long).await.json()["message"],
        "agentId is too long"
    );
    assert_eq!(limiter.get("/api/quota/a").await.json()["status"], "new");
}

#[tokio::test]
async fn a_quota_is_shown_as_new_until_its_first_use() {
    let limiter = Limiter::open().await;
    assert_eq!(
        limiter.get("/api/quota/a%20b").await.text(),
        r#"{"agentId":"a b","remaining":100,"limit":100,"rate":10,"status":"new","message":"No requests made yet. Full quota available."}"#
    );
    assert_eq!(
        limiter
            .post(r#"{"agentId":"a b","tokens":30}"#)
            .await
            .status,
        200
    );
    limiter.door.pass_ms(1_000);
    let answer = limiter.get("/api/quota/a%20b").await;
    assert_eq!(
        answer.text(),
        r#"{"agentId":"a b","remaining":80,"limit":100,"rate":10,"status":"active","lastActivity":"2023-11-14T22:13:20.000Z"}"#
    );
    // Of agents that look alike each has its own.
    for (body, path) in [
        (r#"{"agentId":"a/b"}"#, "a%2Fb"),
        (r#"{"agentId":"a%2Fb"}"#, "a%252Fb"),
    ] {
        assert_eq!(limiter.post(body).await.json()["remaining"], 99);
        assert_eq!(
            limiter.get(&format!("/api/quota/{path}")).await.json()["remaining"],
            99
        );
    }
}

#[tokio::test]
async fn the_remaining_endpoints_of_the_original_are_served() {
    let limiter = Limiter::open().await;
    assert_eq!(
        limiter.get("/").await.text(),
        r#"{"name":"IRL - Intelligent Rate Limiter","version":"0.1.0","endpoints":{"health":"/health","testRedis":"/test-redis","testRateLimit":"/api/test-rate-limit","request":"POST /api/request","quota":"GET /api/quota/:agentId"}}"#
    );
    assert_eq!(
        limiter.get("/health").await.text(),
        r#"{"status":"ok","timestamp":"2023-11-14T22:13:20.000Z","redis":"embedded"}"#
    );
    assert_eq!(limiter.get("/test-redis").await.status, 501);
    assert_eq!(limiter.get("/nothing").await.status, 404);
    assert_eq!(limiter.get("/api/request").await.status, 404);
    let preflight = client::ask(limiter.address, "OPTIONS", "/api/request", &[], b"").await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("*"));
    let any = limiter.get("/nothing").await;
    assert_eq!(any.header("access-control-allow-origin"), Some("*"));
    let head = client::ask(limiter.address, "HEAD", "/health", &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    // Without a limit nothing says how much there is.
    let none = json!({"limits": [], "reason": "x"});
    assert_eq!(
        limiter.door.ask("PUT", "/v1/policies", &none).await.status,
        200
    );
    assert_eq!(limiter.post(r#"{"agentId":"a"}"#).await.status, 503);
}

#[tokio::test]
async fn a_client_cannot_exceed_its_window_with_forged_forwarded_headers() {
    let limiter = Limiter::open().await;
    let ask = async |number: usize| {
        let forwarded = format!("10.0.0.{}", number % 250);
        let headers = [("x-forwarded-for", forwarded.as_str())];
        client::ask(
            limiter.address,
            "GET",
            "/api/test-rate-limit",
            &headers,
            b"",
        )
        .await
    };
    let first = ask(0).await;
    assert_eq!(
        first.text(),
        r#"{"message":"Request successful!","requestNumber":1,"remaining":99,"limit":100,"resetTime":1700000060}"#
    );
    for number in 1..100 {
        assert_eq!(ask(number).await.status, 200);
    }
    limiter.door.pass_ms(20_500);
    let refused = ask(100).await;
    assert_eq!(refused.status, 429);
    assert_eq!(
        refused.text(),
        r#"{"error":"Too Many Requests","message":"Rate limit exceeded. Please try again later.","retryAfter":40}"#
    );
    assert_eq!(
        limits(&refused),
        [Some("100"), Some("0"), Some("1700000060")]
    );
}

#[tokio::test]
async fn only_the_address_that_a_trusted_proxy_adds_is_used() {
    let limiter = Limiter::behind(vec![[127, 0, 0, 1].into()]).await;
    let ask = async |forwarded: &str| {
        let headers = [("x-forwarded-for", forwarded)];
        let path = "/api/test-rate-limit";
        client::ask(limiter.address, "GET", path, &headers, b"")
            .await
            .json()["requestNumber"]
            .clone()
    };
    assert_eq!(ask("10.0.0.1").await, 1);
    assert_eq!(ask("10.0.0.2").await, 1);
    // What the client wrote itself stands before what the proxy saw.
    assert_eq!(ask("10.9.9.9, 10.0.0.1").await, 2);
    assert_eq!(ask("10.9.9.9, 10.0.0.1, 127.0.0.1").await, 3);
    assert_eq!(ask("10.0.0.1, nonsense").await, 1);
    assert_eq!(ask("nonsense").await, 2);
}

#[tokio::test]
async fn http_1_0_connections_close_unless_keep_alive_is_requested() {
    let limiter = Limiter::open().await;
    let once = "POST /api/request HTTP/1.0\r\nContent-type: application/json\r\nContent-length: 15\r\n\r\n{\"agentId\":\"a\"}";
    let text = limiter.send_raw(once).await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(
        text.contains("\r\nConnection: close\r\n") && text.ends_with("\"limit\":100}"),
        "{text}"
    );
    let kept = once.replace("\r\n\r\n", "\r\nConnection: Keep-Alive\r\n\r\n");
    let text = limiter.send_raw(&format!("{kept}{once}")).await;
    assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{text}");
    assert_eq!(
        text.matches("\r\nConnection: keep-alive\r\n").count(),
        1,
        "{text}"
    );
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_across_fast_path_and_hyper() {
    let limiter = Limiter::open().await;
    let take = "POST /api/request HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{\"agentId\":\"a\"}";
    let odd = "GET /api/quota/a?x=1 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let chunked = "POST /api/request HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"age\r\na\r\nntId\":\"a\"}\r\n0\r\n\r\n";
    let last = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let text = limiter
        .send_raw(&format!("{take}{take}{odd}{chunked}{take}{last}"))
        .await;
    let bodies: Vec<Value> = text
        .split("\r\n\r\n")
        .skip(1)
        .map(|part| {
            let end = part.find("HTTP/1.1").unwrap_or(part.len());
            serde_json::from_str(&part[..end]).unwrap()
        })
        .collect();
    let remaining: Vec<_> = bodies
        .iter()
        .map(|body| body["remaining"].as_u64())
        .collect();
    assert_eq!(
        remaining,
        [Some(99), Some(98), Some(98), Some(97), Some(96), None],
        "{text}"
    );
    assert_eq!(bodies[5]["status"], "ok");
}

#[tokio::test]
async fn requests_may_arrive_byte_by_byte_or_with_expect_100_continue() {
    let limiter = Limiter::open().await;
    let body = r#"{"agentId":"slow"}"#;
    let request = format!(
        "POST /api/request HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(limiter.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in request.as_bytes() {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.ends_with("\"remaining\":99,\"limit\":100}"), "{text}");
    let expecting = request.replace(
        "host: localhost\r\n",
        "host: localhost\r\nexpect: 100-continue\r\n",
    );
    let text = limiter.send_raw(&expecting).await;
    assert!(
        text.contains("100 Continue") && text.ends_with("\"remaining\":98,\"limit\":100}"),
        "{text}"
    );
}

#[tokio::test]
async fn oversized_bodies_and_invalid_http_are_refused_and_the_listener_survives() {
    let limiter = Limiter::open().await;
    let of_size = |size: usize| format!("{{\"agentId\":\"{}\"}}", "x".repeat(size));
    // As Express, it takes bodies of up to 100 KiB.
    assert_eq!(
        limiter.post(&of_size(70 << 10)).await.json()["message"],
        "agentId is too long"
    );
    let large = limiter.post(&of_size(101 << 10)).await;
    assert_eq!(
        (large.status, &large.json()["error"]),
        (413, &json!("Payload Too Large"))
    );
    let text = limiter.send_raw("GARBAGE\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
    let smuggled = "POST /api/request HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\ncontent-length: 15\r\n\r\n{}";
    let text = limiter.send_raw(smuggled).await;
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
    assert_eq!(limiter.get("/health").await.status, 200);
}

#[tokio::test]
async fn a_sync_take_fails_if_the_disk_fails() {
    let limiter = Limiter::open().await;
    let limit = json!({"name": "agent", "match": "default/default/*", "unit": "requests",
        "capacity": 100, "refill": "10/s", "durability": "sync"});
    let body = json!({"limits": [limit], "reason": "money"});
    assert_eq!(
        limiter.door.ask("PUT", "/v1/policies", &body).await.status,
        200
    );
    assert_eq!(limiter.post(r#"{"agentId":"a"}"#).await.status, 200);
    let is_sync = |call: &Call<'_>| call.kind == Kind::SyncData;
    limiter.door.disk.fail_once(Fault::Broken, is_sync);
    for _ in 0..2 {
        let answer = limiter.post(r#"{"agentId":"a"}"#).await;
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert_eq!(answer.json()["error"], "Service Unavailable");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    }
    assert_eq!(limiter.get("/health").await.status, 503);
}

#[tokio::test]
async fn pipelined_requests_are_admitted_up_to_the_exact_limit() {
    let limiter = Limiter::open().await;
    let take = "POST /api/request HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{\"agentId\":\"a\"}";
    let last = take.replace(
        "host: localhost\r\n",
        "host: localhost\r\nconnection: close\r\n",
    );
    let thousand = format!("{}{last}", take.repeat(499));
    let first = limiter.send_raw(&thousand).await;
    limiter.door.pass_ms(1_984);
    let second = limiter.send_raw(&thousand).await;
    let allowed = [first, second].map(|text| text.matches("\"success\":true").count());
    assert_eq!(allowed, [100, 19]);
}

#[tokio::test]
async fn paths_match_as_express_matches_them() {
    let limiter = Limiter::open().await;
    for path in ["/health/", "/HEALTH", "/api/quota/a/", "/Api/Quota/a", "/"] {
        assert_eq!(limiter.get(path).await.status, 200, "{path}");
    }
    let body = json!({"agentId": "a"}).to_string();
    for path in ["/api/request/", "/API/Request"] {
        let answer = client::ask(limiter.address, "POST", path, &JSON, body.as_bytes()).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(limiter.get("/api/quota/a/").await.json()["remaining"], 98);
    for path in ["/health//", "/api/request", "/nothing"] {
        assert_eq!(limiter.get(path).await.status, 404, "{path}");
    }
    for agent in ["%zz", "%ff"] {
        let answer = limiter.get(&format!("/api/quota/{agent}")).await;
        let message = format!("Failed to decode param '{agent}'");
        assert_eq!(
            (answer.status, answer.json()),
            (400, json!({"error": "Bad Request", "message": message}))
        );
    }
}

#[tokio::test]
async fn only_json_is_read_as_express_does() {
    let limiter = Limiter::open().await;
    let body = json!({"agentId": "a"}).to_string();
    let ask = async |headers: &[(&str, &str)]| {
        client::ask(
            limiter.address,
            "POST",
            "/api/request",
            headers,
            body.as_bytes(),
        )
        .await
    };
    let typed = |content_type: &'static str| [("content-type", content_type)];
    for content_type in ["text/plain", "application/vnd.api+json"] {
        let answer = ask(&typed(content_type)).await;
        assert_eq!(
            (answer.status, &answer.json()["message"]),
            (400, &json!("agentId is required and must be a string")),
            "{content_type}"
        );
    }
    assert_eq!(ask(&[]).await.status, 400);
    assert_eq!(
        ask(&typed("application/json; charset=utf-8")).await.status,
        200
    );
    let encoded = [JSON[0], ("content-encoding", "gzip")];
    assert_eq!(ask(&encoded).await.status, 415);
}
