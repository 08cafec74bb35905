//! An HTTP client for JSON.

use std::future::poll_fn;
use std::time::Duration;

use net::Stream;
use serde_json::Value;
use sim::Dialer;

use super::write;

/// Pause before a request is sent again.
const PAUSE: Duration = Duration::from_millis(20);

/// Number of attempts after which a request has failed for good.
const ATTEMPTS_MAX: usize = 500;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that opens a connection for each request.
pub(crate) struct Http(pub(crate) Dialer);

impl Http {
    /// Asks until there is an answer that is none of a server in trouble. A request whose
    /// connection was lost is sent again, so it may be executed several times. `lost` is called
    /// each time.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        mut lost: impl FnMut(),
    ) -> (u16, Value) {
        for _ in 0..ATTEMPTS_MAX {
            let answer = tokio::time::timeout(PATIENCE, self.try_ask(method, path, body));
            match answer.await.expect("every request is answered") {
                Some((status, json)) if status < 500 => return (status, json),
                _ => lost(),
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!(
            "no answer to {method} {path}: {:?}",
            self.try_ask(method, path, body).await
        );
    }

    async fn try_ask(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let mut stream = self.0.http().ok()?;
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        write(&*stream.sink, &[head.as_bytes(), body.as_bytes()].concat()).await?;
        let answer = read(&mut stream).await;
        stream.sink.close();
        parse(&answer)
    }
}

/// Reads to the end of the connection.
async fn read(stream: &mut Stream) -> Vec<u8> {
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match poll_fn(|cx| stream.source.poll_read(cx, &mut chunk)).await {
            Ok(0) | Err(_) => return bytes,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Returns the status and the document of an answer; `None` if it is incomplete.
fn parse(answer: &[u8]) -> Option<(u16, Value)> {
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).unwrap().to_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &answer[end + 4..];
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.expect("an answer has a length").parse().ok()?;
    if body.len() < length {
        return None;
    }
    Some((status, serde_json::from_slice(body).unwrap_or(Value::Null)))
}
