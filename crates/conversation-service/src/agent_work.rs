//! Unanswered messages for agents: which messages an agent must answer, which messages are answers,
//! and the agent's read mark, which moves under the guard of the answer itself.
//!
//! The read mark of the conversation's agent records what was answered: after a restart, every
//! message after it is due again. An answer is recognised by its id, which names the call that it
//! answers.

use conversations::record::{self, EventRef, EventTag, MessageView};
use conversations::{Change, Lifecycle, NewMessage, Status, Update};
use journal::{AppendError, Guard, ReadLimit, StreamId, Ticket};
use model::{ErrorCode, Name};
use store::{Kind, Location, Store};

use super::read::MessageLocation;
use super::slot::Room;
use super::state::EVENT_SIZE;
use super::{ConversationError, Conversations};

/// Limit of one read of messages.
const LIMIT: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 4 << 20,
};

/// Returns the id of a call's answer: `d-CONVERSATION-AGENT-FROM-TO`, with `.N` appended for a
/// further answer when part of one exists already. Every attempt has the same id, so no state is
/// needed to match answers to calls.
pub fn delivery_id(conversation: StreamId, agent: &str, from: u64, to: u64) -> String {
    format!("{}{from}-{to}", prefix(conversation, agent))
}

fn prefix(conversation: StreamId, agent: &str) -> String {
    let agent = model::fnv1a_32(agent.bytes());
    format!("d-{:x}-{agent:08x}-", conversation.0)
}

/// Returns the last message that is answered by the message with this id, if it is an answer.
pub fn answered_by(id: &str, conversation: StreamId, agent: &str) -> Option<u64> {
    let rest = id.strip_prefix(prefix(conversation, agent).as_str())?;
    let (from, to) = rest.split_once('-')?;
    let to = to.split_once('.').map_or(to, |(to, _)| to);
    let from = from.parse::<u64>().ok()?;
    to.parse().ok().filter(|to| from <= *to)
}

/// A conversation from the view of the agent that must answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTurn {
    /// The conversation's current agent: `org/namespace/agent`; empty for none.
    pub agent: String,
    /// True if the conversation accepts an answer.
    pub is_open: bool,
    /// The agent's read mark.
    pub read: u64,
    /// The first and last message by others after the read mark, once both are durable.
    pub due: Option<(u64, u64)>,
    /// True if there may be more such messages.
    pub is_partial: bool,
}

/// The range of messages that may be due for an agent.
struct Span {
    place: MessageLocation,
    behind: u64,
    /// The last copied message of a fork in which the agent has no read mark yet: copied messages
    /// that were answered in the original count as answered.
    copied: u64,
    /// The newest message, durable or not.
    written: u64,
}

impl Conversations {
    /// Returns the messages that the conversation's agent has not answered, after both its read
    /// mark and the number that `floor` returns; `None` if the conversation does not exist.
    pub fn look(
        &self,
        conversation: StreamId,
        floor: &dyn Fn(&str) -> u64,
    ) -> Result<Option<AgentTurn>, ConversationError> {
        let Some((Kind::Conversation, name, _)) = self.store.named(conversation) else {
            return Ok(None);
        };
        let Ok(name) = Name::parse(&name) else {
            return Ok(None);
        };
        let looked = self.with_existing(&name, |_, room, location| {
            let place = self.message_location(room, location);
            let state = room.engine.state();
            let agent = state.settings.agent.clone();
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
            Err(refusal) if refusal.code() == ErrorCode::NotFound => return Ok(None),
            looked => looked?,
        };
        if matches!(lifecycle, Lifecycle::Erased | Lifecycle::Copying) {
            return Ok(None);
        }
        let mut look = AgentTurn {
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

    fn look_behind(
        &self,
        span: Span,
        agent: &str,
        look: &mut AgentTurn,
    ) -> Result<(), ConversationError> {
        let Span {
            place,
            behind,
            copied,
            written,
        } = span;
        let (start, head) = (self.start(&place), place.head);
        look.is_partial = head < written;
        let from = place.retracted.next_live((behind + 1).max(start));
        if from > head {
            return Ok(());
        }
        let records = self.live_messages(&place, from, LIMIT)?;
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
        let newest = place.retracted.newest_live(head);
        if last < newest {
            // Too many messages to read now: the rest counts as due.
            look.due = Some((look.due.map_or(last, |(first, _)| first), newest));
        }
        Ok(())
    }

    /// Returns the status of a message, retracted or not; `None` if it does not exist.
    pub fn status_of(&self, name: &Name, seq: u64) -> Result<Option<Status>, ConversationError> {
        let place = self.place(name)?;
        let one = ReadLimit {
            records: 1,
            bytes: 1,
        };
        let records = self.messages(&place, seq, one)?;
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

impl Conversations {
    /// Notifies the delivery to agents that the conversation has changed, if it has an agent.
    pub(super) fn touch(&self, room: &Room) {
        if let Some(location) = room.location
            && !room.engine.state().settings.agent.is_empty()
        {
            self.rooms.agent_changes.touch(location.stream);
        }
    }

    /// Checks whether messages are accepted now: an agent may refuse them while it answers.
    pub(super) fn check_busy(
        &self,
        room: &Room,
        messages: &[NewMessage<'_>],
    ) -> Result<(), ConversationError> {
        let agent = &room.engine.state().settings.agent;
        let Some(location) = room.location.filter(|_| !agent.is_empty()) else {
            return Ok(());
        };
        let is_own = |message: &NewMessage<'_>| {
            let id = message.id.unwrap_or_default();
            message.from == agent || answered_by(id, location.stream, agent).is_some()
        };
        match self.rooms.agent_changes.busy_with(location.stream) {
            Some(seq) if !messages.iter().all(is_own) => Err(ConversationError::AgentBusy {
                agent: agent.clone(),
                seq,
            }),
            _ => Ok(()),
        }
    }

    /// Returns the change of the agent's read mark that these messages cause.
    pub(super) fn mark<'b>(
        &self,
        room: &Room,
        messages: impl Iterator<Item = (&'b str, &'b str)>,
    ) -> Result<Option<Update>, ConversationError> {
        let agent = &room.engine.state().settings.agent;
        let Some(location) = room.location.filter(|_| !agent.is_empty()) else {
            return Ok(None);
        };
        let answered = messages.filter_map(|(id, from)| {
            let awaited = || self.rooms.agent_changes.awaited(location.stream);
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

    /// Writes the change of a read mark and its event, under the guard of the messages that cause
    /// it.
    pub(super) fn write_mark(
        &self,
        guard: &mut Guard<'_>,
        location: Location,
        events: StreamId,
        update: &Update,
    ) -> Result<Option<Ticket>, AppendError> {
        let states = Store::companion(location.stream);
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

/// Returns the bytes that [`Conversations::write_mark`] writes, and the number of records with their marks.
pub(super) fn mark_size(update: Option<&Update>) -> (usize, usize) {
    match update {
        None | Some(Update::Nothing) => (0, 0),
        // The event, the record and a trim.
        Some(Update::Change { bytes, .. } | Update::Snapshot { bytes, .. }) => {
            (EVENT_SIZE + bytes.len(), 3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_id_names_conversation_agent_and_answered_message() {
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
