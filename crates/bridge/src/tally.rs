//! Totals of the requests and messages that a bridge has passed on.

use std::collections::HashSet;
use std::mem::Discriminant;

use serde_json::json;
use slim::session::Rejected;

use console::output;

/// Totals of a bridge.
#[derive(Default)]
pub(super) struct Tally {
    /// Requests that got their reply.
    pub(super) answered: u64,
    /// Requests that were answered with an error.
    pub(super) failed: u64,
    /// Answers whose caller was gone.
    pub(super) unheard: u64,
    /// Forwarded one-way messages.
    pub(super) one_way: u64,
    /// One-way messages whose forwarding failed.
    pub(super) lost: u64,
    /// Messages to SLIM that were dropped without room in the queue or without a link.
    pub(super) unsent: u64,
    /// Messages of SLIM that were rejected.
    rejected: u64,
    /// The kinds of rejections that were reported.
    told: HashSet<Discriminant<Rejected>>,
}

impl Tally {
    /// Counts a rejected message; the first one of each kind is reported.
    pub(super) fn reject(&mut self, rejected: &Rejected) {
        self.rejected += 1;
        if self.told.insert(std::mem::discriminant(rejected)) {
            output::note(&format!(
                "not acted upon: {rejected}; others like it are counted"
            ));
        }
    }

    /// The totals as a document, for programs.
    pub(super) fn document(&self) -> serde_json::Value {
        json!({
            "event": "ended",
            "requests": {"answered": self.answered, "failed": self.failed, "unheard": self.unheard},
            "one_way": {"passed_on": self.one_way, "lost": self.lost},
            "unsent": self.unsent,
            "rejected": self.rejected,
        })
    }

    /// The totals as a sentence, for people.
    pub(super) fn sentence(&self) -> String {
        let Self {
            answered,
            failed,
            unheard,
            one_way,
            lost,
            unsent,
            rejected,
            ..
        } = self;
        format!(
            "requests: {answered} answered, {failed} failed, {unheard} whose answer found nobody; \
             one way: {one_way} passed on, {lost} lost; not sent: {unsent}; not acted upon: {rejected}"
        )
    }
}
