//! The line to a SLIM node: made again whenever it is lost, with longer and longer pauses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::{Ping, PingPong};
use slim::Link;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use super::node::{
    Attached, Node, Reason, Receive, UNAUTHENTICATED, UNCERTIFIED, UNTRUSTED, write,
};
use crate::failure::{Exit, Failure};

/// Messages and bytes that wait to be written; what is more is dropped, as a network drops.
const WRITES_MAX: usize = 4096;
const WRITES_SIZE_MAX: usize = 16 << 20;
/// Messages that wait to be acted upon; the node is not read from meanwhile.
const READS_MAX: usize = 16;

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Silence after which we ping, and silence after which the node is dead.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// What happens on the line.
pub(super) enum Event {
    /// There is a link, until it is `Down`.
    Up(Box<Link>, Writes),
    Message(Bytes),
    Down(Reason),
}

/// What waits to be written.
pub(super) struct Writes {
    sender: mpsc::Sender<(Vec<u8>, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

impl Writes {
    /// Adds a message; false when there is no room for it.
    pub(super) fn push(&self, message: Vec<u8>) -> bool {
        let size = u32::try_from(message.len()).unwrap_or(u32::MAX);
        match self.room.clone().try_acquire_many_owned(size) {
            Ok(held) => self.sender.try_send((message, held)).is_ok(),
            Err(_) => false,
        }
    }
}

/// See the module's documentation. Ends when it is dropped.
pub(super) struct Line {
    events: mpsc::Receiver<Event>,
}

impl Line {
    /// Connects for the first time, or says why that is not possible.
    pub(super) async fn open(node: Node) -> Result<Self, Failure> {
        let attached = node.attach().await.map_err(|reason| {
            let message = format!("cannot reach the SLIM node at {}: {reason}", node.url());
            let (exit, hint) = if reason.starts_with(UNAUTHENTICATED) {
                let hint = "--slim-token TOKEN or TELPHER_SLIM_TOKEN carries it";
                (Exit::Denied, hint)
            } else if reason.starts_with(UNTRUSTED) {
                let hint = "--slim-authorities FILE names the PEM file of the certificate to trust";
                (Exit::Denied, hint)
            } else if reason.starts_with(UNCERTIFIED) {
                let hint = "it may ask for a certificate: --slim-certificate FILE and --slim-key FILE are shown";
                (Exit::Denied, hint)
            } else {
                let hint = "`telpher serve` has a SLIM door at http://127.0.0.1:46357";
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

    /// The next event. The line lasts as long as this is asked.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

/// Ends when nobody listens any more.
async fn keep(node: Node, mut attached: Attached, events: &mpsc::Sender<Event>) {
    loop {
        let Some(reason) = serve(attached, events).await else {
            return;
        };
        if events.send(Event::Down(reason)).await.is_err() {
            return;
        }
        let mut pause = PAUSE_MIN;
        attached = loop {
            // Not all come back at the same moment.
            sleep(pause.mul_f64(0.5 + 0.5 * fastrand::f64())).await;
            match node.attach().await {
                Ok(attached) => break attached,
                Err(_) => pause = (2 * pause).min(PAUSE_MAX),
            }
        };
    }
}

/// Serves a stream to its end, and says why that came; `None` when nobody listens any more.
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

/// Ends when the node is not there any more.
async fn ping(mut pings: PingPong) -> Reason {
    loop {
        sleep(KEEPALIVE).await;
        match timeout(KEEPALIVE, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return "it does not answer pings".to_owned(),
        }
    }
}
