//! Calls to an HTTP server started by the test.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

fn caller() -> HttpCaller {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    HttpCaller::new(Allowed::parse("", true).unwrap(), Arc::new(tls))
}

fn request(url: String) -> Request {
    Request {
        target: Target::Url(url),
        id: "d-1".to_owned(),
        at_s: 7,
        secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned(),
        headers: vec![("x-tenant".to_owned(), "blue".to_owned())],
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
        body: Bytes::from_static(b"{}"),
        timeout: Duration::from_secs(20),
    }
}

/// Answers one request with these bytes and returns the request.
async fn serve(listener: TcpListener, answer: &str) -> String {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n{}") {
        assert!(socket.read_buf(&mut asked).await.unwrap() > 0);
    }
    socket.write_all(answer.as_bytes()).await.unwrap();
    String::from_utf8(asked).unwrap()
}

async fn call(answer: &str) -> (String, Result<Response, CallError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?a=b", listener.local_addr().unwrap());
    tokio::join!(serve(listener, answer), caller().call(request(url)))
}

async fn read(body: &mut Pin<Box<dyn Body>>) -> Result<Vec<u8>, CallError> {
    let mut all = Vec::new();
    while let Some(piece) = std::future::poll_fn(|cx| body.as_mut().poll_piece(cx)).await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}

#[tokio::test]
async fn a_call_has_its_headers_and_its_answer_is_streamed() {
    let answer = "HTTP/1.1 429 Slow\r\nretry-after: 3\r\ncontent-type: text/plain; a=b\r\n\
                  content-length: 5\r\n\r\nlater";
    let (asked, response) = call(answer).await;
    let mut response = response.unwrap();
    assert!(asked.starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{asked}");
    for line in [
        "webhook-id: d-1",
        "webhook-timestamp: 7",
        "webhook-signature: v1,",
        "x-tenant: blue",
        "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "content-type: application/json",
    ] {
        assert!(asked.contains(&format!("\r\n{line}")), "{line}: {asked}");
    }
    let found = (response.status, response.content_type.as_str());
    assert_eq!(found, (429, "text/plain; a=b"));
    assert_eq!(response.retry_after, Some(Duration::from_secs(3)));
    assert_eq!(read(&mut response.body).await.unwrap(), b"later");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let elsewhere =
        "HTTP/1.1 307 There\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
    let (_, response) = call(elsewhere).await;
    assert_eq!(response.unwrap().status, 307);
}

#[tokio::test]
async fn truncated_webhook_answer_is_an_error() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf";
    let (_, response) = call(cut).await;
    let mut response = response.unwrap();
    assert!(matches!(
        read(&mut response.body).await,
        Err(CallError::Lost(_))
    ));
}

#[tokio::test]
async fn unreachable_webhook_is_lost_and_disallowed_host_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let lost = caller().call(request(url)).await;
    assert!(matches!(lost, Err(CallError::Lost(_))), "{lost:?}");
    let refused = caller()
        .call(request("http://example.invalid/".to_owned()))
        .await;
    assert!(matches!(refused, Err(CallError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn headers_of_the_node_cannot_be_set() {
    let settings = |name: &str| WebhookSettings {
        target: Target::Url("http://127.0.0.1/".to_owned()),
        secret: String::new(),
        timeout_ms: 1,
        answer_ms: 1,
        headers: vec![(name.to_owned(), "x".to_owned())],
        context: None,
    };
    assert_eq!(caller().check(&settings("x-a")), Ok(()));
    for name in ["Host", "webhook-signature", "Content-Length", "a b"] {
        assert!(caller().check(&settings(name)).is_err(), "{name}");
    }
}
