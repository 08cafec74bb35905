//! Webhooks: the tests act as the agents that the node calls.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use client::{Client, Name, Request, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Node, Place, eventually};

/// Time limit of every wait in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An agent, which hands out the calls that it gets.
struct Agent {
    url: String,
    asked: Receiver<WebhookCall>,
}

/// A call, with the means to answer it.
struct WebhookCall {
    head: String,
    body: Value,
    socket: TcpStream,
}

impl Agent {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let sender = sender.clone();
                thread::spawn(move || {
                    // A killed node closes the connection before its request.
                    if let Some(asked) = read_call(socket.unwrap()) {
                        let _ = sender.send(asked);
                    }
                });
            }
        });
        Self { url, asked }
    }

    #[track_caller]
    fn next(&self) -> WebhookCall {
        self.asked.recv_timeout(PATIENCE).unwrap()
    }
}

fn read_call(socket: TcpStream) -> Option<WebhookCall> {
    let mut reader = BufReader::new(socket.try_clone().ok()?);
    let (head, body) = read_request(&mut reader)?;
    Some(WebhookCall { head, body, socket })
}

/// Reads the head of a call, in lower case, and its body; `None` if the connection ends before.
pub(crate) fn read_request(reader: &mut impl BufRead) -> Option<(String, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    head.make_ascii_lowercase();
    let size = head.split("content-length: ").nth(1)?;
    let mut body = vec![0; size.lines().next()?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).ok()?))
}

impl WebhookCall {
    fn answer(mut self, status: u16, content_type: &str, body: &str) {
        let size = body.len();
        let head = format!(
            "HTTP/1.1 {status} Said\r\ncontent-type: {content_type}\r\nconnection: close\r\n\
             content-length: {size}\r\n\r\n"
        );
        // Fails if the node was killed.
        let _ = self.socket.write_all((head + body).as_bytes());
    }

    fn id(&self) -> String {
        self.body["delivery_id"].as_str().unwrap().to_owned()
    }

    fn seqs(&self) -> (u64, u64) {
        let seq = |name: &str| self.body[name].as_u64().unwrap();
        (seq("from_seq"), seq("to_seq"))
    }
}

/// Sends a request to the node's HTTP listener; returns the status and the body.
fn ask(node: &Node, method: &str, path: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(node.address("http")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let size = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {size}\r\nConnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[track_caller]
pub(crate) fn expect(node: &Node, method: &str, path: &str, body: &Value, status: u16) -> Value {
    let (found, text) = ask(node, method, path, body);
    assert_eq!(found, status, "{method} {path}: {text}");
    serde_json::from_str(&text).unwrap_or_default()
}

/// Starts a node with the conversation `c`, which the agent answers with these settings.
fn set_up(node: &Node, agent: &Agent, settings: Value) {
    let mut settings = settings;
    settings["url"] = agent.url.clone().into();
    expect(node, "PUT", "/v1/agents/bot", &settings, 201);
    let named = json!({"agent": "bot"});
    expect(node, "PUT", "/v1/conversations/c", &named, 201);
}

pub(crate) fn append_text(node: &Node, text: &str) {
    let message = json!({"messages": [{"role": "user", "from": "alice", "content": text}]});
    expect(node, "POST", "/v1/conversations/c/messages", &message, 201);
}

pub(crate) fn messages(node: &Node) -> Vec<Value> {
    let page = expect(
        node,
        "GET",
        "/v1/conversations/c/messages?last=100",
        &Value::Null,
        200,
    );
    page["messages"].as_array().unwrap().clone()
}

pub(crate) fn text(message: &Value) -> &str {
    message["parts"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn a_webhook_gets_the_context_window_and_its_response_is_appended() {
    let place = Place::new();
    let (node, agent) = (place.serve(""), Agent::start());
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let settings = json!({"secret": secret, "debounce_ms": 20, "headers": {"x-tenant": "blue"}});
    set_up(&node, &agent, settings);
    append_text(&node, "anybody there?");
    let asked = agent.next();
    assert_eq!(asked.seqs(), (1, 1));
    assert_eq!(asked.body["conversation"], "default/default/c");
    assert_eq!(
        text(&asked.body["context"]["messages"][0]),
        "anybody there?"
    );
    assert_eq!(asked.body["context"]["budget"], 8_000);
    let id = asked.id();
    for line in [
        &*format!("webhook-id: {id}"),
        "webhook-signature: v1,",
        "x-tenant: blue",
    ] {
        assert!(asked.head.contains(line), "{line}: {}", asked.head);
    }
    asked.answer(200, "application/json", r#"{"content":"I am"}"#);
    eventually("the answer is there", || messages(&node).len() == 2);
    let answer = &messages(&node)[1];
    assert_eq!((answer["id"].as_str(), text(answer)), (Some(&*id), "I am"));
    assert_eq!(
        (&answer["from"], &answer["role"]),
        (&json!("bot"), &json!("assistant"))
    );
    let state = expect(&node, "GET", "/v1/conversations/c", &Value::Null, 200);
    assert_eq!(state["cursors"]["bot"], 1);
    let shown = expect(&node, "GET", "/v1/agents/bot", &Value::Null, 200);
    assert_eq!(
        (&shown["signed"], &shown["waiting"]),
        (&json!(true), &json!(0))
    );
    assert!(!shown.to_string().contains(secret));
    let listed = expect(&node, "GET", "/v1/webhooks", &Value::Null, 200);
    assert_eq!(listed["agents"][0]["name"], "default/default/bot");
    // Plain text is an answer too, and the agent's own answers do not call it again.
    append_text(&node, "sure?");
    let asked = agent.next();
    assert_eq!(asked.seqs(), (3, 3));
    asked.answer(200, "text/plain", "quite \"sure\"");
    eventually("the second answer is there", || messages(&node).len() == 4);
    assert_eq!(text(&messages(&node)[3]), "quite \"sure\"");
    expect(&node, "DELETE", "/v1/agents/bot", &Value::Null, 204);
    expect(&node, "GET", "/v1/agents/bot", &Value::Null, 404);
    node.stop().expect(0);
}

#[test]
fn a_failing_webhook_is_retried_then_dead_lettered_and_redelivered_on_request() {
    let place = Place::new();
    let (node, agent) = (place.serve(""), Agent::start());
    set_up(&node, &agent, json!({"debounce_ms": 0, "pause_ms": 10}));
    append_text(&node, "hello");
    let asked = agent.next();
    let id = asked.id();
    asked.answer(503, "text/plain", "later");
    let asked = agent.next();
    assert_eq!(
        (asked.id(), &asked.body["attempt"]),
        (id.clone(), &json!(2))
    );
    // The connection breaks: the outcome is unknown.
    drop(asked);
    let asked = agent.next();
    asked.answer(404, "text/plain", "what?");
    let dead = || expect(&node, "GET", "/v1/agents/bot/dead", &Value::Null, 200);
    eventually("there is a dead letter", || {
        dead()["dead"].as_array().unwrap().len() == 1
    });
    let letter = &dead()["dead"][0];
    assert_eq!(letter["conversation"], "default/default/c");
    assert_eq!(
        (&letter["status"], &letter["attempts"]),
        (&json!(404), &json!(3))
    );
    for (name, value) in [
        ("telpher_webhook_agents", 1),
        ("telpher_webhook_waiting", 0),
        ("telpher_webhook_calling", 0),
        ("telpher_webhook_dead", 1),
        ("telpher_webhook_calls_total", 3),
        ("telpher_webhook_answers_total", 0),
        ("telpher_webhook_failures_total", 3),
        ("telpher_webhook_dead_letters_total", 1),
    ] {
        assert_eq!(node.metric(name), value, "{name}");
    }
    node.stop().expect(0);
    let node = place.serve("");
    expect(
        &node,
        "POST",
        "/v1/agents/bot/dead/c/retry",
        &Value::Null,
        202,
    );
    expect(
        &node,
        "POST",
        "/v1/agents/bot/dead/c/retry",
        &Value::Null,
        404,
    );
    let asked = agent.next();
    assert_eq!(asked.id(), id);
    asked.answer(200, "application/json", r#""here""#);
    eventually("the answer is there", || messages(&node).len() == 2);
    assert_eq!(text(&messages(&node)[1]), "here");
    node.stop().expect(0);
}

#[test]
fn an_invalid_streamed_answer_leaves_no_message_and_frees_its_id() {
    const TYPE: &str = "application/jsonl";
    let place = Place::new();
    let (node, agent) = (place.serve(""), Agent::start());
    set_up(&node, &agent, json!({"debounce_ms": 0, "pause_ms": 10}));
    append_text(&node, "hello");
    // The answer ends before it has begun, so the agent is called again.
    agent.next().answer(200, TYPE, "");
    let asked = agent.next();
    let id = asked.id();
    asked.answer(200, TYPE, "{\"type\":\"what is that\"\n");
    let dead = || expect(&node, "GET", "/v1/agents/bot/dead", &Value::Null, 200);
    eventually("there is a dead letter", || {
        dead()["dead"].as_array().unwrap().len() == 1
    });
    assert!(dead()["dead"][0]["reason"].is_string(), "{}", dead());
    assert_eq!(messages(&node).len(), 1);
    let path = "/v1/agents/bot/dead/c/retry";
    expect(&node, "POST", path, &Value::Null, 202);
    let chunks = "{\"type\":\"start\"}\n{\"type\":\"text-start\",\"id\":\"t\"}\n\
                  {\"type\":\"text-delta\",\"id\":\"t\",\"delta\":\"well\"}\n\
                  {\"type\":\"text-end\",\"id\":\"t\"}\n{\"type\":\"finish\"}\n";
    agent.next().answer(200, TYPE, chunks);
    eventually("the answer is there", || messages(&node).len() == 2);
    let answer = &messages(&node)[1];
    assert_eq!((answer["id"].as_str(), text(answer)), (Some(&*id), "well"));
    node.stop().expect(0);
}

#[test]
fn a_webhook_answer_is_appended_once_across_kill9() {
    const ROUNDS: u64 = 6;
    let place = Place::new();
    let agent = Agent::start();
    let mut node = place.serve("");
    set_up(&node, &agent, json!({"debounce_ms": 0, "pause_ms": 10}));
    for round in 0..ROUNDS {
        append_text(&node, &format!("question {round}"));
        let asked = agent.next();
        let (from, to) = asked.seqs();
        assert_eq!((from, to), (2 * round + 1, 2 * round + 1));
        let id = asked.id();
        let answer = format!(r#"{{"content":"answer {round}"}}"#);
        asked.answer(200, "application/json", &answer);
        thread::sleep(Duration::from_micros(fastrand::u64(0..4_000)));
        node.signal(Signal::KILL);
        node.end();
        node = place.serve("");
        // The call may be repeated, with the same id.
        eventually("the answer is there", || {
            while let Ok(again) = agent.asked.try_recv() {
                assert_eq!(again.id(), id);
                again.answer(200, "application/json", &answer);
            }
            messages(&node).len() as u64 == 2 * (round + 1)
        });
        let last = messages(&node).pop().unwrap();
        assert_eq!(
            (last["id"].as_str(), text(&last)),
            (Some(&*id), &*format!("answer {round}"))
        );
    }
    node.stop().expect(0);
}

#[test]
fn a_streamed_webhook_answer_is_shown_live_and_interrupted_by_newer_messages() {
    let place = Place::new();
    let (node, agent) = (place.serve(""), Agent::start());
    set_up(
        &node,
        &agent,
        json!({"debounce_ms": 0, "on_busy": "interrupt"}),
    );
    let mut watch = TcpStream::connect(node.address("http")).unwrap();
    watch.set_read_timeout(Some(PATIENCE)).unwrap();
    watch
        .write_all(
            b"GET /v1/conversations/c/messages HTTP/1.1\r\nHost: localhost\r\n\
              Accept: text/event-stream\r\n\r\n",
        )
        .unwrap();
    let mut lines = BufReader::new(watch).lines();
    let mut watched = |what: &str| {
        let found = lines.find(|line| line.as_ref().unwrap().contains(what));
        found
            .unwrap_or_else(|| panic!("{what} is not shown"))
            .unwrap()
    };
    append_text(&node, "tell me a story");
    let mut first = agent.next();
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/jsonl\r\nconnection: close\r\n\r\n";
    first.socket.write_all(head).unwrap();
    let begun = b"{\"type\":\"start\"}\n{\"type\":\"text-start\",\"id\":\"t\"}\n\
                  {\"type\":\"text-delta\",\"id\":\"t\",\"delta\":\"once upon\"}\n";
    first.socket.write_all(begun).unwrap();
    assert!(watched("once upon").contains(&first.id()));
    append_text(&node, "a short one");
    // The node closes the connection, and the part of the answer becomes a message.
    first.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(first.socket.read(&mut [0; 1]).unwrap_or(0), 0);
    watched("\"status\":\"stopped\"");
    let mut second = agent.next();
    assert_eq!(second.seqs(), (1, 2));
    second.socket.write_all(head).unwrap();
    second.socket.write_all(begun).unwrap();
    let end = b"{\"type\":\"text-end\",\"id\":\"t\"}\n{\"type\":\"finish\"}\n";
    second.socket.write_all(end).unwrap();
    drop(second.socket.shutdown(std::net::Shutdown::Write));
    eventually("the answer is there", || messages(&node).len() == 4);
    let all = messages(&node);
    assert_eq!(
        (all[2]["status"].as_str(), text(&all[2])),
        (Some("stopped"), "once upon")
    );
    assert_eq!(
        (&all[3]["status"], text(&all[3])),
        (&Value::Null, "once upon")
    );
    assert_eq!(all[3]["id"].as_str(), second.body["delivery_id"].as_str());
    let state = expect(&node, "GET", "/v1/conversations/c", &Value::Null, 200);
    assert_eq!(state["cursors"]["bot"], 2);
    node.stop().expect(0);
}

#[test]
fn on_busy_reject_refuses_messages_and_allows_a_late_answer() {
    let place = Place::new();
    let (node, agent) = (place.serve(""), Agent::start());
    set_up(
        &node,
        &agent,
        json!({"debounce_ms": 0, "on_busy": "reject"}),
    );
    append_text(&node, "think");
    let asked = agent.next();
    let id = asked.id();
    let other = json!({"messages": [{"role": "user", "content": "and?"}]});
    let problem = expect(&node, "POST", "/v1/conversations/c/messages", &other, 409);
    assert_eq!(
        (&problem["code"], &problem["seq"]),
        (&json!("busy"), &json!(1))
    );
    asked.answer(202, "text/plain", "");
    let own =
        json!({"messages": [{"id": id, "role": "assistant", "from": "bot", "content": "so"}]});
    expect(&node, "POST", "/v1/conversations/c/messages", &own, 201);
    let state = expect(&node, "GET", "/v1/conversations/c", &Value::Null, 200);
    assert_eq!(state["cursors"]["bot"], 1);
    eventually("it wants messages again", || {
        ask(&node, "POST", "/v1/conversations/c/messages", &other).0 == 201
    });
    assert_eq!(agent.next().seqs(), (3, 3));
    node.stop().expect(0);
}

#[test]
fn webhook_urls_outside_the_allow_list_are_refused() {
    let place = Place::new();
    let node = place.serve("--webhook-allow *.bots.test");
    let put = |url: &str| ask(&node, "PUT", "/v1/agents/bot", &json!({"url": url}));
    for url in [
        "http://169.254.169.254/",
        "file:///etc/passwd",
        "http://bots.test/",
        "nonsense",
    ] {
        let (status, text) = put(url);
        assert_eq!(status, 400, "{url}: {text}");
    }
    assert_eq!(put("https://a.bots.test/").0, 201);
    let slip = expect(&node, "PUT", "/v1/agents/bot", &json!({"debounce": 1}), 400);
    let detail = slip["detail"].as_str().unwrap();
    assert!(detail.contains("is `debounce_ms` meant?"), "{detail}");
    node.stop().expect(0);
    let ended = place.run("serve --webhook-allow ftp://a");
    ended.expect(2).shows_error("webhook.allow", "patterns");
}

#[tokio::test]
async fn an_agent_without_a_url_is_called_by_its_name() {
    let place = Place::new();
    let node = place.serve("");
    let client = Client::connect(node.url("native")).await.unwrap();
    let server = Server::new().handle_sync("conversation", |request: Request| {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let said = text(&asked["context"]["messages"][0]).to_owned();
        Ok(json!({"content": format!("{said} yourself")}).to_string())
    });
    let name = Name::parse("default/default/bot").unwrap();
    let _attached = server.attach(&client, &name).await.unwrap();
    expect(
        &node,
        "PUT",
        "/v1/agents/bot",
        &json!({"debounce_ms": 0}),
        201,
    );
    expect(
        &node,
        "PUT",
        "/v1/conversations/c",
        &json!({"agent": "bot"}),
        201,
    );
    let saying = tokio::task::spawn_blocking(move || {
        append_text(&node, "hello");
        eventually("the answer is there", || messages(&node).len() == 2);
        assert_eq!(text(&messages(&node)[1]), "hello yourself");
        node
    });
    saying.await.unwrap().stop().expect(0);
}
