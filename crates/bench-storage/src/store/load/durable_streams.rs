//! Appends to a durable-streams server: a stream for each conversation, a `POST` for each message.

use bytes::Bytes;
use hyper::Method;

use crate::store::http::Connection;
use crate::store::{LoadSpec, message};
use bench::workload::role::Failure;

const BYTES: &str = "application/octet-stream";

/// A slot with its own connection: HTTP/1.1 answers one request after the other.
pub(super) struct Slot {
    connection: Connection,
    path: String,
    text: Bytes,
}

impl Slot {
    /// Connects, and creates the stream unless it exists.
    pub(super) async fn open(spec: &LoadSpec, vu: u32) -> Result<Self, Failure> {
        let mut connection = Connection::open(&spec.address).await?;
        let path = format!("/conversation-{vu}");
        let made = connection.send(Method::PUT, &path, BYTES, "").await?;
        if !made.status.is_success() {
            return Err(format!("durable-streams cannot create a stream: {}", made.status).into());
        }
        Ok(Self {
            connection,
            path,
            text: message::text(spec.size, vu).into(),
        })
    }

    /// Reconnects if necessary when the user joins, which may be long after connecting.
    pub(super) async fn join(&mut self) {
        self.connection.renew().await;
    }

    pub(super) async fn append(&mut self) -> Result<(), String> {
        let sent = self
            .connection
            .send(Method::POST, &self.path, BYTES, self.text.clone());
        match sent.await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(format!("status_{}", answer.status.as_u16())),
            Err(_) => Err(super::shared_sender::LOST.to_owned()),
        }
    }
}
