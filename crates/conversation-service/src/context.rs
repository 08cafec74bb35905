//! The context window of a conversation, as shown to a model.

use bytes::Bytes;
use conversations::Summary;
use conversations::context::Window;
use conversations::context::{Bounds, Cut, Policy, SummaryFact, Treatment, WindowMessage};
use conversations::record::MessageView;
use journal::{ReadLimit, Record};
use model::Name;

use super::read::MessageLocation;
use super::view::check_alive;
use super::{ConversationError, Conversations, Message, Pending};

/// Maximum number of messages from which a window is cut.
const MESSAGES_MAX: usize = 10_000;

/// Maximum bytes of messages in memory while a window is cut.
const BYTES_MAX: usize = 64 << 20;

/// Messages read at a time, newest first.
const CHUNK: u64 = 64;

/// A window with its messages.
#[derive(Clone, Debug)]
pub struct ContextRead {
    /// The engine's result: which messages are in the window.
    pub cut: Cut,
    /// The summary, if it is in the window.
    pub summary: Option<Summary>,
    records: Vec<(u64, Record)>,
}

/// A message of a window.
#[derive(Clone, Debug)]
pub struct ShownMessage<'a> {
    /// The stored message.
    pub message: Message<'a>,
    /// Its parts that are not shown unchanged, by index.
    pub treated: &'a [(u16, Treatment)],
}

impl ContextRead {
    /// Returns the messages of the window, in order.
    pub fn messages(
        &self,
    ) -> impl Iterator<Item = Result<ShownMessage<'_>, ConversationError>> + '_ {
        self.cut
            .messages
            .iter()
            .map(|WindowMessage { seq, treated }| {
                let place = self.records.binary_search_by_key(seq, |(it, _)| *it);
                let place = place.map_err(|_| missing(*seq))?;
                let record = &self.records[place].1;
                let message = Message {
                    seq: *seq,
                    at_ms: record.time_ms,
                    view: MessageView::decode(&record.payload)?,
                };
                Ok(ShownMessage { message, treated })
            })
    }
}

/// The messages that the engine has looked at, newest first.
struct ReadMessages {
    place: MessageLocation,
    records: Vec<(u64, Record)>,
    bytes: usize,
}

impl Conversations {
    /// Returns the context window of a conversation, by its own policy or the given one; ready when
    /// all of it is durable.
    pub fn context(
        &self,
        name: &Name,
        policy: Option<&Policy>,
    ) -> Result<Pending<ContextRead>, ConversationError> {
        let (place, policy, summary, ticket) = self.with_existing(name, |_, room, location| {
            check_alive(room)?;
            let place = self.message_location(room, location);
            let state = room.engine.state();
            let policy = policy.unwrap_or(&state.settings.context).clone();
            Ok((place, policy, state.summary.clone(), room.ticket))
        })?;
        policy
            .check()
            .map_err(|problem| ConversationError::from(conversations::Refusal::Policy(problem)))?;
        let (start, head) = (self.readable_start(&place), place.head);
        let mut looked = ReadMessages {
            place,
            records: Vec::new(),
            bytes: 0,
        };
        let bounds = Bounds {
            start,
            head,
            // The newest message links to the newest instruction, unless it is one itself.
            instruction: head,
            summary: summary.as_ref().map(|summary| SummaryFact {
                through_seq: summary.through_seq,
                tokens: summary.tokens,
                is_estimated: summary.is_estimated,
            }),
            messages_max: MESSAGES_MAX,
        };
        let mut window = Window::new(&policy, bounds)?.without(&looked.place.retracted);
        while let Some(seq) = window.wants() {
            let record = self.look_up(&mut looked, start, seq)?;
            window.look(seq, &MessageView::decode(&record)?);
        }
        let cut = window.cut()?;
        let ReadMessages { mut records, .. } = looked;
        records.sort_unstable_by_key(|(seq, _)| *seq);
        let read = ContextRead {
            summary: summary.filter(|_| cut.has_summary),
            cut,
            records,
        };
        Ok(Pending::new(&self.store.journal, ticket, Ok(read)))
    }
}

impl Conversations {
    /// Returns a message; reads it together with preceding ones.
    fn look_up(
        &self,
        looked: &mut ReadMessages,
        start: u64,
        seq: u64,
    ) -> Result<Bytes, ConversationError> {
        if let Some((_, record)) = looked.records.iter().rev().find(|(it, _)| *it == seq) {
            return Ok(record.payload.clone());
        }
        let retracted = &looked.place.retracted;
        let first = match retracted.contains(seq) {
            // A retraction, which links to the newest instruction.
            true => seq,
            false => retracted.live_from(seq).max(start),
        };
        let first = first.max(seq.saturating_sub(CHUNK - 1));
        let mut count = seq + 1 - first;
        loop {
            let limit = ReadLimit {
                records: count as usize,
                bytes: BYTES_MAX / 4,
            };
            let records = self.messages_anywhere(&looked.place, seq + 1 - count, limit)?;
            if (records.len() as u64) < count {
                if count == 1 {
                    return Err(missing(seq));
                }
                // The messages are large: read fewer at a time.
                count = count.div_ceil(2);
                continue;
            }
            looked.bytes += records.iter().map(|it| it.payload.len()).sum::<usize>();
            if looked.bytes > BYTES_MAX {
                return Err(ConversationError::WindowTooLarge);
            }
            let place = &looked.place;
            let numbered = records.into_iter().map(|it| (place.seq(it.offset), it));
            looked.records.extend(numbered);
            let found = looked.records.last().filter(|(it, _)| *it == seq);
            return found
                .map(|(_, it)| it.payload.clone())
                .ok_or_else(|| missing(seq));
        }
    }
}

fn missing(seq: u64) -> ConversationError {
    ConversationError::inconsistent(format!("message {seq} is not there"))
}
