//! A model of conversations and of their views.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use conversations::SeqRange;
use journal::{ReadError, ShardId};

use crate::source::{
    Changed, ConversationFacts, EventItem, EventRange, MessageFacts, Partition, Source,
    StoredMessage,
};

/// Number of event partitions in the model.
pub(super) const PARTITIONS: u64 = 2;

/// Stream numbers of conversations start after those of the partitions.
const FIRST: u64 = PARTITIONS + 1;

#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    pub(super) known: Option<ConversationFacts>,
    pub(super) messages: Vec<(u64, &'static str)>,
    is_erased: bool,
}

/// A model of conversations.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) conversations: Vec<Conversation>,
    /// Per event: the conversation, what has changed, and the offset of the message.
    events: [Vec<(u64, Changed, u64)>; PARTITIONS as usize],
}

impl World {
    pub(super) fn number(index: usize) -> u64 {
        FIRST + index as u64
    }

    fn change(&mut self, index: usize, changed: Changed) -> &mut Conversation {
        if self.conversations.len() <= index {
            self.conversations
                .resize_with(index + 1, Conversation::default);
        }
        let number = Self::number(index);
        let conversation = &mut self.conversations[index];
        let offset = conversation.messages.len() as u64;
        self.events[index % PARTITIONS as usize].push((number, changed, offset));
        conversation
    }

    fn is_erased(&self, index: usize) -> bool {
        self.conversations.get(index).is_some_and(|it| it.is_erased)
    }

    pub(super) fn append_message(&mut self, index: usize, at_ms: u64, from: &'static str) {
        if !self.is_erased(index) {
            self.change(index, Changed::Messages)
                .messages
                .push((at_ms, from));
        }
    }

    pub(super) fn put(&mut self, index: usize, change: impl FnOnce(&mut ConversationFacts)) {
        if !self.is_erased(index) {
            let conversation = self.change(index, Changed::State);
            change(conversation.known.get_or_insert_default());
        }
    }

    /// A participant reads up to a message, if it exists and was not read.
    pub(super) fn read(&mut self, index: usize, who: &str, seq: u64) {
        let head = self
            .conversations
            .get(index)
            .map_or(0, |it| it.messages.len());
        let seq = seq.min(head as u64);
        self.put(index, |known| {
            match known.cursors.iter_mut().find(|it| it.0 == who) {
                Some((_, read)) => *read = seq.max(*read),
                None => known.cursors.push((who.to_owned(), seq)),
            }
        });
    }

    /// Retracts newest messages.
    pub(super) fn retract(&mut self, index: usize, at_ms: u64, count: u64) {
        let head = self
            .conversations
            .get(index)
            .map_or(0, |it| it.messages.len() as u64);
        let known = self.visible(index).map(|(known, _)| known);
        let retracted = known.unwrap_or_default().retracted;
        if let Some(first) = retracted.first_of_newest(1, head, count) {
            let last = head + 1;
            self.append_message(index, at_ms, "");
            self.put(index, |known| {
                known.retracted = retracted.with(SeqRange { first, last }, 0);
            });
        }
    }

    pub(super) fn erase(&mut self, index: usize) {
        *self.change(index, Changed::State) = Conversation {
            is_erased: true,
            ..Conversation::default()
        };
    }

    /// Returns the facts of a conversation; `None` if it does not exist.
    pub(super) fn visible(&self, index: usize) -> Option<(ConversationFacts, &Conversation)> {
        let conversation = self.conversations.get(index)?;
        let is_there = conversation.known.is_some() || !conversation.messages.is_empty();
        let mut known = conversation.known.clone().unwrap_or_default();
        "a/b".clone_into(&mut known.namespace);
        is_there.then_some((known, conversation))
    }

    fn activity_ms(&self, index: usize) -> u64 {
        let (known, conversation) = self.visible(index).unwrap();
        let said = conversation.messages.iter().map(|it| it.0);
        said.chain([known.created_ms]).max().unwrap_or_default()
    }

    /// Returns the conversations that satisfy a condition, newest activity first.
    pub(super) fn newest(&self, condition: impl Fn(&ConversationFacts, usize) -> bool) -> Vec<u64> {
        let all = 0..self.conversations.len();
        let mut found: Vec<_> = all
            .filter(|index| {
                let visible = self.visible(*index);
                visible.is_some_and(|(known, _)| condition(&known, *index))
            })
            .collect();
        found.sort_by_key(|index| Reverse((self.activity_ms(*index), *index)));
        found.into_iter().map(Self::number).collect()
    }

    /// Returns the number of unread messages of others; `None` if the name is no participant.
    pub(super) fn unread(&self, index: usize, who: &str) -> Option<u64> {
        let (known, conversation) = self.visible(index)?;
        let read = known.cursors.iter().find(|it| it.0 == who).map(|it| it.1);
        let is_writer = conversation.messages.iter().any(|it| it.1 == who);
        let is_named = known.participants.iter().any(|it| it == who);
        let behind = (1..)
            .zip(&conversation.messages)
            .skip(read.unwrap_or(0) as usize);
        let behind = behind.filter(|(seq, _)| !known.retracted.contains(*seq));
        let unread = behind.filter(|(_, it)| it.1 != who).count() as u64;
        (read.is_some() || is_writer || is_named).then_some(unread)
    }

    /// Returns the conversations that expire, with their times.
    pub(super) fn expiry(&self) -> BTreeMap<u64, BTreeSet<u64>> {
        let mut expiry: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for index in 0..self.conversations.len() {
            if let Some((known, _)) = self.visible(index)
                && known.ttl_ms > 0
            {
                let over = self.activity_ms(index) + known.ttl_ms;
                expiry.entry(over).or_default().insert(Self::number(index));
            }
        }
        expiry
    }

    /// Passes the message of an event, unless it is gone; those of some events are not read along,
    /// and some are passed twice.
    fn read_along(
        &self,
        number: u64,
        changed: Changed,
        offset: u64,
        found: &mut dyn FnMut(EventItem<'_>),
    ) {
        let conversation = self.conversation(number);
        let message = conversation.and_then(|it| it.messages.get(offset as usize));
        let times = match (number + offset) % 5 {
            _ if changed != Changed::Messages => 0,
            0 => 0,
            1 => 2,
            _ => 1,
        };
        for (at_ms, from) in std::iter::repeat_n(message, times).flatten() {
            let message = StoredMessage {
                offset,
                at_ms: *at_ms,
                from,
            };
            found(EventItem::Message { number, message });
        }
    }

    fn conversation(&self, number: u64) -> Option<&Conversation> {
        let index = number.checked_sub(FIRST)?;
        self.conversations.get(index as usize)
    }
}

impl Source for World {
    fn partitions(&self, known: usize) -> Vec<Partition> {
        let all = (1..=PARTITIONS).map(|stream| Partition {
            stream,
            shard: ShardId(0),
        });
        all.skip(known).collect()
    }

    fn reach(&self, partition: Partition) -> EventRange {
        let end = self.events[partition.stream as usize - 1].len() as u64;
        EventRange { start: 0, end }
    }

    fn events(
        &self,
        partition: Partition,
        from: u64,
        limit: usize,
        found: &mut dyn FnMut(EventItem<'_>),
    ) -> Result<u64, ReadError> {
        let events = &self.events[partition.stream as usize - 1];
        let taken = events.iter().skip(from as usize).take(limit);
        let mut next = from;
        for (number, changed, offset) in taken {
            let (number, changed, offset) = (*number, *changed, *offset);
            next += 1;
            self.read_along(number, changed, offset, found);
            found(EventItem::Event {
                number,
                changed,
                offset,
            });
        }
        Ok(next)
    }

    fn numbers_end(&self) -> u64 {
        FIRST + self.conversations.len() as u64
    }

    fn conversation_facts(&self, number: u64) -> Result<Option<ConversationFacts>, ReadError> {
        let index = number.checked_sub(FIRST);
        let visible = index.and_then(|index| self.visible(index as usize));
        Ok(visible.map(|(known, _)| known))
    }

    fn span(&self, number: u64, _: u64) -> (u64, u64) {
        let conversation = self.conversation(number);
        (1, conversation.map_or(0, |it| it.messages.len() as u64))
    }

    fn messages(
        &self,
        number: u64,
        _: u64,
        seqs: RangeInclusive<u64>,
        said: &mut dyn FnMut(MessageFacts<'_>),
    ) -> Result<(), ReadError> {
        let messages = self
            .conversation(number)
            .into_iter()
            .flat_map(|it| &it.messages);
        for ((at_ms, from), seq) in messages.zip(1..) {
            let at_ms = *at_ms;
            if seqs.contains(&seq) {
                said(MessageFacts { seq, at_ms, from });
            }
        }
        Ok(())
    }
}
