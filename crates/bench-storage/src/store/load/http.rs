//! Appends to conversations over HTTP: a request for each message.

use hyper::Method;

use super::conversation_cursor::ConversationCursor;
use super::shared_sender::LOST;
use crate::store::http::Connection;
use crate::store::{LoadSpec, message};
use bench::workload::role::Failure;

/// A slot with its own connection: HTTP/1.1 answers one request after the other.
pub(super) struct Slot {
    connection: Connection,
    turn: ConversationCursor,
    text: String,
    /// User and slot. Together with a number that is never reused it identifies a message.
    name: String,
    number: u64,
}

impl Slot {
    /// Connects.
    pub(super) async fn open(
        spec: &LoadSpec,
        vu: u32,
        index: u32,
        turn: ConversationCursor,
    ) -> Result<Self, Failure> {
        Ok(Self {
            connection: Connection::open(&spec.address).await?,
            turn,
            text: message::text(spec.size, vu),
            name: format!("{vu}-{index}"),
            number: 0,
        })
    }

    /// Reconnects if necessary when the user joins, which may be long after connecting.
    pub(super) async fn join(&mut self) {
        self.connection.renew().await;
    }

    pub(super) async fn append(&mut self) -> Result<(), String> {
        self.number += 1;
        let path = message::path(&self.turn.name(self.turn.next()));
        let id = format!("{}-{}", self.name, self.number);
        let body = format!(r#"{{"messages":[{}]}}"#, message::message(&id, &self.text));
        let sent = self
            .connection
            .send(Method::POST, &path, "application/json", body);
        match sent.await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(format!("status_{}", answer.status.as_u16())),
            Err(_) => Err(LOST.to_owned()),
        }
    }
}
