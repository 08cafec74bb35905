//! What a connection watches.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{AbortHandle, Abortable, SelectAll};
use futures_util::{Stream, StreamExt};
use model::{ErrorCode, Name};
use node::conversations::{Item, Refusal, Watch};

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
type Shown = (Name, Arc<str>, Result<Item, Refusal>);

impl Watches {
    /// Begins to watch from behind a message on.
    pub(super) fn add(
        &mut self,
        shared: &Shared,
        name: &Name,
        word: &str,
        after: u64,
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
            watch: Some(of(shared)?.watch(name, after)?),
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
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<(Arc<str>, Result<Item, Refusal>)> {
        match self.streams.poll_next_unpin(cx) {
            Poll::Ready(Some((name, word, item))) => {
                if item.is_err() {
                    self.handles.remove(&name);
                }
                Poll::Ready((word, item))
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
        if item.is_err() {
            this.watch = None;
        }
        Poll::Ready(Some((this.name.clone(), this.word.clone(), item)))
    }
}
