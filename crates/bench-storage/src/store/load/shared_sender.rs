//! Connection that the slots of a window share. Messages sent together leave in one write.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Notify, oneshot};

/// Answer to a slot.
pub(super) type SendOutcome = Result<(), String>;

/// Error of a slot whose connection is lost.
pub(super) const LOST: &str = "connection_lost";

/// Sending side of a connection, and the slots that wait for answers.
#[derive(Default)]
pub(super) struct SharedSender {
    state: RefCell<State>,
    filled: Notify,
}

#[derive(Default)]
struct State {
    out: Vec<u8>,
    /// Waiting slots, in the order in which they sent.
    waiting: VecDeque<oneshot::Sender<SendOutcome>>,
    is_lost: bool,
}

impl SharedSender {
    /// Makes a line that writes to `socket`.
    pub(super) fn over(socket: OwnedWriteHalf) -> Rc<Self> {
        let line = Rc::new(Self::default());
        tokio::task::spawn_local(write(line.clone(), socket));
        line
    }

    /// Sends bytes and waits for the answer to them.
    pub(super) async fn send(&self, bytes: &[u8]) -> SendOutcome {
        let (sender, answer) = oneshot::channel();
        {
            let mut state = self.state.borrow_mut();
            if state.is_lost {
                return Err(LOST.to_owned());
            }
            if state.out.is_empty() {
                self.filled.notify_one();
            }
            state.out.extend_from_slice(bytes);
            state.waiting.push_back(sender);
        }
        answer.await.unwrap_or_else(|_| Err(LOST.to_owned()))
    }

    /// Passes an answer to the slot that has waited longest.
    pub(super) fn answer(&self, outcome: SendOutcome) {
        let first = self.state.borrow_mut().waiting.pop_front();
        if let Some(first) = first {
            // A slot that no longer waits needs no answer.
            let _ = first.send(outcome);
        }
    }

    /// Fails all waiting slots, because the connection is lost.
    pub(super) fn disconnect(&self) {
        let mut state = self.state.borrow_mut();
        state.is_lost = true;
        state.waiting.clear();
    }
}

async fn write(line: Rc<SharedSender>, mut socket: OwnedWriteHalf) {
    loop {
        line.filled.notified().await;
        let bytes = std::mem::take(&mut line.state.borrow_mut().out);
        if socket.write_all(&bytes).await.is_err() {
            line.disconnect();
            return;
        }
    }
}
