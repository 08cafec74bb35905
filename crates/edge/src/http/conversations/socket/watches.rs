//! What a connection watches.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{AbortHandle, Abortable, SelectAll};
use futures_util::{Stream, StreamExt};
use model::{ErrorCode, Name};
use node::conversations::{Item, Position, Refusal, Watch};

use super::reply::too_many;
use crate::http::Shared;
use crate::http::conversations::place::of;
use crate::http::problem::Problem;

/// Conversations that a connection watches, at most.
const WATCHES_MAX: usize = 1024;

/// Each is woken by itself: what happens in one conversation costs nothing for the others.
#[derive(Default)]
pub(super) struct Watches {
    streams: SelectAll<Abortable<Watched>>,
    handles: HashMap<Name, AbortHandle>,
}

/// One conversation.
struct Watched {
    name: Name,
    /// What the client calls it.
    word: Arc<str>,
    /// Until it has ended.
    watch: Option<Watch>,
}

/// Something to show of a conversation.
pub(super) struct Shown {
    name: Name,
    /// What the client calls it.
    pub(super) word: Arc<str>,
    /// The item, and where the watcher has arrived with it.
    pub(super) item: Result<(Item, Position), Refusal>,
}

impl Watches {
    /// Begins to watch from a position on.
    pub(super) fn add(
        &mut self,
        shared: &Shared,
        name: &Name,
        word: &str,
        position: Position,
    ) -> Result<(), Problem> {
        if self.handles.contains_key(name) {
            let detail = format!("`{word}` is watched already");
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

    /// Watches it no more.
    pub(super) fn remove(&mut self, name: &Name) -> Result<(), Problem> {
        match self.handles.remove(name) {
            Some(handle) => {
                handle.abort();
                Ok(())
            }
            None => {
                let detail = format!("`{name}` is not watched");
                Err(Problem::of(ErrorCode::NotFound, detail))
            }
        }
    }

    /// The next thing to show, and of which conversation.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Shown> {
        match self.streams.poll_next_unpin(cx) {
            Poll::Ready(Some(shown)) => {
                if shown.item.is_err() {
                    self.handles.remove(&shown.name);
                }
                Poll::Ready(shown)
            }
            // None of them is left; the next one is polled when it is added.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Stream for Watched {
    type Item = Shown;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Shown>> {
        let this = &mut *self;
        let Some(watch) = &mut this.watch else {
            return Poll::Ready(None);
        };
        let item = std::task::ready!(watch.poll_next(cx));
        let item = item.map(|item| (item, watch.position().clone()));
        if item.is_err() {
            this.watch = None;
        }
        Poll::Ready(Some(Shown {
            name: this.name.clone(),
            word: this.word.clone(),
            item,
        }))
    }
}
