//! Watches of inboxes: reports conversations that changed.
//!
//! A watcher is notified of conversation numbers and reads their current state later, so repeated
//! changes are reported once. A watcher that does not read holds a bounded set of numbers.

use std::sync::Arc;
use std::task::{Context, Poll};

use ::journal::StreamId;

use super::inbox::Line;
use super::scope::Scope;
use super::service::Views;
use super::watchers::WatcherState;
use crate::error::ViewsError;

/// A watch of one inbox, which reports changes after its creation.
pub struct InboxWatch {
    views: Views,
    scope: Scope,
    watcher: Arc<WatcherState>,
}

/// A change of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// A conversation changed.
    Line(Line),
    /// A conversation left the inbox: `org/namespace/x`.
    Gone(String),
    /// Too many conversations changed to list them: read the inbox again.
    All,
}

impl Views {
    /// Watches an inbox in `org/namespace`. A caller that reads the inbox afterwards misses no
    /// change.
    pub fn watch_inbox(&self, namespace: &str, who: &str) -> Result<InboxWatch, ViewsError> {
        let watchers = &self.state.watchers;
        let limit = self.state.options.watchers_max;
        if watchers.count() >= limit {
            return Err(ViewsError::TooManyWatchers { limit });
        }
        let scope = Scope::namespace(namespace).participant(who);
        let watcher = watchers.add(scope);
        Ok(InboxWatch {
            views: self.clone(),
            scope,
            watcher,
        })
    }
}

impl InboxWatch {
    /// Becomes ready once there are changes to take.
    pub fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.watcher.poll_changed(cx)
    }

    /// Returns some of the changes, with the current state of the conversations. If changes remain,
    /// the watch stays ready. Reads from disk.
    pub fn take(&self) -> Result<Vec<Changed>, ViewsError> {
        let Some(numbers) = self.watcher.take() else {
            return Ok(vec![Changed::All]);
        };
        let views = &self.views;
        let (tables, _) = views.opened()?;
        let changed = numbers.into_iter().filter_map(|number| {
            let row = match tables.row(number) {
                Ok(row) => row,
                Err(damage) => return Some(Err(damage.into())),
            };
            let line = row.map(|row| views.line(&tables, self.scope, number, &row));
            match line.transpose().map(Option::flatten) {
                Ok(Some(line)) => Some(Ok(Changed::Line(line))),
                Ok(None) => {
                    let (_, name, _) = views.store.named(StreamId(number))?;
                    Some(Ok(Changed::Gone(name)))
                }
                Err(error) => Some(Err(error)),
            }
        });
        views.walked(changed.collect())
    }
}
