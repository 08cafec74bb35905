//! The connection to a SLIM node, which reconnects with growing pauses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use console::{Exit, Failure};
use h2::{Ping, PingPong};
use slim::Link;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use super::node::{
    Attached, Reason, Receive, SlimNode, UNAUTHENTICATED, UNCERTIFIED, UNTRUSTED, write,
};

/// Maximum number and bytes of messages that wait to be written; further ones are dropped.
const WRITES_MAX: usize = 4096;
const WRITES_SIZE_MAX: usize = 16 << 20;
/// Maximum number of received messages that wait; at the maximum the bridge stops reading.
const READS_MAX: usize = 16;

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Time between two pings, and time limit of the answer.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// An event of the connection.
pub(super) enum Event {
    /// A link was established; it lasts until `Down`.
    Up(Box<Link>, Writes),
    Message(Bytes),
    Down(Reason),
}

/// The queue of messages to write.
pub(super) struct Writes {
    sender: mpsc::Sender<(Vec<u8>, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

impl Writes {
    /// Adds a message; false if the queue is full.
    pub(super) fn push(&self, message: Vec<u8>) -> bool {
        let size = u32::try_from(message.len()).unwrap_or(u32::MAX);
        match self.room.clone().try_acquire_many_owned(size) {
            Ok(held) => self.sender.try_send((message, held)).is_ok(),
            Err(_) => false,
        }
    }
}

/// A connection that reconnects until it is dropped.
pub(super) struct Line {
    events: mpsc::Receiver<Event>,
}

impl Line {
    /// Connects for the first time.
    pub(super) async fn open(node: SlimNode) -> Result<Self, Failure> {
        let attached = node.attach().await.map_err(|reason| {
            let message = format!("cannot reach the SLIM node at {}: {reason}", node.url());
            let (exit, hint) = if reason.starts_with(UNAUTHENTICATED) {
                let hint = "set the token with --slim-token TOKEN or TELPHER_SLIM_TOKEN";
                (Exit::Denied, hint)
            } else if reason.starts_with(UNTRUSTED) {
                let hint = "--slim-authorities FILE is the PEM file with the certificate to trust";
                (Exit::Denied, hint)
            } else if reason.starts_with(UNCERTIFIED) {
                let hint =
                    "if it requires a client certificate: --slim-certificate FILE --slim-key FILE";
                (Exit::Denied, hint)
            } else {
                let hint = "the SLIM listener of `telpher serve` is http://127.0.0.1:46357";
                (Exit::Unavailable, hint)
            };
            Failure::new(exit, message).hint(hint)
        })?;
        let (sender, events) = mpsc::channel(READS_MAX);
        tokio::spawn(async move {
            tokio::select! {
                () = keep(node, attached, &sender) => {}
                () = sender.closed() => {}
            }
        });
        Ok(Self { events })
    }

    /// Returns the next event.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

/// Serves the connection and reconnects, until the receiver of events is dropped.
async fn keep(node: SlimNode, mut attached: Attached, events: &mpsc::Sender<Event>) {
    loop {
        let Some(reason) = serve(attached, events).await else {
            return;
        };
        if events.send(Event::Down(reason)).await.is_err() {
            return;
        }
        let mut pause = PAUSE_MIN;
        attached = loop {
            // Random pauses, so that not all clients reconnect at the same time.
            sleep(pause.mul_f64(0.5 + 0.5 * fastrand::f64())).await;
            match node.attach().await {
                Ok(attached) => break attached,
                Err(_) => pause = (2 * pause).min(PAUSE_MAX),
            }
        };
    }
}

/// Serves a stream and returns the reason of its end; `None` if the receiver of events is dropped.
async fn serve(attached: Attached, events: &mpsc::Sender<Event>) -> Option<Reason> {
    let Attached {
        link,
        mut send,
        receive,
        pings,
        driver,
    } = attached;
    let (sender, mut writes) = mpsc::channel(WRITES_MAX);
    let room = Arc::new(Semaphore::new(WRITES_SIZE_MAX));
    let pushing = Writes { sender, room };
    events.send(Event::Up(Box::new(link), pushing)).await.ok()?;
    let writing = async {
        while let Some((message, _held)) = writes.recv().await {
            if let Err(reason) = write(&mut send, &message).await {
                return Some(reason);
            }
        }
        None
    };
    let reason = tokio::select! {
        reason = read(receive, events) => reason,
        reason = writing => reason,
        reason = ping(pings) => Some(reason),
    };
    drop(driver);
    reason
}

async fn read(mut receive: Receive, events: &mpsc::Sender<Event>) -> Option<Reason> {
    loop {
        match receive.next().await {
            Ok(message) => events.send(Event::Message(message)).await.ok()?,
            Err(reason) => return Some(reason),
        }
    }
}

/// Pings the node, and returns the reason when it stops answering.
async fn ping(mut pings: PingPong) -> Reason {
    loop {
        sleep(KEEPALIVE).await;
        match timeout(KEEPALIVE, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return "the node does not answer pings".to_owned(),
        }
    }
}
