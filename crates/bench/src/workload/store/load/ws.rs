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

use super::line::{LOST, Outcome};
use super::turn::Turn;
use crate::workload::role::Failure;
use crate::workload::store::{LoadSpec, message};

type Socket = WebSocketStream<TcpStream>;

/// Waiting slots, by index.
type Waiting = Rc<RefCell<Vec<Option<oneshot::Sender<Outcome>>>>>;

/// A slot on a user's socket.
pub(super) struct Place {
    frames: mpsc::UnboundedSender<String>,
    waiting: Waiting,
    turn: Turn,
    vu: u32,
    place: usize,
    text: Rc<str>,
    number: u64,
}

/// Message from the server.
#[derive(Deserialize)]
struct Said {
    op: String,
    #[serde(rename = "ref")]
    place: Option<String>,
    code: Option<String>,
}

/// Connects a user and returns its slots.
pub(super) async fn open(
    spec: &LoadSpec,
    vu: u32,
) -> Result<impl Iterator<Item = Place> + use<>, Failure> {
    let stream = TcpStream::connect(&spec.address).await?;
    stream.set_nodelay(true)?;
    let url = format!("ws://{}/v1/ws", spec.address);
    let (socket, _) = tokio_tungstenite::client_async(url, stream).await?;
    let (sink, source) = socket.split();
    let (frames, queued) = mpsc::unbounded_channel();
    let waiting: Waiting = Rc::new(RefCell::new((0..spec.pipeline).map(|_| None).collect()));
    tokio::task::spawn_local(write(queued, sink));
    tokio::task::spawn_local(read(source, waiting.clone()));
    let turn = Turn::of(spec, vu);
    let text: Rc<str> = message::text(spec.size, vu).into();
    let place = move |place| Place {
        frames: frames.clone(),
        waiting: waiting.clone(),
        turn: turn.clone(),
        vu,
        place: place as usize,
        text: text.clone(),
        number: 0,
    };
    Ok((0..spec.pipeline).map(place))
}

impl Place {
    pub(super) async fn append(&mut self) -> Outcome {
        self.number += 1;
        let (told, answer) = oneshot::channel();
        match self.waiting.borrow_mut().get_mut(self.place) {
            Some(waiting) => *waiting = Some(told),
            None => return Err(LOST.to_owned()),
        }
        let id = format!("{}-{}-{}", self.vu, self.place, self.number);
        let message = message::message(&id, &self.text);
        let conversation = self.turn.name(self.turn.next());
        let frame = format!(
            r#"{{"op":"append","ref":"{}","conv":"{conversation}","messages":[{message}]}}"#,
            self.place
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

async fn read(mut source: SplitStream<Socket>, waiting: Waiting) {
    while let Some(Ok(frame)) = source.next().await {
        let Message::Text(text) = frame else {
            continue;
        };
        let Ok(said) = serde_json::from_str::<Said>(&text) else {
            break;
        };
        tell(&waiting, said);
    }
    // Dropping the senders fails all waiting slots.
    waiting.borrow_mut().clear();
}

fn tell(waiting: &Waiting, said: Said) {
    let place = said.place.and_then(|place| place.parse::<usize>().ok());
    let mut waiting = waiting.borrow_mut();
    let told = place.and_then(|place| waiting.get_mut(place)?.take());
    let outcome = match said.op.as_str() {
        "ack" => Ok(()),
        _ => Err(said.code.unwrap_or(said.op)),
    };
    // A message without a waiting slot, such as a watch event, is ignored.
    let _ = told.map(|told| told.send(outcome));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Outcome {
        let (told, mut answer) = oneshot::channel();
        let waiting: Waiting = Rc::new(RefCell::new(vec![None, Some(told)]));
        tell(&waiting, serde_json::from_str(text).unwrap());
        answer.try_recv().unwrap()
    }

    #[test]
    fn an_ack_is_a_success_and_an_error_tells_its_code() {
        assert_eq!(
            said(r#"{"op":"ack","ref":"1","first_seq":4,"last_seq":4}"#),
            Ok(())
        );
        let refused = r#"{"op":"error","ref":"1","code":"disk_full","message":"no"}"#;
        assert_eq!(said(refused), Err("disk_full".to_owned()));
    }
}
