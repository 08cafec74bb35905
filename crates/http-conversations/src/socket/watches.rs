//! The watches of a WebSocket connection.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use conversation_service::{ConversationError, Item, Position, Watch};
use futures_util::stream::{AbortHandle, Abortable, SelectAll};
use futures_util::{Stream, StreamExt};
use http_api::Problem;
use http_api::Shared;
use model::{ErrorCode, Name};

use super::reply::too_many;
use crate::place::of;

/// Most conversations that a connection watches.
const WATCHES_MAX: usize = 1024;

/// The watches of a connection. Each has its own waker, so an event in one conversation costs
/// nothing for the others.
#[derive(Default)]
pub(super) struct Watches {
    streams: SelectAll<Abortable<Watched>>,
    handles: HashMap<Name, AbortHandle>,
}

/// A watched conversation.
struct Watched {
    name: Name,
    /// Name of the conversation as the client wrote it.
    word: Arc<str>,
    /// `None` after the watch has ended.
    watch: Option<Watch>,
}

/// An event of a watched conversation.
pub(super) struct WatchEvent {
    name: Name,
    /// Name of the conversation as the client wrote it.
    pub(super) word: Arc<str>,
    /// The item, and the watcher's position after it.
    pub(super) item: Result<(Item, Position), ConversationError>,
}

impl Watches {
    /// Starts a watch from a position.
    pub(super) fn add(
        &mut self,
        shared: &Shared,
        name: &Name,
        word: &str,
        position: Position,
    ) -> Result<(), Problem> {
        if self.handles.contains_key(name) {
            let detail = format!("`{word}` is already watched on this connection");
            return Err(Problem::of(ErrorCode::Conflict, detail));
        }
        if self.handles.len() >= WATCHES_MAX {
            return Err(too_many(WATCHES_MAX));
        }
        let watched = Watched {
            name: name.clone(),
            word: word.into(),
            watch: Some(of(shared)?.watch_from(name, position)?),
        };
        let (handle, registration) = AbortHandle::new_pair();
        self.streams.push(Abortable::new(watched, registration));
        self.handles.insert(name.clone(), handle);
        Ok(())
    }

    /// Ends a watch.
    pub(super) fn remove(&mut self, name: &Name) -> Result<(), Problem> {
        match self.handles.remove(name) {
            Some(handle) => {
                handle.abort();
                Ok(())
            }
            None => {
                let detail = format!("`{name}` is not watched on this connection");
                Err(Problem::of(ErrorCode::NotFound, detail))
            }
        }
    }

    /// Returns the next event of any watch.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<WatchEvent> {
        match self.streams.poll_next_unpin(cx) {
            Poll::Ready(Some(shown)) => {
                if shown.item.is_err() {
                    self.handles.remove(&shown.name);
                }
                Poll::Ready(shown)
            }
            // No watch is left; `add` polls the next one.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Stream for Watched {
    type Item = WatchEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WatchEvent>> {
        let this = &mut *self;
        let Some(watch) = &mut this.watch else {
            return Poll::Ready(None);
        };
        let item = std::task::ready!(watch.poll_next(cx));
        let item = item.map(|item| (item, watch.position().clone()));
        if item.is_err() {
            this.watch = None;
        }
        Poll::Ready(Some(WatchEvent {
            name: this.name.clone(),
            word: this.word.clone(),
            item,
        }))
    }
}
