//! The listeners while another member leads: the bytes of each client are passed to the leader.
//!
//! Requests for the health of this node are answered here: `/healthz`, `/livez` and `/readyz`.

use std::sync::Arc;
use std::time::Duration;

use cluster::Node;
use config::{Config, HostPort};
use console::Failure;
use net::Stream;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::pipes::{Protocol, splice};
use crate::listeners::bind_tcp;

/// Clients at most.
const CLIENTS_MAX: usize = 10_000;

/// Time to wait for a leader.
const LEADER_MAX: Duration = Duration::from_secs(3);

/// Pause between two looks for a leader, and after an error of a listener.
const PAUSE: Duration = Duration::from_millis(50);

/// Time limit for the first bytes of an HTTP request.
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// Bytes of the request line that are looked at.
const LINE_SIZE: usize = 64;

/// The listeners, which close when this is dropped, as do their clients.
pub(super) struct Front {
    tasks: JoinSet<()>,
}

impl Front {
    /// Binds the configured addresses and passes clients to the leader.
    pub(super) async fn start(config: &Config, node: &Arc<Node>) -> Result<Front, Failure> {
        let listeners: [(&str, Option<&HostPort>, Protocol); 3] = [
            (
                "native.listen",
                config.native.listen.as_ref(),
                Protocol::Native,
            ),
            ("http.listen", config.http.listen.as_ref(), Protocol::Http),
            (
                "kafka.listen",
                config.kafka.listen.as_ref(),
                Protocol::Kafka,
            ),
        ];
        let is_plain = config.tls.files().is_none();
        let room = Arc::new(Semaphore::new(CLIENTS_MAX));
        let mut tasks = JoinSet::new();
        for (key, listen, protocol) in listeners {
            if let Some(listener) = bind_tcp(key, listen).await? {
                let (node, room) = (node.clone(), room.clone());
                tasks.spawn(accept(listener, protocol, is_plain, node, room));
            }
        }
        Ok(Front { tasks })
    }

    /// Closes the listeners, and disconnects the clients.
    pub(super) async fn close(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn accept(
    listener: TcpListener,
    protocol: Protocol,
    is_plain: bool,
    node: Arc<Node>,
    room: Arc<Semaphore>,
) {
    // Clients end with the listener.
    let mut clients = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = clients.join_next() => continue,
        };
        let Ok((socket, _)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        // A client above the limit is disconnected.
        if let Ok(permit) = room.clone().try_acquire_owned() {
            let node = node.clone();
            clients.spawn(async move {
                serve(socket, protocol, is_plain, &node).await;
                drop(permit);
            });
        }
    }
}

async fn serve(mut socket: TcpStream, protocol: Protocol, is_plain: bool, node: &Node) {
    let is_http = protocol == Protocol::Http && is_plain;
    if is_http {
        let mut line = [0; LINE_SIZE];
        let peeked = timeout(REQUEST_MAX, socket.peek(&mut line)).await;
        let Ok(Ok(size)) = peeked else {
            return;
        };
        if let Some(answer) = health(&line[..size], node) {
            // A client that has gone needs no answer.
            let _ = socket.write_all(answer.as_bytes()).await;
            return;
        }
    }
    match pipe(node, protocol).await {
        Some(stream) => splice(stream, socket).await,
        None if is_http => {
            let body = json!({"error": {
                "code": "unavailable",
                "message": "no member leads the cluster now",
                "hint": "wait a moment and repeat the request",
            }});
            let answer = response("503 Service Unavailable", &body.to_string());
            let _ = socket.write_all(answer.as_bytes()).await;
        }
        None => {}
    }
}

/// Connects to the leader, if there is one within some seconds.
async fn pipe(node: &Node, protocol: Protocol) -> Option<Stream> {
    let deadline = Instant::now() + LEADER_MAX;
    while Instant::now() < deadline {
        if let Some(leader) = node.leader().filter(|leader| *leader != node.id())
            && let Ok(stream) = node.open_pipe(leader).await
            && net::write_all(&*stream.sink, &[protocol as u8])
                .await
                .is_ok()
        {
            return Some(stream);
        }
        sleep(PAUSE).await;
    }
    None
}

/// Returns the answer to a request for the node's health.
fn health(line: &[u8], node: &Node) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let path = text.strip_prefix("GET ")?.split([' ', '?']).next()?;
    match path {
        "/healthz" | "/livez" => Some(response("200 OK", "{\"status\":\"ok\"}")),
        "/readyz" => {
            let leader = node.leader().filter(|leader| *leader != node.id());
            let body = json!({"ready": leader.is_some(), "role": "follower", "leader": leader});
            let status = match leader {
                Some(_) => "200 OK",
                None => "503 Service Unavailable",
            };
            Some(response(status, &body.to_string()))
        }
        _ => None,
    }
}

fn response(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}
