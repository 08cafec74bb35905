//! What agents have to do with conversations: what one has not answered, which message is an answer,
//! and its read mark, which moves under the guard of the answer itself.
//!
//! The read mark of the agent that a conversation names says what it has answered: a restart finds
//! everything behind it again. An answer is known by its id, which names the call that it answers.

use conversations::record::{self, EventRef, EventTag, MessageView};
use conversations::{Change, Lifecycle, NewMessage, Status, Update};
use journal::{AppendError, Guard, ReadLimit, StreamId, Ticket};
use model::{ErrorCode, Name};

use super::read::Place;
use super::slot::Room;
use super::{Conversations, Details, Refusal, state_of};
use crate::store::{Kind, Location, Store};

/// Messages that are looked at together.
const LIMIT: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 4 << 20,
};

/// The id of what answers a call: `d-CONVERSATION-AGENT-FROM-TO`, and `.N` for a further one, when
/// there is a part of an answer under it already. It is the same for each attempt, and nothing has to
/// be kept to know again what it answers.
pub(crate) fn delivery_id(conversation: StreamId, agent: &str, from: u64, to: u64) -> String {
    format!("{}{from}-{to}", prefix(conversation, agent))
}

fn prefix(conversation: StreamId, agent: &str) -> String {
    let agent = model::fnv1a_32(agent.bytes());
    format!("d-{:x}-{agent:08x}-", conversation.0)
}

/// The last message that the message of this id answers, if it is an answer.
pub(crate) fn answered_by(id: &str, conversation: StreamId, agent: &str) -> Option<u64> {
    let rest = id.strip_prefix(prefix(conversation, agent).as_str())?;
    let (from, to) = rest.split_once('-')?;
    let to = to.split_once('.').map_or(to, |(to, _)| to);
    let from = from.parse::<u64>().ok()?;
    to.parse().ok().filter(|to| from <= *to)
}

/// A conversation, as an agent that is to answer it sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The agent that it names now: `org/namespace/agent`; empty for none.
    pub(crate) agent: String,
    /// Whether it takes an answer.
    pub(crate) is_open: bool,
    /// The agent's read mark.
    pub(crate) read: u64,
    /// The first and the last message of others behind that, as far as all of that is durable.
    pub(crate) due: Option<(u64, u64)>,
    /// There may be more of them.
    pub(crate) is_partial: bool,
}

/// Where there may be something for an agent.
struct Span {
    place: Place,
    behind: u64,
    /// The last message of a copy in which it has no read mark yet: what it answered of those in the
    /// original is answered.
    copied: u64,
    /// The newest message, durable or not.
    written: u64,
}

impl Conversations<'_> {
    /// What its agent has not answered, and behind the message that `floor` says for that agent;
    /// `None` for what is not, or no longer, there.
    pub(crate) fn look(
        &self,
        conversation: StreamId,
        floor: &dyn Fn(&str) -> u64,
    ) -> Result<Option<Look>, Refusal> {
        let Some((Kind::Conversation, name, _)) = self.store.named(conversation) else {
            return Ok(None);
        };
        let Ok(name) = Name::parse(&name) else {
            return Ok(None);
        };
        let looked = self.with_existing(&name, |_, room, location| {
            let state = room.engine.state();
            let agent = state.settings.agent.clone();
            let place = Place {
                location,
                base: state.base,
            };
            let read = state.cursors.get(&agent);
            let copied = match (&state.origin, read) {
                (Some(origin), None) => origin.seq,
                _ => 0,
            };
            let span = Span {
                place,
                behind: read.unwrap_or(0),
                copied,
                written: room.engine.head(),
            };
            Ok((span, agent, state.lifecycle))
        });
        let (span, agent, lifecycle) = match looked {
            Err(refusal) if refusal.code == ErrorCode::NotFound => return Ok(None),
            looked => looked?,
        };
        if matches!(lifecycle, Lifecycle::Erased | Lifecycle::Copying) {
            return Ok(None);
        }
        let mut look = Look {
            agent: match agent.as_str() {
                "" => String::new(),
                agent => format!("{}/{}/{agent}", name.org(), name.namespace()),
            },
            is_open: lifecycle == Lifecycle::Open,
            read: span.behind,
            due: None,
            is_partial: false,
        };
        if !agent.is_empty() {
            let behind = floor(&look.agent).max(span.behind);
            let span = Span { behind, ..span };
            self.look_behind(span, &agent, &mut look)?;
        }
        Ok(Some(look))
    }

    fn look_behind(&self, span: Span, agent: &str, look: &mut Look) -> Result<(), Refusal> {
        let Span {
            place,
            behind,
            copied,
            written,
        } = span;
        let (start, head) = self.store.span(place);
        look.is_partial = head < written;
        let from = (behind + 1).max(start);
        if from > head {
            return Ok(());
        }
        let records = self.store.messages(place, from, LIMIT)?;
        for record in &records {
            let message = MessageView::decode(&record.payload)?;
            let seq = place.seq(record.offset);
            if is_answer(&message, place.location.stream, agent) {
                if seq <= copied && message.status == Status::Complete {
                    look.due = None;
                }
            } else {
                look.due = Some((look.due.map_or(seq, |(first, _)| first), seq));
            }
        }
        let last = records.last().map_or(from, |it| place.seq(it.offset));
        if last < head {
            // So many that the rest is not looked at: what is behind them is due with them.
            look.due = Some((look.due.map_or(last, |(first, _)| first), head));
        }
        Ok(())
    }

    /// How the message of that number ended; `None` if it is not there.
    pub(crate) fn status_of(&self, name: &Name, seq: u64) -> Result<Option<Status>, Refusal> {
        let place = self.place(name)?;
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let records = self.store.messages(place, seq, one)?;
        let record = records.first().filter(|it| place.seq(it.offset) == seq);
        Ok(match record {
            Some(record) => Some(MessageView::decode(&record.payload)?.status),
            None => None,
        })
    }
}

fn is_answer(message: &MessageView<'_>, conversation: StreamId, agent: &str) -> bool {
    message.from == agent || answered_by(message.id, conversation, agent).is_some()
}

impl Store {
    /// The conversation has an agent: it is looked at.
    pub(super) fn touch(&self, room: &Room) {
        if let Some(location) = room.location
            && !room.engine.state().settings.agent.is_empty()
        {
            self.touched.touch(location.stream);
        }
    }

    /// Whether messages are let in while an agent answers that wants none then.
    pub(super) fn check_busy(
        &self,
        room: &Room,
        messages: &[NewMessage<'_>],
    ) -> Result<(), Refusal> {
        let agent = &room.engine.state().settings.agent;
        let Some(location) = room.location.filter(|_| !agent.is_empty()) else {
            return Ok(());
        };
        let is_own = |message: &NewMessage<'_>| {
            let id = message.id.unwrap_or_default();
            message.from == agent || answered_by(id, location.stream, agent).is_some()
        };
        match self.touched.busy_with(location.stream) {
            Some(seq) if !messages.iter().all(is_own) => {
                let message = format!("`{agent}` is answering message {seq}: it wants no other");
                let details = Details {
                    seq: Some(seq),
                    ..Details::default()
                };
                Err(Refusal::new(ErrorCode::Busy, message).with(details))
            }
            _ => Ok(()),
        }
    }

    /// How the read mark of the conversation's agent moves with these messages.
    pub(super) fn mark<'b>(
        &self,
        room: &Room,
        messages: impl Iterator<Item = (&'b str, &'b str)>,
    ) -> Result<Option<Update>, Refusal> {
        let agent = &room.engine.state().settings.agent;
        let Some(location) = room.location.filter(|_| !agent.is_empty()) else {
            return Ok(None);
        };
        let answered = messages.filter_map(|(id, from)| {
            let awaited = || self.touched.awaited(location.stream);
            answered_by(id, location.stream, agent).or_else(|| awaited().filter(|_| from == agent))
        });
        let Some(through) = answered.max() else {
            return Ok(None);
        };
        let change = Change::Cursor {
            who: agent.clone(),
            seq: through.min(room.engine.head()),
        };
        let limits = &self.rooms.options.limits;
        let update = room.engine.decide_change(None, &change, limits, 0)?;
        Ok(Some(update).filter(|update| *update != Update::Nothing))
    }

    /// Under the guard of what moves it: writes how a read mark moves, and its event.
    pub(super) fn write_mark(
        &self,
        guard: &mut Guard<'_>,
        location: Location,
        events: StreamId,
        update: &Update,
    ) -> Result<Option<Ticket>, AppendError> {
        let states = state_of(location.stream);
        let (tag, bytes) = match update {
            Update::Nothing => return Ok(None),
            Update::Change { bytes, .. } => (record::CHANGE, bytes),
            Update::Snapshot { bytes, .. } => (record::SNAPSHOT, bytes),
        };
        let event = EventRef {
            conversation: location.stream.0,
            offset: guard.next(states),
        };
        guard.append(events, None, EventTag::State as u8, &event.encode())?;
        let appended = guard.append(states, None, tag, bytes)?;
        if tag == record::SNAPSHOT {
            guard.trim(states, appended.offset)?;
        }
        Ok(Some(appended.ticket))
    }
}

/// Bytes of what [`Store::write_mark`] writes, and how many records with their marks.
pub(super) fn mark_size(update: Option<&Update>) -> (usize, usize) {
    match update {
        None | Some(Update::Nothing) => (0, 0),
        Some(Update::Change { bytes, .. } | Update::Snapshot { bytes, .. }) => (bytes.len(), 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_what_it_answers_and_whose_answer_it_is() {
        let id = delivery_id(StreamId(300), "support", 7, 9);
        assert!(id.starts_with("d-12c-") && id.ends_with("-7-9"), "{id}");
        let check = |id: &str, expected| {
            assert_eq!(answered_by(id, StreamId(300), "support"), expected, "{id}");
        };
        check(&id, Some(9));
        check(&format!("{id}.2"), Some(9));
        check(&delivery_id(StreamId(300), "support", 9, 7), None);
        check(&delivery_id(StreamId(301), "support", 7, 9), None);
        check(&delivery_id(StreamId(300), "other", 7, 9), None);
        check("d-12c", None);
        check("", None);
    }
}
