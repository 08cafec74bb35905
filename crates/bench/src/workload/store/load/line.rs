//! One connection that the places of a window share: what they send together leaves in one write.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Notify, oneshot};

/// What a place is told.
pub(super) type Outcome = Result<(), String>;

/// The error of a place whose connection is gone.
pub(super) const LOST: &str = "connection_lost";

/// The sending side, and who waits for what.
#[derive(Default)]
pub(super) struct Line {
    state: RefCell<State>,
    filled: Notify,
}

#[derive(Default)]
struct State {
    out: Vec<u8>,
    /// In the order in which they sent.
    waiting: VecDeque<oneshot::Sender<Outcome>>,
    is_lost: bool,
}

impl Line {
    /// A line whose bytes go to that socket.
    pub(super) fn over(socket: OwnedWriteHalf) -> Rc<Self> {
        let line = Rc::new(Self::default());
        tokio::task::spawn_local(write(line.clone(), socket));
        line
    }

    /// Sends bytes and waits for what is answered to them.
    pub(super) async fn send(&self, bytes: &[u8]) -> Outcome {
        let (told, answer) = oneshot::channel();
        {
            let mut state = self.state.borrow_mut();
            if state.is_lost {
                return Err(LOST.to_owned());
            }
            if state.out.is_empty() {
                self.filled.notify_one();
            }
            state.out.extend_from_slice(bytes);
            state.waiting.push_back(told);
        }
        answer.await.unwrap_or_else(|_| Err(LOST.to_owned()))
    }

    /// Tells whoever has waited longest.
    pub(super) fn answer(&self, outcome: Outcome) {
        let first = self.state.borrow_mut().waiting.pop_front();
        if let Some(first) = first {
            // Who does not wait any more needs no answer.
            let _ = first.send(outcome);
        }
    }

    /// Tells everybody that nothing will come any more.
    pub(super) fn lose(&self) {
        let mut state = self.state.borrow_mut();
        state.is_lost = true;
        state.waiting.clear();
    }
}

async fn write(line: Rc<Line>, mut socket: OwnedWriteHalf) {
    loop {
        line.filled.notified().await;
        let bytes = std::mem::take(&mut line.state.borrow_mut().out);
        if socket.write_all(&bytes).await.is_err() {
            line.lose();
            return;
        }
    }
}
