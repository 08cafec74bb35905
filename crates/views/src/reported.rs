//! [`ReportedChanges`]: the conversations that a batch of events reports as changed, and the messages
//! that were read along with the events.
//!
//! The message of an event lies behind it in the same block of the journal. So the views need not
//! read a block again for the messages of the events that they have read from it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::source::{Changed, EventItem, StoredMessage};

/// The changed conversations of a batch, by number.
#[derive(Debug, Default)]
pub(super) struct ReportedChanges {
    pub(super) conversations: BTreeMap<u64, Reported>,
    /// The authors of all messages, one after the other.
    pub(super) texts: String,
}

/// The changes of a conversation, as the events of a batch report them.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// The kind of the change; `None` if messages were read without their events.
    pub(super) changed: Option<Changed>,
    /// The offset of the newest message of the events.
    pub(super) newest: u64,
    /// The messages that were read along, by ascending offset.
    pub(super) messages: Vec<ReportedMessage>,
}

/// A message that was read along with its event.
#[derive(Debug)]
pub(super) struct ReportedMessage {
    pub(super) offset: u64,
    pub(super) at_ms: u64,
    /// The place of the author in the texts.
    pub(super) from: Range<usize>,
}

impl ReportedChanges {
    /// Adds an event or a message.
    pub(super) fn add(&mut self, item: EventItem<'_>) {
        match item {
            EventItem::Event {
                number,
                changed,
                offset,
            } => {
                let reported = self.conversations.entry(number).or_default();
                reported.changed = reported.changed.max(Some(changed));
                if changed == Changed::Messages {
                    reported.newest = reported.newest.max(offset);
                }
            }
            EventItem::Message { number, message } => self.add_message(number, message),
        }
    }

    fn add_message(&mut self, number: u64, message: StoredMessage<'_>) {
        let StoredMessage {
            offset,
            at_ms,
            from,
        } = message;
        let messages = &mut self.conversations.entry(number).or_default().messages;
        // A block that was filed during the read is read twice.
        if messages.last().is_some_and(|last| last.offset >= offset) {
            return;
        }
        let begin = self.texts.len();
        self.texts.push_str(from);
        messages.push(ReportedMessage {
            offset,
            at_ms,
            from: begin..self.texts.len(),
        });
    }
}
