//! What the node counts. A turn counts for itself and adds up once, at its end.

use std::sync::atomic::{AtomicU64, Ordering};

use model::ErrorCode;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident => $text:literal;)+) => {
        /// One of the node's counters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Counter {
            /// Every counter.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name in metrics, without prefix and `_total`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// What it counts.
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
    /// Replies that nobody waited for any more.
    LateReplies => "late_replies";
    /// Calls whose caller gave up.
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
    /// Writes to disk that were retries of others.
    Duplicates => "mailbox_duplicates";
    /// Messages of mailboxes handed to subscribers.
    Deliveries => "mailbox_deliveries";
    /// Messages of mailboxes that subscribers acknowledged.
    Acknowledged => "mailbox_acknowledged";
    /// Deliveries that were refused, lost or not answered in time.
    Unacknowledged => "mailbox_unacknowledged";
    /// Messages of mailboxes that nobody took in time.
    Expired => "mailbox_expired";
    /// Messages of mailboxes that were delivered as often as is allowed.
    DeadLetters => "mailbox_dead_letters";
    /// Mailboxes that could not be read when somebody subscribed to their name.
    Unreadable => "mailbox_unreadable";
    /// Records appended to streams.
    Appends => "stream_records";
    /// Messages appended to conversations.
    Messages => "conversation_messages";
    /// Messages for conversations that were there already.
    MessageDuplicates => "conversation_duplicates";
    /// Calls of agents for what was written in conversations.
    WebhookCalls => "webhook_calls";
    /// Calls of agents that were answered.
    WebhookAnswers => "webhook_answers";
    /// Calls of agents that failed.
    WebhookFailures => "webhook_failures";
    /// Calls of agents that are not made again: dead letters.
    WebhookDead => "webhook_dead_letters";
    /// Conversations whose views were brought up to date.
    ViewUpdates => "view_updates";
    /// Times that the views of conversations could not be read or written.
    ViewFailures => "view_failures";
    /// Conversations that ended by themselves and were found by the views.
    ConversationsExpired => "conversations_expired";
    /// Changes of the state of conversations.
    ConversationChanges => "conversation_changes";
    /// Messages of conversations that began to be streamed.
    Drafts => "conversation_drafts";
    /// Message bytes accepted.
    Bytes => "message_bytes";
    /// Frames above the limit.
    Oversize => "oversize_frames";
    /// Connections that broke the protocol.
    ProtocolErrors => "protocol_errors";
    /// Connections that were given up because the client did not read.
    SlowClosed => "slow_clients_closed";
    /// Peers that were silent for too long.
    Silent => "silent_peers_closed";
    /// Tokens that were missing, unknown or revoked.
    Unauthenticated => "unauthenticated";
    /// Messages from SLIM clients that were none.
    SlimMalformed => "slim_malformed_messages";
    /// Messages from SLIM clients whose header had another MAC than their link's.
    SlimBadMacs => "slim_bad_macs";
    /// Messages from SLIM clients that had made their last hop.
    SlimExpired => "slim_expired_messages";
    /// Messages and subscriptions of SLIM clients that the rules do not allow.
    SlimForbidden => "slim_forbidden";
}

const COUNT: usize = Counter::ALL.len();
const CODES: usize = ErrorCode::ALL.len() + 1;

/// The counters of a node.
#[derive(Debug)]
pub struct Counters {
    values: [AtomicU64; COUNT],
    failures: [AtomicU64; CODES],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            values: [const { AtomicU64::new(0) }; COUNT],
            failures: [const { AtomicU64::new(0) }; CODES],
        }
    }
}

impl Counters {
    /// The value now.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize].load(Ordering::Relaxed)
    }

    /// Failures of that kind that were answered.
    pub fn failures(&self, code: ErrorCode) -> u64 {
        self.failures[usize::from(code.as_u16())].load(Ordering::Relaxed)
    }

    /// Adds one.
    pub fn count(&self, counter: Counter) {
        self.values[counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds some.
    pub fn add_to(&self, counter: Counter, count: u64) {
        if count > 0 {
            self.values[counter as usize].fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Adds one failure.
    pub fn count_failure(&self, code: ErrorCode) {
        self.failures[usize::from(code.as_u16())].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what a turn counted, and empties it.
    pub(crate) fn add(&self, tally: &mut Tally) {
        for (value, added) in self.values.iter().zip(&mut tally.0) {
            if *added > 0 {
                value.fetch_add(std::mem::take(added), Ordering::Relaxed);
            }
        }
    }
}

/// What one turn counts.
#[derive(Debug)]
pub(crate) struct Tally([u64; COUNT]);

impl Default for Tally {
    fn default() -> Self {
        Self([0; COUNT])
    }
}

impl Tally {
    pub(crate) fn count(&mut self, counter: Counter) {
        self.add(counter, 1);
    }

    pub(crate) fn add(&mut self, counter: Counter, count: u64) {
        self.0[counter as usize] += count;
    }
}
