//! Small HTTP/1.1 client: one keep-alive connection, one request at a time.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use bench::workload::role::Failure;

/// A keep-alive connection.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl Connection {
    /// Connects to `HOST:PORT`. Must run in a local set, in which the connection's task runs.
    ///
    /// # Errors
    /// When the connection fails.
    pub(super) async fn open(host: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The task ends with the connection; the next request reports the error.
        tokio::task::spawn_local(connection);
        Ok(Self {
            sender,
            host: host.to_owned(),
        })
    }

    /// Reconnects if the server has closed the connection, as servers do with idle ones. If that
    /// fails, the next request reports the error.
    pub(super) async fn renew(&mut self) {
        if self.sender.is_closed()
            && let Ok(renewed) = Self::open(&self.host).await
        {
            *self = renewed;
        }
    }

    /// Sends a request and reads its whole response.
    ///
    /// # Errors
    /// When the connection is lost before the end of the response.
    pub(super) async fn send(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, content_type)
            .body(Full::new(body.into()))?;
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok(Answer { status, body })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::task::LocalSet;

    use super::*;
    use bench::workload::role::runtime;

    /// Answers two requests on one connection, the second in chunks, and closes it on the third.
    async fn serve(listener: TcpListener) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut all = String::new();
        let answers = [
            "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nnot\r\n0\r\n\r\n",
        ];
        for answer in answers {
            let mut buffer = [0; 1024];
            let size = stream.read(&mut buffer).await.unwrap();
            all += std::str::from_utf8(&buffer[..size]).unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        all
    }

    #[test]
    fn a_closed_connection_is_renewed() {
        let local = LocalSet::new();
        local.block_on(&runtime().unwrap(), async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let host = listener.local_addr().unwrap().to_string();
            let mut connection = Connection::open(&host).await.unwrap();
            drop(listener.accept().await.unwrap());
            while !connection.sender.is_closed() {
                tokio::task::yield_now().await;
            }
            let server = tokio::task::spawn_local(serve(listener));
            connection.renew().await;
            let sent = connection.send(Method::POST, "/a", "text/plain", "hello");
            assert_eq!(sent.await.unwrap().status, StatusCode::CREATED);
            server.abort();
        });
    }

    #[test]
    fn a_connection_is_reused_and_its_loss_is_an_error() {
        let local = LocalSet::new();
        local.block_on(&runtime().unwrap(), async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let host = listener.local_addr().unwrap().to_string();
            let server = tokio::task::spawn_local(serve(listener));
            let mut connection = Connection::open(&host).await.unwrap();
            let mut post = async |path: &str| {
                let sent = connection.send(Method::POST, path, "text/plain", "hello");
                sent.await
            };
            let first = post("/a").await.unwrap();
            assert_eq!(
                (first.status, &first.body[..]),
                (StatusCode::CREATED, &b"ok"[..])
            );
            let second = post("/b").await.unwrap();
            assert_eq!(
                (second.status.as_u16(), &second.body[..]),
                (409, &b"not"[..])
            );
            assert!(post("/c").await.is_err());
            let heard = server.await.unwrap();
            assert!(heard.starts_with("POST /a HTTP/1.1\r\n"), "{heard}");
            assert!(
                heard.contains("\r\nhost: 127.0.0.1:") && heard.ends_with("hello"),
                "{heard}"
            );
        });
    }
}
