//! Computation of the entry of a conversation in the views.
//!
//! The result does not depend on whether a conversation is processed message by message or all at
//! once: the state may be newer than the messages processed so far, and unread messages are always
//! counted from the current read mark.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::entry::{Entry, Participant, Row};
use super::reported::Reported;
use super::scope::Scope;
use super::source::{Changed, ConversationFacts, MessageFacts, Source, WantedMessages};

/// Maximum number of labels per conversation; further labels are not indexed.
const LABELS_MAX: usize = 64;

/// Maximum number of participants per conversation that are listed because they wrote a message.
const WRITERS_MAX: usize = 1_024;

/// The entry of a conversation while its new messages are processed.
pub(super) struct Advancing {
    pub(super) number: u64,
    entry: Entry,
    /// The new messages.
    pub(super) seqs: RangeInclusive<u64>,
    /// Number of participants that are authors of a message.
    writers: usize,
    /// The scopes of the authors so far.
    scopes: BTreeMap<Box<str>, Scope>,
}

/// Begins the current entry of a conversation: everything except its new messages. `None` if it is
/// not visible. If its state cannot be read, the old entry is continued.
pub(super) fn begin(
    source: &impl Source,
    number: u64,
    old: Option<&Entry>,
    changed: Changed,
) -> Option<Advancing> {
    let entry = match (old, changed) {
        (Some(old), Changed::Messages) => old.clone(),
        _ => match source.conversation_facts(number) {
            Ok(known) => update_state(source, number, old, &known?),
            Err(_) => old?.clone(),
        },
    };
    let (start, head) = source.span(number, entry.row.base);
    let writers = entry.participants.values().filter(|it| it.is_writer);
    Some(Advancing {
        number,
        seqs: (entry.row.head + 1).max(start)..=head,
        writers: writers.count(),
        scopes: BTreeMap::new(),
        entry,
    })
}

impl Advancing {
    /// Processes the messages that were read along with the events, if they are all new messages
    /// up to the newest one that the events report. Later messages have events of their own. Returns
    /// false, with nothing processed, if any is missing.
    pub(super) fn take_reported(&mut self, reported: &Reported, texts: &str) -> bool {
        let base = self.entry.row.base;
        let first = (self.seqs.start() + base).saturating_sub(1);
        let begin = reported.messages.partition_point(|it| it.offset < first);
        let messages = &reported.messages[begin..];
        let end = first + messages.len() as u64;
        let mut numbered = messages.iter().zip(first..);
        let is_whole = numbered.all(|(it, offset)| it.offset == offset);
        if reported.newest >= end || !is_whole {
            return false;
        }
        self.seqs = *self.seqs.start()..=end.saturating_sub(base);
        for message in messages {
            self.take(MessageFacts {
                seq: (message.offset + 1).saturating_sub(base),
                at_ms: message.at_ms,
                from: &texts[message.from.clone()],
            });
        }
        true
    }

    /// Returns the new messages, to be passed to [`Advancing::take`]; `None` if there are none.
    pub(super) fn wanted(&self) -> Option<WantedMessages> {
        let (number, base, seqs) = (self.number, self.entry.row.base, self.seqs.clone());
        (!seqs.is_empty()).then_some(WantedMessages { number, base, seqs })
    }

    /// Processes a new message.
    pub(super) fn take(&mut self, said: MessageFacts<'_>) {
        let Entry { row, participants } = &mut self.entry;
        row.activity_ms = row.activity_ms.max(said.at_ms);
        if said.from.is_empty() {
            return;
        }
        let who = match self.scopes.get(said.from) {
            Some(who) => *who,
            None => {
                let who = row.namespace.participant(said.from);
                if self.scopes.len() < WRITERS_MAX {
                    self.scopes.insert(said.from.into(), who);
                }
                who
            }
        };
        let is_listed = participants.contains_key(&who);
        if !is_listed && self.writers >= WRITERS_MAX {
            return;
        }
        let participant = participants.entry(who).or_default();
        if !participant.is_writer && self.writers < WRITERS_MAX {
            participant.is_writer = true;
            self.writers += 1;
        }
        let is_counted = said.seq > participant.read && !row.retracted.contains(said.seq);
        participant.own += u64::from(is_counted);
    }

    /// Returns the entry. Unreadable messages have no author; a client that reads them gets the
    /// error.
    pub(super) fn finish(mut self) -> Entry {
        let head = &mut self.entry.row.head;
        *head = (*head).max(*self.seqs.end());
        self.entry
    }
}

/// Updates everything except the messages.
fn update_state(
    source: &impl Source,
    number: u64,
    old: Option<&Entry>,
    known: &ConversationFacts,
) -> Entry {
    let namespace = Scope::namespace(&known.namespace);
    let labels = known.labels.iter().take(LABELS_MAX);
    let mut labels: Vec<_> = labels
        .map(|(key, value)| namespace.label(key, value))
        .collect();
    labels.sort_unstable();
    labels.dedup();
    let agent = Some(&*known.agent).filter(|it| !it.is_empty());
    let (head, activity_ms) = old.map_or((0, 0), |it| (it.row.head, it.row.activity_ms));
    let recounted = old.filter(|it| it.row.retracted != known.retracted);
    let recounted = recounted.map(|old| without_retracted(source, number, old, known));
    let old = recounted.as_ref().or(old);
    Entry {
        row: Row {
            base: known.base,
            head,
            activity_ms: activity_ms.max(known.created_ms),
            ttl_ms: known.ttl_ms,
            is_archived: known.is_archived,
            agent: agent.map(|it| [namespace.participant(it), namespace.due(it)]),
            namespace,
            labels,
            retracted: known.retracted.clone(),
        },
        participants: Participants {
            source,
            number,
            old,
            known,
            head,
        }
        .all(namespace),
    }
}

/// Returns an entry in which the retracted messages are no messages of their authors.
fn without_retracted(
    source: &impl Source,
    number: u64,
    old: &Entry,
    known: &ConversationFacts,
) -> Entry {
    let mut entry = old.clone();
    for participant in entry.participants.values_mut() {
        participant.own = 0;
    }
    let reads = entry.participants.values().map(|it| it.read);
    let (first, head) = (reads.min().unwrap_or(entry.row.head) + 1, entry.row.head);
    if first <= head {
        let namespace = entry.row.namespace;
        let participants = &mut entry.participants;
        let mut take = |said: MessageFacts<'_>| {
            let who = namespace.participant(said.from);
            if !said.from.is_empty()
                && !known.retracted.contains(said.seq)
                && let Some(participant) = participants.get_mut(&who)
            {
                participant.own += u64::from(said.seq > participant.read);
            }
        };
        // Unreadable messages are not counted.
        let _ = source.messages(number, known.base, first..=head, &mut take);
    }
    entry
}

/// The inputs for the participants of a conversation.
struct Participants<'a, S> {
    source: &'a S,
    number: u64,
    old: Option<&'a Entry>,
    known: &'a ConversationFacts,
    /// The newest message that was processed.
    head: u64,
}

impl<S: Source> Participants<'_, S> {
    /// Returns all participants: authors of messages, participants named by the owner, and
    /// participants with a read mark.
    fn all(&self, namespace: Scope) -> BTreeMap<Scope, Participant> {
        let none = BTreeMap::new();
        let old = self.old.map_or(&none, |it| &it.participants);
        let writers = old.iter().filter(|(_, it)| it.is_writer);
        let mut all: BTreeMap<_, _> = writers.map(|(who, it)| (*who, *it)).collect();
        let is_full = all.len() >= WRITERS_MAX;
        let named = self.known.participants.iter().map(|name| (name, 0));
        let cursors = self.known.cursors.iter().map(|(name, read)| (name, *read));
        for (name, read) in named.chain(cursors) {
            let who = namespace.participant(name);
            let participant = match all.get(&who).or(old.get(&who)) {
                Some(old) if old.read >= read => *old,
                Some(old) => Participant {
                    own: self.own_after(name, *old, read),
                    read,
                    ..*old
                },
                None => Participant {
                    // An unknown participant has no messages, unless it was not listed because the
                    // list was full.
                    own: if is_full {
                        self.count(name, read + 1, self.head)
                    } else {
                        0
                    },
                    read,
                    is_writer: false,
                },
            };
            all.insert(who, participant);
        }
        all
    }

    /// Returns the number of the participant's own messages after its new read mark. Counts on the
    /// side of the mark that has fewer messages to read.
    fn own_after(&self, name: &str, old: Participant, read: u64) -> u64 {
        let (start, _) = self.source.span(self.number, self.known.base);
        let is_shorter = read - old.read < self.head.saturating_sub(read);
        match old.own {
            0 => 0,
            own if is_shorter && old.read + 1 >= start => {
                own.saturating_sub(self.count(name, old.read + 1, read))
            }
            _ => self.count(name, read + 1, self.head),
        }
    }

    fn count(&self, name: &str, from: u64, to: u64) -> u64 {
        let mut count = 0;
        if from <= to {
            let retracted = &self.known.retracted;
            let mut take = |said: MessageFacts<'_>| {
                let is_own = said.from == name && !retracted.contains(said.seq);
                count += u64::from(is_own);
            };
            let (number, base) = (self.number, self.known.base);
            // Unreadable messages are not counted.
            let _ = self.source.messages(number, base, from..=to, &mut take);
        }
        count
    }
}

/// Returns the scopes of all participants in either entry.
pub(super) fn participant_scopes(old: Option<&Entry>, new: Option<&Entry>) -> BTreeSet<Scope> {
    let both = old.into_iter().chain(new);
    both.flat_map(|it| it.participants.keys().copied())
        .collect()
}
