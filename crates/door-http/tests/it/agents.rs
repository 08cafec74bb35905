//! Agents over HTTP: calls, one-way messages, and mailboxes that clients take messages from.

mod calls;
mod description;
mod mailbox;
mod names;
mod pages;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use access::Principal;
use door_testing::until;
use messaging::{Client, Connection, Description, Facts, Inbox, Message, Outgoing, Outlet, Pushed};
use model::Failure;
use routing::Ticket;

use crate::Door;

/// A message that a worker received.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Received {
    kind: &'static str,
    ticket: Option<Ticket>,
    method: String,
    source: Option<String>,
    metadata: Vec<u8>,
    body: Vec<u8>,
    /// Credit for items of a stream.
    items: u32,
    deadline_ms: Option<u32>,
}

impl Received {
    fn of(kind: &'static str, ticket: Option<Ticket>, message: Message<'_>) -> Self {
        Self {
            kind,
            ticket,
            method: String::new(),
            source: None,
            metadata: message.metadata.to_vec(),
            body: message.body.to_vec(),
            items: 0,
            deadline_ms: message.deadline_ms,
        }
    }
}

#[derive(Default)]
struct Recorder(Mutex<VecDeque<Received>>);

impl Client for Recorder {
    fn goaway(&self, _: u32, _: &str) {}
    fn dismiss(&self, _: Failure<'_>) {}
    fn close(&self) {}
    fn queued_size(&self) -> usize {
        0
    }
}

impl Inbox for Recorder {
    fn push(&self, outgoing: Outgoing<'_>) -> Pushed {
        let (received, method, source) = match outgoing {
            Outgoing::Request {
                method,
                ticket,
                source,
                stream,
                message,
                ..
            } => {
                let kind = if stream { "stream" } else { "request" };
                (Received::of(kind, Some(ticket), message), method, source)
            }
            Outgoing::Delivery {
                method,
                ticket,
                source,
                message,
                ..
            } => (
                Received::of("delivery", Some(ticket), message),
                method,
                source,
            ),
            Outgoing::Send {
                method,
                source,
                message,
                ..
            } => (Received::of("send", None, message), method, source),
            Outgoing::Sends {
                method,
                source,
                messages,
                ..
            } => {
                let received = messages.iter().map(|message| Received {
                    method: method.to_string(),
                    source: source.map(str::to_owned),
                    ..Received::of("send", None, *message)
                });
                self.0.lock().unwrap().extend(received);
                return Pushed::Queued;
            }
            Outgoing::Cancel { ticket } => {
                let received = Received::of("cancel", Some(ticket), Message::default());
                self.0.lock().unwrap().push_back(received);
                return Pushed::Queued;
            }
            Outgoing::StreamCredit { ticket, items } => {
                let received = Received::of("credit", Some(ticket), Message::default());
                let received = Received { items, ..received };
                self.0.lock().unwrap().push_back(received);
                return Pushed::Queued;
            }
            _ => return Pushed::Queued,
        };
        self.0.lock().unwrap().push_back(Received {
            method: method.to_string(),
            source: source.map(str::to_owned),
            ..received
        });
        Pushed::Queued
    }

    fn flush(&self) {}
}

/// A client that is subscribed to a name.
struct Worker {
    connection: Connection,
    recorder: Arc<Recorder>,
}

impl Worker {
    fn subscribe(door: &Door, name: &str) -> Self {
        Self::with_calls(door, name, 64)
    }

    /// Subscribes a client that answers at most that many calls at the same time.
    fn with_calls(door: &Door, name: &str, calls_max: u32) -> Self {
        let recorder = Arc::new(Recorder::default());
        let outlet = Outlet::Inbox(recorder.clone());
        let facts = Facts {
            name: None,
            principal: Principal::open(),
            remote: "test".to_owned(),
            door: "test",
            token: None,
            user: None,
            trusted: false,
            calls_max,
            credit_messages: 64,
            credit_bytes: 1 << 20,
        };
        let connection = door.node.messaging().connect(facts, |_| outlet);
        let mut connection = connection.unwrap();
        connection.turn().subscribe(name, true, None).unwrap();
        Self {
            connection,
            recorder,
        }
    }

    /// Subscribes a client that describes the agent.
    fn described(door: &Door, name: &str, description: Description) -> Self {
        let mut worker = Self::subscribe(door, name);
        let mut turn = worker.connection.turn();
        turn.subscribe(name, true, Some(description)).unwrap();
        turn.finish();
        worker
    }

    /// Returns the next message that it is sent.
    async fn next(&self) -> Received {
        let mut next = None;
        until("a message to the worker", || {
            next = self.recorder.0.lock().unwrap().pop_front();
            next.is_some()
        })
        .await;
        next.unwrap()
    }

    fn is_idle(&self) -> bool {
        self.recorder.0.lock().unwrap().is_empty()
    }

    fn reply(&mut self, ticket: Option<Ticket>, more: bool, metadata: &[u8], body: &[u8]) {
        let message = Message {
            deadline_ms: None,
            metadata,
            body,
        };
        self.connection.turn().reply(ticket.unwrap(), more, message);
    }

    fn fail(&mut self, ticket: Option<Ticket>, failure: Failure<'_>) {
        let mut turn = self.connection.turn();
        turn.reply_failure(ticket.unwrap(), failure.after_sending());
    }
}
