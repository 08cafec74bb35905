//! Uploads: bodies of requests whose pieces arrive as requests of their own.
//!
//! A request with a field `upload` is executed at once, with a body that stays open. The client adds
//! pieces with the method `upload`, until it ends the body. An upload belongs to the connection that
//! opened it, and ends with its request: a lost connection drops the request, and with it the body.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_util::Stream;
use http_api::{Problem, body};
use json::Text;
use model::ErrorCode;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::mpsc;

/// Number of pieces that wait for their request. The answer to a further one waits.
const PIECES_MAX: usize = 16;

/// Largest number of uploads of a node.
const UPLOADS_MAX: usize = 10_000;

/// Longest name of an upload, in bytes.
const NAME_SIZE_MAX: usize = 128;

/// The open uploads of a node.
#[derive(Clone, Default)]
pub(super) struct Uploads {
    open: Arc<Mutex<HashMap<Key, mpsc::Sender<Bytes>>>>,
}

/// The connection of an upload, and the name that its client gave it.
type Key = (String, String);

/// A piece of an upload.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece<'a> {
    #[serde(borrow)]
    upload: Text<'a>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(default)]
    end: bool,
}

/// The body of a request with an upload.
struct UploadBody {
    uploads: Uploads,
    key: Key,
    pieces: mpsc::Receiver<Bytes>,
}

impl Uploads {
    /// Opens an upload of a connection, and returns the body of its request.
    pub(super) fn open(&self, source: Option<&str>, name: &str) -> Result<Body, Problem> {
        let key = key(source, name)?;
        let (sender, pieces) = mpsc::channel(PIECES_MAX);
        let mut open = self.open.lock();
        if open.len() >= UPLOADS_MAX {
            let detail = format!("the node has {UPLOADS_MAX} open uploads, its limit");
            return Err(Problem::of(ErrorCode::Busy, detail));
        }
        match open.entry(key.clone()) {
            Entry::Occupied(_) => {
                let detail = format!("the connection has an open upload `{name}` already");
                return Err(Problem::of(ErrorCode::IdReused, detail));
            }
            Entry::Vacant(vacant) => vacant.insert(sender),
        };
        let uploads = self.clone();
        Ok(Body::from_stream(UploadBody {
            uploads,
            key,
            pieces,
        }))
    }

    /// Adds a piece to an upload, and ends it if the piece says so. Returns when the piece is in the
    /// queue of its request. Pieces are in the order in which the futures are first polled.
    pub(super) async fn add(&self, source: Option<&str>, asked: &[u8]) -> Result<(), Problem> {
        let piece: Piece<'_> = body::parse(asked)?;
        let name = piece.upload.0.as_ref();
        let key = key(source, name)?;
        let sender = match piece.end {
            true => self.open.lock().remove(&key),
            false => self.open.lock().get(&key).cloned(),
        };
        let gone = || {
            let detail = format!("the upload `{name}` is not open: its request has ended");
            Problem::of(ErrorCode::Gone, detail)
        };
        let sender = sender.ok_or_else(gone)?;
        match piece.text {
            Some(text) if !text.0.is_empty() => {
                let bytes = Bytes::from(text.0.into_owned());
                sender.send(bytes).await.map_err(|_| gone())
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn key(source: Option<&str>, name: &str) -> Result<Key, Problem> {
    let Some(source) = source else {
        let detail = "an upload needs a client's connection, and this request has none";
        return Err(Problem::invalid(detail));
    };
    match (1..=NAME_SIZE_MAX).contains(&name.len()) {
        true => Ok((source.to_owned(), name.to_owned())),
        false => {
            let detail = format!(
                "`upload` must have 1 to {NAME_SIZE_MAX} bytes, not {}",
                name.len()
            );
            Err(Problem::invalid(detail))
        }
    }
}

impl Stream for UploadBody {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pieces.poll_recv(cx).map(|piece| piece.map(Ok))
    }
}

impl Drop for UploadBody {
    fn drop(&mut self) {
        // The name may belong to a later upload, if this one was ended.
        self.pieces.close();
        let mut open = self.uploads.open.lock();
        if open.get(&self.key).is_some_and(mpsc::Sender::is_closed) {
            open.remove(&self.key);
        }
    }
}
