//! Lifetime of a stream: until its client disconnects or its token expires.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use door_slim::{Jwt, Options};
use messaging::Limits;
use model::ErrorCode;
use platform::Counter;
use ring::hmac;
use slim::Name;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use crate::agent::{CARRIERS, Carrier, call, connect_websocket, request, status};
use crate::{Agent, Bench, PATIENCE, until};

/// An in-process connection: the paused clock advances when all tasks are idle.
struct InProcessStream(net::Stream);

impl AsyncRead for InProcessStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.source.poll_read(cx, buffer.initialize_unfilled());
        buffer.advance(ready!(read)?);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for InProcessStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.0.sink.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.0.sink.poll_writable(cx))?;
                }
                written => return Poll::Ready(written),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.sink.try_flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.sink.finish();
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_live_connection_is_never_closed_by_age() {
    let bench = Bench::new().await;
    let listener = net::inproc::listen("a SLIM door").unwrap();
    let near = InProcessStream(net::inproc::connect("a SLIM door").unwrap());
    let far = listener.accept().await;
    let door = bench.door.clone();
    tokio::spawn(async move { door.serve(far).await });
    let mut agent = Agent::open_on(near).await.negotiated("a", 1).await;
    assert_eq!(agent.subscribe(agent.name()).await, None);
    // A SLIM node sends everybody away after two hours.
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
    assert_eq!(bench.door.subscription_count(), 1);
    let another = Name::new(["org", "ns", "another"], None);
    assert_eq!(agent.subscribe(another).await, None);
    assert_eq!(
        (bench.count(Counter::Opened), bench.count(Counter::Silent)),
        (1, 0)
    );
}

const SECRET: &[u8] = b"a-secret-of-at-least-32-characters!!";

/// What clocks may differ by.
const LEEWAY_MS: u64 = 60_000;

async fn bench_with_jwt() -> Bench {
    let jwt = Jwt::new(SECRET, None, None).unwrap();
    let options = Options {
        jwt: Some(Arc::new(jwt)),
        ..Options::default()
    };
    Bench::with_options(options).await
}

/// A token that is good for so long, clocks that differ included.
fn token(bench: &Bench, good_ms: u64) -> String {
    let end_ms = bench.node.ports().clock.unix_ms() + good_ms - LEEWAY_MS;
    let end = end_ms as f64 / 1000.0;
    let part = |json: String| BASE64.encode(json);
    let signed = format!(
        "{}.{}",
        part(r#"{"alg":"HS256","typ":"JWT"}"#.to_owned()),
        part(format!(r#"{{"sub":"billing","exp":{end}}}"#)),
    );
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
    let signature = BASE64.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{signed}.{signature}")
}

async fn open_with(bench: &Bench, carrier: Carrier, shown: &str) -> Agent {
    match carrier {
        Carrier::Grpc => Agent::open_with(bench, shown).await,
        Carrier::WebSocket => {
            let shaken = connect_websocket(bench, "/", ("authorization", shown)).await;
            Agent::of_socket(shaken.unwrap())
        }
    }
}

#[tokio::test]
async fn a_stream_ends_when_its_jwt_expires() {
    let bench = bench_with_jwt().await;
    // UNAUTHENTICATED, and policy: a client hears of it and comes back with another.
    for (carrier, ended) in CARRIERS.into_iter().zip(["16", "1008"]) {
        let lasting = format!("Bearer {}", token(&bench, 3_600_000));
        let lasting = open_with(&bench, carrier, &lasting).await;
        let mut lasting = lasting.negotiated("lasting", 1).await;
        let short = token(&bench, 2_000);
        let shown = format!("Bearer {short}");
        let agent = open_with(&bench, carrier, &shown).await;
        let mut agent = agent.negotiated("short", 2).await;
        assert_eq!(agent.subscribe(agent.name()).await, None);
        let last_ms = bench.node.ports().clock.unix_ms();
        assert_eq!(agent.end().await, ended);
        assert!(bench.node.ports().clock.unix_ms() > last_ms);
        until("its subscription to end", || {
            bench.door.subscription_count() == 0
        })
        .await;
        assert_eq!(lasting.subscribe(lasting.name()).await, None);
        drop(lasting);
        until("both to have gone", || {
            bench.node.messaging().connection_count() == 0
        })
        .await;
    }
}

#[tokio::test]
async fn an_expired_jwt_is_refused() {
    let bench = bench_with_jwt().await;
    let shown = format!("Bearer {}", token(&bench, 0));
    let asked = request().header("authorization", &shown);
    let (response, _send) = call(&bench, asked.body(()).unwrap()).await;
    let response = timeout(PATIENCE, response).await.unwrap().unwrap();
    assert_eq!(status(response.headers()), "16");
    assert!(
        connect_websocket(&bench, "/", ("authorization", &shown))
            .await
            .is_err()
    );
    assert_eq!(bench.count(Counter::Unauthenticated), 2);
}

#[tokio::test]
async fn a_client_with_a_revoked_token_is_closed_with_a_permanent_error() {
    // PERMISSION_DENIED, on which a client of gRPC gives up; a WebSocket finds the door shut.
    for (carrier, ended) in CARRIERS.into_iter().zip(["7", "1008"]) {
        let bench = Bench::with(Options::default(), Limits::default(), Arc::new(door::Open)).await;
        let agent = Agent::subscribed_over(&bench, carrier, "a", 1).await;
        let reason = |_: &messaging::Facts| Some("the token was revoked".to_owned());
        assert_eq!(
            bench
                .node
                .messaging()
                .dismiss(ErrorCode::Unauthenticated, reason),
            1
        );
        assert_eq!(agent.end().await, ended);
        until("it to have gone", || {
            bench.node.messaging().connection_count() == 0
        })
        .await;
    }
}
