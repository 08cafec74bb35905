//! Watching a conversation: first the existing messages, then new ones.
//!
//! A watcher pulls: nothing is queued for it, and items are read from the journal at the watcher's
//! pace. A slow watcher therefore costs nothing, and it sees every message exactly once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use conversations::SeqRange;
use conversations::record::{self, MessageView};
use conversations::resume::Position;
use journal::{Following, ReadLimit, Record, Status};
use model::Name;
use store::{FollowError, Reach};

use super::feed::taken;
use super::read::MessageLocation;
use super::slot::{Room, Slot};
use super::view::check_alive;
use super::{ConversationError, Conversations, Pending};
use crate::archive::ArchiveRead;

/// Limit of one read ahead.
const AHEAD: ReadLimit = ReadLimit {
    records: 64,
    bytes: 64 << 10,
};

/// An item for a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Message(StoredMessage),
    /// All existing messages have been returned; later items are new. Returned once.
    Head {
        /// The number of the newest message.
        head_seq: u64,
    },
    /// All messages up to one were erased by a clear.
    Cleared {
        /// The last erased message.
        through_seq: u64,
    },
    /// The numbers of a range have no message any more: the newest messages were retracted.
    Retracted {
        /// The first retracted message.
        first_seq: u64,
        /// The number of the retraction, after the last retracted message.
        last_seq: u64,
    },
    /// A chunk of a draft.
    Delta {
        /// The draft's number.
        draft: u64,
        /// The id of the message that the draft becomes.
        id: Arc<str>,
        /// The chunk's index in the draft, from 0.
        index: u32,
        /// The chunk, one line.
        chunk: Bytes,
    },
    /// The author of a draft was asked to stop. Returned once per draft that the watcher saw open,
    /// before the draft's end.
    Stop {
        /// The draft's number.
        draft: u64,
        /// The id of the message that the draft becomes.
        id: Arc<str>,
    },
    /// A draft of which chunks were returned has ended. Its message contains all of it, and was
    /// returned before.
    Closed {
        /// The draft's number.
        draft: u64,
        /// The author's final chunk, if the watcher saw the draft open.
        last: Option<Bytes>,
    },
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// The message's number.
    pub seq: u64,
    /// The time of the append, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    record: Bytes,
}

impl StoredMessage {
    /// Decodes the message.
    pub fn view(&self) -> Result<MessageView<'_>, ConversationError> {
        Ok(MessageView::decode(&self.record)?)
    }
}

/// A watch of one conversation; see the module docs.
pub struct Watch {
    conversations: Conversations,
    slot: Arc<Slot>,
    place: MessageLocation,
    /// The watcher's number.
    number: u64,
    /// The position after the last returned item.
    position: Position,
    /// The last message of a clear that the watcher knows; 0 for none.
    cleared: u64,
    /// Messages and retractions to return next.
    ahead: VecDeque<Item>,
    /// Items of drafts to return next.
    pieces: VecDeque<Item>,
    /// Drafts that were open at the last look, whose end was not returned yet.
    seen: Vec<SeenDraft>,
    /// Drafts that have ended.
    closing: Vec<EndedDraft>,
    is_caught_up: bool,
    following: Option<Following>,
    /// A request to the archive, and the refusal to return if the archive does not have the
    /// messages.
    reading: Option<(ArchiveRead, ConversationError)>,
    /// A read from the disk in progress.
    loading: Option<Pending<Vec<Record>>>,
}

/// An open draft that the watcher has seen, whether or not chunks of it were returned.
struct SeenDraft {
    draft: u64,
    /// The id of the message that the draft becomes.
    id: Arc<str>,
    is_stopped: Arc<AtomicBool>,
    /// True if the request to stop was returned.
    is_told: bool,
    /// The final chunk.
    last: Arc<OnceLock<Bytes>>,
}

/// A draft that has ended; its end was not returned yet.
struct EndedDraft {
    draft: u64,
    /// The newest message when the draft was found to have ended: the draft's message is not after
    /// it.
    head: u64,
    last: Option<Bytes>,
}

impl Conversations {
    /// Watches a conversation from the message after `after` on.
    pub fn watch(&self, name: &Name, after: u64) -> Result<Watch, ConversationError> {
        let position = Position {
            seq: after,
            drafts: Vec::new(),
        };
        self.watch_from(name, position)
    }

    /// Like [`Conversations::watch`], from a position that may lie inside drafts.
    pub fn watch_from(&self, name: &Name, position: Position) -> Result<Watch, ConversationError> {
        let rooms = &self.rooms;
        self.with_existing(name, |slot, room, location| {
            check_alive(room)?;
            let head = room.engine.head();
            if position.seq > head {
                return Err(conversations::Refusal::BeyondHead { head }.into());
            }
            let max = rooms.options.watchers_max;
            let count = rooms.watchers.fetch_add(1, Ordering::Relaxed);
            if count >= max {
                rooms.watchers.fetch_sub(1, Ordering::Relaxed);
                return Err(ConversationError::TooManyWatchers { limit: max });
            }
            room.watchers += 1;
            Ok(Watch {
                conversations: self.clone(),
                slot: slot.clone(),
                place: self.message_location(room, location),
                cleared: match room.engine.state().cleared_seq() {
                    seq if seq <= position.seq => seq,
                    _ => 0,
                },
                number: rooms.watches.fetch_add(1, Ordering::Relaxed),
                position,
                ahead: VecDeque::new(),
                pieces: VecDeque::new(),
                seen: Vec::new(),
                closing: Vec::new(),
                is_caught_up: false,
                following: None,
                reading: None,
                loading: None,
            })
        })
    }
}

impl SeenDraft {
    /// Returns the item of the request to stop, once.
    fn stop(&mut self) -> Option<Item> {
        let is_news = !self.is_told && self.is_stopped.load(Ordering::Relaxed);
        self.is_told |= is_news;
        is_news.then(|| Item::Stop {
            draft: self.draft,
            id: self.id.clone(),
        })
    }
}

impl Watch {
    /// Returns the current position: a watch from there continues with the next item.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Returns the next item. An error ends the watch.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Item, ConversationError>> {
        self.end_following();
        loop {
            if let Some(item) = self.ahead.pop_front() {
                self.see(&item);
                return Poll::Ready(Ok(item));
            }
            // Order: the chunks of a draft, then its message, then its end.
            if let Some(item) = self.pieces.pop_front().or_else(|| self.next_closed()) {
                self.see(&item);
                return Poll::Ready(Ok(item));
            }
            match self.poll_archive(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(refusal)) => return Poll::Ready(Err(refusal)),
                Poll::Ready(Ok(())) if !self.ahead.is_empty() => continue,
                Poll::Ready(Ok(())) => {}
            }
            match self.read_ahead(cx.waker()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(refusal)) => return Poll::Ready(Err(refusal)),
                Poll::Ready(Ok(())) => {}
            }
            if self.reading.is_some() {
                continue;
            }
            if !self.ahead.is_empty() || !self.pieces.is_empty() {
                continue;
            }
            if !std::mem::replace(&mut self.is_caught_up, true) {
                let head_seq = self.position.seq;
                return Poll::Ready(Ok(Item::Head { head_seq }));
            }
            match self.look_at_drafts(cx.waker()) {
                Err(refusal) => return Poll::Ready(Err(refusal)),
                Ok(true) => continue,
                Ok(false) => {}
            }
            let next = self.position.seq + 1;
            match self
                .conversations
                .wait_for_message(&self.place, next, cx.waker())
            {
                Ok(None) => {}
                Ok(following) => {
                    self.following = following;
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Takes the archive's answer, if a request is in progress.
    fn poll_archive(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ConversationError>> {
        let Some((mut reading, trimmed)) = self.reading.take() else {
            return Poll::Ready(Ok(()));
        };
        let Poll::Ready(answer) = reading.as_mut().poll(cx) else {
            self.reading = Some((reading, trimmed));
            return Poll::Pending;
        };
        let records = taken(&self.place, self.position.seq + 1, answer, trimmed)?;
        self.ahead = compact(&records, &self.place);
        Poll::Ready(Ok(()))
    }

    /// Reads ahead from memory at once, or from the disk on another thread.
    fn read_ahead(&mut self, waker: &Waker) -> Poll<Result<(), ConversationError>> {
        let seq = self.position.seq + 1;
        if let Some(item) = retracted_at(&self.place, seq) {
            self.ahead.push_back(item);
            return Poll::Ready(Ok(()));
        }
        if self.loading.is_none() {
            let (conversations, limit) = (&self.conversations, self.limit());
            match conversations
                .messages_within(Reach::Memory, &self.place, seq, limit)
                .transpose()
            {
                Some(read) => return Poll::Ready(self.take(read)),
                None => {
                    let (reader, place) = (conversations.clone(), self.place.clone());
                    let read = move || reader.messages(&place, seq, limit);
                    self.loading = Some(conversations.platform.offload(read));
                }
            }
        }
        let Some(loading) = &mut self.loading else {
            return Poll::Pending;
        };
        let read = ready!(loading.poll_answer(waker));
        self.loading = None;
        Poll::Ready(self.take(read))
    }

    /// Returns the limit of a read from the position: up to the next known retraction.
    fn limit(&self) -> ReadLimit {
        let seq = self.position.seq + 1;
        let count = self.place.retracted.live_until(seq).saturating_sub(seq);
        let count = usize::try_from(count.saturating_add(1)).unwrap_or(usize::MAX);
        ReadLimit {
            records: AHEAD.records.min(count),
            ..AHEAD
        }
    }

    fn take(
        &mut self,
        read: Result<Vec<Record>, ConversationError>,
    ) -> Result<(), ConversationError> {
        match read {
            Ok(records) => {
                self.ahead = compact(&records, &self.place);
                Ok(())
            }
            // If the whole conversation was erased or cleared, report that instead.
            Err(trimmed) => match self.look_at_room() {
                Some(Err(refusal)) => Err(refusal),
                Some(Ok(through_seq)) if through_seq > self.position.seq => {
                    self.pieces.push_back(Item::Cleared { through_seq });
                    Ok(())
                }
                Some(Ok(_)) | None => {
                    let seq = self.position.seq + 1;
                    if let Some(item) = retracted_at(&self.place, seq) {
                        self.ahead.push_back(item);
                        return Ok(());
                    }
                    let asked = self
                        .conversations
                        .ask_archive(&self.place, seq, AHEAD, &trimmed);
                    match asked {
                        Some(reading) => self.reading = Some((reading, trimmed)),
                        None => return Err(trimmed),
                    }
                    Ok(())
                }
            },
        }
    }

    /// Returns the last message that a clear erased, and updates the retracted messages; `None` if
    /// the conversation is not loaded.
    fn look_at_room(&mut self) -> Option<Result<u64, ConversationError>> {
        let slot = self.slot.clone();
        let mut room = slot.room()?;
        self.place = self
            .conversations
            .message_location(&mut room, self.place.location);
        Some(cleared_seq(&room))
    }

    fn see(&mut self, item: &Item) {
        match item {
            Item::Delta { draft, index, .. } => self.position.see(*draft, *index),
            Item::Closed { draft, .. } => {
                self.position.forget(*draft);
                self.closing.retain(|it| it.draft != *draft);
            }
            Item::Cleared { through_seq } => {
                self.cleared = *through_seq;
                self.position.seq = self.position.seq.max(*through_seq);
            }
            Item::Message(stored) => self.position.seq = stored.seq,
            Item::Retracted { last_seq, .. } => {
                self.position.seq = self.position.seq.max(*last_seq);
            }
            Item::Stop { .. } | Item::Head { .. } => {}
        }
    }

    /// Returns the end of a draft whose message was returned.
    fn next_closed(&self) -> Option<Item> {
        let seq = self.position.seq;
        let over = self.closing.iter().find(|it| it.head <= seq)?;
        Some(Item::Closed {
            draft: over.draft,
            last: over.last.clone(),
        })
    }

    /// Takes new items of drafts; if there are none, registers the waker.
    fn look_at_drafts(&mut self, waker: &Waker) -> Result<bool, ConversationError> {
        let (slot, store) = (self.slot.clone(), self.conversations.store.clone());
        let Some(mut room) = slot.room() else {
            let message = "the conversation was let go while it was watched";
            return Err(ConversationError::inconsistent(message));
        };
        let through_seq = cleared_seq(&room)?;
        if through_seq > self.cleared {
            // A clear is shown once it is durable; until then the journal has registered the waker.
            let notify = |ticket| store.journal.notify(ticket, waker);
            if matches!(room.ticket.map(notify), None | Some(Status::Durable)) {
                self.pieces.push_back(Item::Cleared { through_seq });
                return Ok(true);
            }
        }
        self.look_at_ended(&room);
        let mut bytes = 0;
        for open in &mut room.drafts {
            if !open.draft.is_shown() {
                let status = |ticket| store.journal.notify(ticket, waker);
                match open.opening.map(status) {
                    None | Some(Status::Durable) => open.draft.show(),
                    // Not stored yet; the journal has registered the waker.
                    Some(_) => continue,
                }
            }
            let (draft, id) = (open.number, &open.id);
            if !self.seen.iter().any(|seen| seen.draft == draft) {
                self.seen.push(SeenDraft {
                    draft,
                    id: id.clone(),
                    is_stopped: open.is_stopped.clone(),
                    is_told: false,
                    last: open.last.clone(),
                });
            }
            let from = self.position.next_chunk(draft);
            for (index, chunk) in open.draft.chunks(from) {
                if bytes >= AHEAD.bytes {
                    break;
                }
                bytes += chunk.len();
                self.pieces.push_back(Item::Delta {
                    draft,
                    id: id.clone(),
                    index,
                    chunk: Bytes::copy_from_slice(chunk),
                });
            }
        }
        self.pieces
            .extend(self.seen.iter_mut().filter_map(SeenDraft::stop));
        let is_something = !self.pieces.is_empty() || self.next_closed().is_some();
        if !is_something {
            room.watching.insert(self.number, waker.clone());
        }
        Ok(is_something)
    }

    /// Notes the drafts that have ended. A request to stop is returned before the end, even if the
    /// draft ended at once.
    fn look_at_ended(&mut self, room: &Room) {
        let is_open = |draft| room.drafts.iter().any(|open| open.number == draft);
        let over = |seen: &mut SeenDraft| !is_open(seen.draft);
        let ended = self.seen.extract_if(.., over).map(|mut seen| {
            self.pieces.extend(seen.stop());
            seen
        });
        let ended: Vec<SeenDraft> = ended.collect();
        let told = ended.iter().filter(|seen| seen.is_told);
        let mut over: Vec<_> = told.map(|seen| seen.draft).collect();
        let shown = self.position.drafts.iter().map(|seen| seen.draft);
        over.extend(shown.filter(|draft| !is_open(*draft)));
        let head = room.engine.head();
        for draft in over {
            if !self.closing.iter().any(|it| it.draft == draft) {
                let seen = ended.iter().find(|seen| seen.draft == draft);
                let last = seen.and_then(|seen| seen.last.get().cloned());
                self.closing.push(EndedDraft { draft, head, last });
            }
        }
    }

    fn end_following(&mut self) {
        if let Some(following) = self.following.take() {
            self.conversations.store.unfollow(&following);
        }
    }
}

impl Conversations {
    /// Registers the waker for a message; `None` if the message exists already.
    pub(super) fn wait_for_message(
        &self,
        place: &MessageLocation,
        seq: u64,
        waker: &Waker,
    ) -> Result<Option<Following>, FollowError> {
        self.store.follow(place.location, place.offset(seq), waker)
    }
}

/// Returns the last message that a clear erased; 0 for none.
fn cleared_seq(room: &Room) -> Result<u64, ConversationError> {
    check_alive(room)?;
    Ok(room.engine.state().cleared_seq())
}

/// Returns records as items, without messages that one of them retracts. The records are copied to
/// memory of their own, because a slow watcher must not hold the large blocks.
fn compact(records: &[Record], place: &MessageLocation) -> VecDeque<Item> {
    let size = records.iter().map(|it| it.payload.len()).sum();
    let mut all = Vec::with_capacity(size);
    for record in records {
        all.extend_from_slice(&record.payload);
    }
    let mut rest = Bytes::from(all);
    let mut items = VecDeque::with_capacity(records.len());
    for record in records {
        let (seq, bytes) = (
            place.seq(record.offset),
            rest.split_to(record.payload.len()),
        );
        match record::retraction(&bytes) {
            None => items.push_back(Item::Message(StoredMessage {
                seq,
                at_ms: record.time_ms,
                record: bytes,
            })),
            Some(retraction) => {
                let first_seq = retraction.first_seq.clamp(1, seq);
                while items.back().is_some_and(|it| first_number(it) >= first_seq) {
                    items.pop_back();
                }
                items.push_back(Item::Retracted {
                    first_seq,
                    last_seq: seq,
                });
            }
        }
    }
    items
}

/// Returns the retraction of a number, if it was retracted.
fn retracted_at(place: &MessageLocation, seq: u64) -> Option<Item> {
    let SeqRange { first, last } = place.retracted.range_of(seq)?;
    Some(Item::Retracted {
        first_seq: first,
        last_seq: last,
    })
}

/// Returns the first number of a message or a retraction.
fn first_number(item: &Item) -> u64 {
    match item {
        Item::Message(stored) => stored.seq,
        Item::Retracted { first_seq, .. } => *first_seq,
        _ => 0,
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end_following();
        let conversations = &self.conversations;
        conversations.rooms.watchers.fetch_sub(1, Ordering::Relaxed);
        if let Some(mut room) = self.slot.room() {
            room.watchers -= 1;
            room.watching.remove(&self.number);
            room.used_ns = conversations.platform.now_ns();
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watch({} at {})", self.slot.name, self.position)
    }
}
