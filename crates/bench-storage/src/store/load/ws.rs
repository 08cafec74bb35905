//! Appends to conversations over WebSockets: one socket for each user, with `append` and `ack`
//! messages.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::conversation_cursor::ConversationCursor;
use super::shared_sender::{LOST, SendOutcome};
use crate::store::{LoadSpec, message};
use bench::workload::role::Failure;

type Socket = WebSocketStream<TcpStream>;

/// Waiting slots, by index.
type WaitingSlots = Rc<RefCell<Vec<Option<oneshot::Sender<SendOutcome>>>>>;

/// A slot on a user's socket.
pub(super) struct Slot {
    frames: mpsc::UnboundedSender<String>,
    waiting: WaitingSlots,
    turn: ConversationCursor,
    vu: u32,
    index: usize,
    text: Rc<str>,
    number: u64,
}

/// Message from the server.
#[derive(Deserialize)]
struct ServerMessage {
    op: String,
    #[serde(rename = "ref")]
    reference: Option<String>,
    code: Option<String>,
}

/// Connects a user and returns its slots.
pub(super) async fn open(
    spec: &LoadSpec,
    vu: u32,
) -> Result<impl Iterator<Item = Slot> + use<>, Failure> {
    let stream = TcpStream::connect(&spec.address).await?;
    stream.set_nodelay(true)?;
    let url = format!("ws://{}/v1/ws", spec.address);
    let (socket, _) = tokio_tungstenite::client_async(url, stream).await?;
    let (sink, source) = socket.split();
    let (frames, queued) = mpsc::unbounded_channel();
    let waiting: WaitingSlots = Rc::new(RefCell::new((0..spec.pipeline).map(|_| None).collect()));
    tokio::task::spawn_local(write(queued, sink));
    tokio::task::spawn_local(read(source, waiting.clone()));
    let turn = ConversationCursor::of(spec, vu);
    let text: Rc<str> = message::text(spec.size, vu).into();
    let slot = move |index| Slot {
        frames: frames.clone(),
        waiting: waiting.clone(),
        turn: turn.clone(),
        vu,
        index: index as usize,
        text: text.clone(),
        number: 0,
    };
    Ok((0..spec.pipeline).map(slot))
}

impl Slot {
    pub(super) async fn append(&mut self) -> SendOutcome {
        self.number += 1;
        let (sender, answer) = oneshot::channel();
        match self.waiting.borrow_mut().get_mut(self.index) {
            Some(waiting) => *waiting = Some(sender),
            None => return Err(LOST.to_owned()),
        }
        let id = format!("{}-{}-{}", self.vu, self.index, self.number);
        let message = message::message(&id, &self.text);
        let conversation = self.turn.name(self.turn.next());
        let frame = format!(
            r#"{{"op":"append","ref":"{}","conv":"{conversation}","messages":[{message}]}}"#,
            self.index
        );
        let lost = || Err(LOST.to_owned());
        match self.frames.send(frame) {
            Ok(()) => answer.await.unwrap_or_else(|_| lost()),
            Err(_) => lost(),
        }
    }
}

/// Writes queued frames; frames that are queued together leave together. The queue is bounded by
/// the slots, each of which has one frame in flight.
async fn write(mut queued: mpsc::UnboundedReceiver<String>, mut sink: SplitSink<Socket, Message>) {
    while let Some(frame) = queued.recv().await {
        let mut next = Some(frame);
        while let Some(frame) = next {
            if sink.feed(Message::text(frame)).await.is_err() {
                return;
            }
            next = queued.try_recv().ok();
        }
        if sink.flush().await.is_err() {
            return;
        }
    }
}

async fn read(mut source: SplitStream<Socket>, waiting: WaitingSlots) {
    while let Some(Ok(frame)) = source.next().await {
        let Message::Text(text) = frame else {
            continue;
        };
        let Ok(message) = serde_json::from_str::<ServerMessage>(&text) else {
            break;
        };
        report(&waiting, message);
    }
    // Dropping the senders fails all waiting slots.
    waiting.borrow_mut().clear();
}

fn report(waiting: &WaitingSlots, message: ServerMessage) {
    let slot = message
        .reference
        .and_then(|reference| reference.parse::<usize>().ok());
    let mut waiting = waiting.borrow_mut();
    let sender = slot.and_then(|slot| waiting.get_mut(slot)?.take());
    let outcome = match message.op.as_str() {
        "ack" => Ok(()),
        _ => Err(message.code.unwrap_or(message.op)),
    };
    // A message without a waiting slot, such as a watch event, is ignored.
    let _ = sender.map(|sender| sender.send(outcome));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome_of(text: &str) -> SendOutcome {
        let (sender, mut answer) = oneshot::channel();
        let waiting: WaitingSlots = Rc::new(RefCell::new(vec![None, Some(sender)]));
        report(&waiting, serde_json::from_str(text).unwrap());
        answer.try_recv().unwrap()
    }

    #[test]
    fn an_ack_is_a_success_and_an_error_has_its_code() {
        assert_eq!(
            outcome_of(r#"{"op":"ack","ref":"1","first_seq":4,"last_seq":4}"#),
            Ok(())
        );
        let refused = r#"{"op":"error","ref":"1","code":"disk_full","message":"no"}"#;
        assert_eq!(outcome_of(refused), Err("disk_full".to_owned()));
    }
}
