//! The counters of a node. A turn counts locally and adds its counts once, at its end. Every worker
//! thread adds at the end of every turn, to its own stripe ([`Stripes`]).

use std::sync::atomic::{AtomicU64, Ordering};

use model::ErrorCode;

use crate::stripes::Stripes;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident => $text:literal;)+) => {
        /// A counter of the node.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Counter {
            /// Every counter.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Returns the name in metrics, without prefix and `_total`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// Returns the help text.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

counters! {
    /// Connections opened.
    Opened => "connections_opened";
    /// Connections closed.
    Closed => "connections_closed";
    /// Connections refused before they were opened.
    Refused => "connections_refused";
    /// Calls accepted from callers.
    Requests => "requests";
    /// Final replies handed to callers.
    Replies => "replies";
    /// Items of streams handed to callers.
    Items => "stream_items";
    /// Replies that arrived after the call had ended.
    LateReplies => "late_replies";
    /// Calls cancelled by their caller.
    Cancelled => "cancelled";
    /// One-way messages accepted from senders.
    Sends => "sends";
    /// Writes accepted.
    Writes => "writes";
    /// Copies handed to subscribers.
    Delivered => "delivered";
    /// Copies dropped because the subscriber was full.
    Dropped => "dropped";
    /// Messages that found no subscriber.
    Undeliverable => "undeliverable";
    /// Writes to disk that were retries of stored writes.
    Duplicates => "mailbox_duplicates";
    /// Messages of mailboxes handed to subscribers.
    Deliveries => "mailbox_deliveries";
    /// Messages of mailboxes that subscribers acknowledged.
    Acknowledged => "mailbox_acknowledged";
    /// Deliveries that were refused, lost or not answered in time.
    Unacknowledged => "mailbox_unacknowledged";
    /// Messages that expired in mailboxes.
    Expired => "mailbox_expired";
    /// Messages of mailboxes that became dead letters after the maximum number of deliveries.
    DeadLetters => "mailbox_dead_letters";
    /// Mailboxes that could not be read for delivery.
    Unreadable => "mailbox_unreadable";
    /// Records appended to streams.
    Appends => "stream_records";
    /// Messages appended to conversations.
    Messages => "conversation_messages";
    /// Retries of messages that were already in their conversation.
    MessageDuplicates => "conversation_duplicates";
    /// Webhook calls made.
    WebhookCalls => "webhook_calls";
    /// Webhook calls that were answered.
    WebhookAnswers => "webhook_answers";
    /// Webhook calls that failed.
    WebhookFailures => "webhook_failures";
    /// Webhook calls that are not retried: dead letters.
    WebhookDead => "webhook_dead_letters";
    /// Conversations updated in the views.
    ViewUpdates => "view_updates";
    /// Failures to read or write the views of conversations.
    ViewFailures => "view_failures";
    /// Conversations erased because they expired.
    ConversationsExpired => "conversations_expired";
    /// Changes of the state of conversations.
    ConversationChanges => "conversation_changes";
    /// Streamed messages (drafts) opened in conversations.
    Drafts => "conversation_drafts";
    /// Message bytes accepted.
    Bytes => "message_bytes";
    /// Frames larger than the limit.
    Oversize => "oversize_frames";
    /// Connections that violated the protocol.
    ProtocolErrors => "protocol_errors";
    /// Connections closed because the client did not read.
    SlowClosed => "slow_clients_closed";
    /// Connections closed because the peer was silent too long.
    Silent => "silent_peers_closed";
    /// Authentications that failed: tokens that were missing, unknown or revoked.
    Unauthenticated => "unauthenticated";
    /// Invalid messages from SLIM clients.
    SlimMalformed => "slim_malformed_messages";
    /// Messages from SLIM clients with a wrong header MAC.
    SlimBadMacs => "slim_bad_macs";
    /// Messages from SLIM clients that exceeded their hop limit.
    SlimExpired => "slim_expired_messages";
    /// Messages and subscriptions of SLIM clients that the rules forbid.
    SlimForbidden => "slim_forbidden";
}

const COUNT: usize = Counter::ALL.len();
const CODES: usize = ErrorCode::ALL.len() + 1;

/// The counters of a node.
#[derive(Debug)]
pub struct Counters {
    stripes: Stripes<COUNT>,
    failures: [AtomicU64; CODES],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            stripes: Stripes::default(),
            failures: [const { AtomicU64::new(0) }; CODES],
        }
    }
}

impl Counters {
    /// Returns the current value.
    pub fn get(&self, counter: Counter) -> u64 {
        self.stripes.get(counter as usize)
    }

    /// Returns the number of failures with that code that were sent as answers.
    pub fn failures(&self, code: ErrorCode) -> u64 {
        self.failures[usize::from(code.as_u16())].load(Ordering::Relaxed)
    }

    /// Adds one.
    #[inline]
    pub fn count(&self, counter: Counter) {
        self.stripes.add(counter as usize, 1);
    }

    /// Adds `count`.
    pub fn add_to(&self, counter: Counter, count: u64) {
        if count > 0 {
            self.stripes.add(counter as usize, count);
        }
    }

    /// Adds one failure.
    pub fn count_failure(&self, code: ErrorCode) {
        self.failures[usize::from(code.as_u16())].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the counts of a turn and resets them.
    pub fn add(&self, tally: &mut Tally) {
        for (value, added) in self.stripes.own().iter().zip(&mut tally.0) {
            if *added > 0 {
                value.fetch_add(std::mem::take(added), Ordering::Relaxed);
            }
        }
    }
}

/// The counts of one turn.
#[derive(Debug)]
pub struct Tally([u64; COUNT]);

impl Default for Tally {
    fn default() -> Self {
        Self([0; COUNT])
    }
}

impl Tally {
    /// Adds one.
    #[inline]
    pub fn count(&mut self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Adds `count`.
    #[inline]
    pub fn add(&mut self, counter: Counter, count: u64) {
        self.0[counter as usize] += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stripes::STRIPES;

    #[test]
    fn a_counter_is_the_sum_of_what_all_threads_added() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..STRIPES + 3 {
                scope.spawn(|| {
                    counters.count(Counter::Opened);
                    let mut tally = Tally::default();
                    tally.add(Counter::Bytes, 5);
                    counters.add(&mut tally);
                });
            }
        });
        assert_eq!(counters.get(Counter::Opened), STRIPES as u64 + 3);
        assert_eq!(counters.get(Counter::Bytes), 5 * (STRIPES as u64 + 3));
        assert_eq!(counters.get(Counter::Closed), 0);
    }
}
