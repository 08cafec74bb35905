//! Unacknowledged messages arrive or are counted.

use std::io::{self, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use door_slim::Door;
use platform::Counter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::client_async;

use crate::agent::{CARRIERS, Carrier};
use crate::{Agent, Bench, PATIENCE, until};

const ONE: u32 = 1;

/// Counts of delivered, undeliverable and dropped messages; every message is in one of them.
fn ends(bench: &Bench) -> [u64; 3] {
    [Counter::Delivered, Counter::Undeliverable, Counter::Dropped].map(|end| bench.count(end))
}

/// Serves a connection on its own thread, as workers of a node do, and connects to it.
async fn connect_on_own_thread(door: Door) -> TcpStream {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let serving = async {
            let socket = TcpStream::from_std(socket).unwrap();
            door.serve(net::split_tcp(socket).unwrap()).await;
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(serving);
    });
    TcpStream::connect(address).await.unwrap()
}

async fn publisher_on_own_thread(bench: &Bench) -> Agent {
    let socket = connect_on_own_thread(bench.door.clone()).await;
    Agent::open_on(socket)
        .await
        .negotiated("publisher", 1)
        .await
}

#[tokio::test]
async fn messages_published_right_after_the_subscription_is_acknowledged_arrive() {
    const ROUNDS: u128 = 100;
    const COUNT: u32 = 50;
    let bench = Bench::new().await;
    let mut publisher = publisher_on_own_thread(&bench).await;
    for round in 0..ROUNDS {
        let carrier = CARRIERS[round as usize % CARRIERS.len()];
        let mut subscriber = Agent::subscribed_over(&bench, carrier, "new", round).await;
        for index in 0..COUNT {
            publisher.publish(subscriber.name(), ONE, &index.to_le_bytes());
        }
        for index in 0..COUNT {
            assert_eq!(subscriber.received().await.payload, index.to_le_bytes());
        }
    }
    let sent = ROUNDS as u64 * u64::from(COUNT);
    assert_eq!(bench.count(Counter::Sends), sent);
    assert_eq!(ends(&bench), [sent, 0, 0]);
}

#[tokio::test]
async fn messages_published_before_the_subscription_are_counted() {
    const COUNT: u32 = 20_000;
    let bench = Bench::new().await;
    let mut publisher = publisher_on_own_thread(&bench).await;
    let mut subscriber = Agent::linked(&bench, "late", 2).await;
    for _ in 0..COUNT {
        publisher.publish(subscriber.name(), ONE, b"one of many");
    }
    assert_eq!(subscriber.subscribe(subscriber.name()).await, None);
    publisher.publish(subscriber.name(), ONE, b"the last one");
    let mut arrived = 1;
    while subscriber.received().await.payload != b"the last one" {
        arrived += 1;
    }
    bench.counted(Counter::Delivered, arrived).await;
    let [delivered, undeliverable, dropped] = ends(&bench);
    let sent = u64::from(COUNT) + 1;
    assert_eq!(bench.count(Counter::Sends), sent);
    assert_eq!(delivered + undeliverable + dropped, sent);
}

/// A socket of a client that speaks in one breath: what it writes is kept until it is let go.
struct BufferedSocket {
    socket: TcpStream,
    held: Held,
}

/// `None` while nothing is kept.
type Held = Arc<Mutex<Option<Vec<u8>>>>;

impl AsyncRead for BufferedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for BufferedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(held) = &mut *self.held.lock().unwrap() {
            held.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn messages_sent_right_before_a_hang_up_are_delivered() {
    const COUNT: u32 = 40;
    const SIZE: usize = 1 << 10;
    let bench = Bench::new().await;
    let mut subscriber = Agent::subscribed(&bench, "subscriber", 1).await;
    let socket = std::net::TcpStream::connect(bench.address).unwrap();
    socket.set_nonblocking(true).unwrap();
    let held = Held::default();
    let breath = BufferedSocket {
        socket: TcpStream::from_std(socket.try_clone().unwrap()).unwrap(),
        held: held.clone(),
    };
    let mut publisher = Agent::open_on(breath)
        .await
        .negotiated("publisher", 2)
        .await;
    *held.lock().unwrap() = Some(Vec::new());
    for index in 0..COUNT {
        let payload = [&index.to_le_bytes()[..], &[7; SIZE]].concat();
        publisher.publish(subscriber.name(), ONE, &payload);
    }
    let all_is_held = || {
        let held = held.lock().unwrap();
        held.as_ref().unwrap().len() > COUNT as usize * SIZE
    };
    until("all to be held", all_is_held).await;
    let said = held.lock().unwrap().clone().unwrap();
    // The node finds the end of the connection right behind the messages.
    (&socket).write_all(&said).unwrap();
    socket.shutdown(Shutdown::Both).unwrap();
    for index in 0..COUNT {
        assert_eq!(
            subscriber.received().await.payload[..4],
            index.to_le_bytes()
        );
    }
    assert_eq!(ends(&bench), [COUNT.into(), 0, 0]);
    until("it to have gone", || {
        bench.node.messaging().connection_count() == 1
    })
    .await;
    drop(publisher);
}

/// The door's side of a connection whose client, from some moment on, takes nothing any more.
struct DeafSink {
    sink: Arc<dyn net::Sink>,
    is_deaf: Arc<AtomicBool>,
}

impl net::Sink for DeafSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.is_deaf.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => self.sink.try_write(bytes),
        }
    }

    fn try_flush(&self) -> io::Result<()> {
        self.sink.try_flush()
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sink.poll_writable(cx)
    }

    fn acknowledge(&self) {
        self.sink.acknowledge();
    }

    fn finish(&self) {
        self.sink.finish();
    }

    fn close(&self) {
        self.sink.close();
    }
}

#[tokio::test]
async fn messages_of_a_publisher_that_reads_no_answers_are_delivered() {
    let bench = Bench::new().await;
    let mut subscriber = Agent::subscribed(&bench, "subscriber", 1).await;
    for carrier in CARRIERS {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let near = TcpStream::connect(address).await.unwrap();
        let mut far = net::split_tcp(listener.accept().await.unwrap().0).unwrap();
        let is_deaf = Arc::new(AtomicBool::new(false));
        far.sink = Arc::new(DeafSink {
            sink: far.sink,
            is_deaf: is_deaf.clone(),
        });
        let door = bench.door.clone();
        let served = tokio::spawn(async move { door.serve(far).await });
        let opened = match carrier {
            Carrier::Grpc => Agent::open_on(near).await,
            Carrier::WebSocket => {
                let shaken = client_async(format!("ws://{address}/"), near).await;
                Agent::of_socket(shaken.unwrap().0)
            }
        };
        let mut publisher = opened.negotiated("publisher", 2).await;
        is_deaf.store(true, Ordering::Relaxed);
        for index in 0..10u32 {
            publisher.ask(publisher.name());
            publisher.publish(subscriber.name(), ONE, &index.to_le_bytes());
            assert_eq!(subscriber.received().await.payload, index.to_le_bytes());
        }
        drop(publisher);
        timeout(PATIENCE, served).await.unwrap().unwrap();
    }
}
