//! Topics on one connection: APPEND, READ and FOLLOW frames to the node's topics, and the answers.
//!
//! Appends are answered in their order, when their topic's durability is reached ([`Appends`]).
//! Each read and each follow has its own reader, which is polled when it was woken or got credit
//! ([`Readers`]). Invariant: *every request is answered once; a client that does not read, or gives
//! no credit, costs one batch for each reader.*

mod appends;
mod readers;

use std::sync::Arc;
use std::task::Context;

use model::ErrorCode;
use node::records::{NewRecord, Reader};
use node::topics::{Topic, TopicRef, Topics};
use node::{Failure, Ticket, Turn};
use wire::{Append, Malformed, Read, TopicRecord};

use super::outlet::{NativeOutlet, correlation, encode_failure};
use crate::topics::Refused;
use appends::Appends;
use readers::{Kind, Readers};

/// The offset in a READ that asks only for the start and the end of the partition.
const END: u64 = u64::MAX;

/// The topic requests of one connection; see the module's documentation.
pub(super) struct TopicsOf {
    node: node::Node,
    appends: Appends,
    readers: Readers,
}

impl TopicsOf {
    pub(super) fn new(node: node::Node) -> Self {
        Self {
            node,
            appends: Appends::default(),
            readers: Readers::default(),
        }
    }

    /// Appends records to the topic of a route; the answer is sent with the tag.
    pub(super) fn append(
        &mut self,
        turn: &mut Turn<'_>,
        route: u16,
        tag: Ticket,
        append: &Append<'_>,
    ) -> Result<(), Malformed> {
        let records = append.records().map(TopicRecord::decode);
        let records = records.collect::<Result<Vec<_>, _>>()?;
        let size = append.records().map(<[u8]>::len).sum::<usize>();
        let Some(charged) = turn.charge_append(tag, size as u64) else {
            return Ok(());
        };
        let appended = self.try_append(turn, route, append, &records);
        match appended {
            Ok(appending) => self.appends.push(tag, charged, appending, size),
            Err(refused) => refuse(turn, tag, &refused),
        }
        Ok(())
    }

    fn try_append(
        &self,
        turn: &Turn<'_>,
        route: u16,
        append: &Append<'_>,
        records: &[TopicRecord<'_>],
    ) -> Result<node::records::Appending, Refused> {
        if append.expected.is_some() {
            let message = "an append to a topic has no expected offset: send 2^64-1";
            return Err(Refused::new(ErrorCode::InvalidArgument, message));
        }
        if records.is_empty() {
            let message = "an append to a topic needs at least one record";
            return Err(Refused::new(ErrorCode::InvalidArgument, message));
        }
        let topics = self.topics()?;
        let bound = turn.topic(route).ok_or_else(|| not_bound(route))?;
        let topic = topics.find_or_create(&bound.topic);
        let topic = topic.map_err(|error| match Refused::from(error) {
            refused if refused.code == ErrorCode::NotFound => {
                Refused::unknown(&topics, &bound.topic)
            }
            refused => refused,
        })?;
        let headers: Vec<Vec<_>> = records
            .iter()
            .map(|it| it.headers.iter().collect())
            .collect();
        let new = records
            .iter()
            .zip(&headers)
            .map(|(record, headers)| NewRecord {
                key: record.key,
                value: record.value,
                headers,
                partition: record.partition.or(bound.partition),
            });
        let new: Vec<_> = new.collect();
        Ok(self.node.append_records(&topics, &topic, &new)?)
    }

    /// Reads the existing records from an offset; the answer is sent with the tag.
    pub(super) fn read(
        &mut self,
        turn: &mut Turn<'_>,
        outlet: &NativeOutlet,
        route: u16,
        tag: Ticket,
        read: Read,
    ) {
        match self.place(turn, route) {
            Err(refused) => refuse(turn, tag, &refused),
            Ok(place) if read.from == END => match place.standing() {
                Ok((start, end)) => {
                    let at = correlation(tag);
                    outlet.push_answer(|out| {
                        wire::encode_extracted(start, end, &[], wire::Flags::NONE, at, out);
                    });
                    outlet.outbox.flush();
                }
                Err(refused) => refuse(turn, tag, &refused),
            },
            Ok(place) => self.begin(turn, tag, place, read, Kind::Read),
        }
    }

    /// Follows a partition from an offset; items are sent with the tag.
    pub(super) fn follow(&mut self, turn: &mut Turn<'_>, route: u16, tag: Ticket, read: Read) {
        match self.place(turn, route) {
            Ok(place) => self.begin(turn, tag, place, read, Kind::Follow),
            Err(refused) => refuse(turn, tag, &refused),
        }
    }

    fn begin(
        &mut self,
        turn: &mut Turn<'_>,
        tag: Ticket,
        place: BoundPartition,
        read: Read,
        kind: Kind,
    ) {
        let begun = match place.reader(&self.node, read.from) {
            Some(reader) => self.readers.begin(tag, kind, place, reader, read),
            None => Err(Refused::no_topics()),
        };
        if let Err(refused) = begun {
            refuse(turn, tag, &refused);
        }
    }

    /// Cancels the reader of this tag; returns false if there is none.
    pub(super) fn cancel(&mut self, turn: &mut Turn<'_>, tag: Ticket) -> bool {
        let did_read = self.readers.end(tag);
        if did_read {
            let failure = Failure::new(ErrorCode::Cancelled, "cancelled by the caller");
            turn.refuse(tag, failure.after_sending());
        }
        did_read
    }

    /// Adds the client's credit; returns false if no reader has this tag.
    pub(super) fn credit(&mut self, tag: Ticket, items: u32) -> bool {
        self.readers.credit(tag, items)
    }

    /// Sends answers that are finished; the task is woken when there may be more. Returns true when
    /// the client leaves so much unread that a reader has to wait.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, outlet: &NativeOutlet) -> bool {
        let has_answered = self.appends.poll(cx, outlet);
        let looked = self.readers.poll(cx, outlet);
        if has_answered || looked.has_answered {
            outlet.outbox.flush();
        }
        looked.is_unread
    }

    /// Returns whether the limit on waiting requests is reached.
    pub(super) fn is_full(&self) -> bool {
        self.appends.is_full()
    }

    fn topics(&self) -> Result<Topics, Refused> {
        self.node.topics().ok_or_else(Refused::no_topics)
    }

    /// Returns the partition of a route.
    fn place(&self, turn: &Turn<'_>, route: u16) -> Result<BoundPartition, Refused> {
        let topics = self.topics()?;
        let bound = turn.topic(route).ok_or_else(|| not_bound(route))?;
        let name = &bound.topic;
        let Some(topic) = topics.find(TopicRef::Name(name)) else {
            return Err(Refused::unknown(&topics, name));
        };
        let Some(partition) = bound.partition else {
            let message =
                format!("the route names no partition: bind it to `{name}/0`, for example");
            return Err(Refused::new(ErrorCode::InvalidArgument, message));
        };
        match partition < topic.about().partitions {
            true => Ok(BoundPartition {
                topics,
                topic,
                partition,
            }),
            false => Err(Refused::no_partition(&topics, name, &partition.to_string())),
        }
    }
}

/// An existing partition.
struct BoundPartition {
    topics: Topics,
    topic: Arc<Topic>,
    partition: u32,
}

impl BoundPartition {
    /// Returns its log start, and the end of its readable records.
    fn standing(&self) -> Result<(u64, u64), Refused> {
        match self.topics.view(&self.topic, self.partition) {
            Ok(view) => Ok((view.log_start, view.last_stable)),
            Err(_) => Err(Refused::unknown(&self.topics, &self.topic.about().name)),
        }
    }

    fn reader(&self, node: &node::Node, from: u64) -> Option<Reader> {
        Reader::open(node, self.topic.clone(), self.partition, from)
    }
}

fn not_bound(route: u16) -> Refused {
    let message = format!("route {route} is not bound to a topic");
    Refused::new(ErrorCode::InvalidArgument, message)
}

fn refuse(turn: &mut Turn<'_>, tag: Ticket, refused: &Refused) {
    let details = refused.details();
    let failure = Failure::new(refused.code, &refused.message);
    turn.refuse(
        tag,
        Failure {
            details: &details,
            ..failure
        },
    );
}

/// Sends an error for a request, outside of a turn.
fn answer_refusal(outlet: &NativeOutlet, tag: Ticket, refused: &Refused) {
    let details = refused.details();
    let failure = Failure {
        details: &details,
        ..Failure::new(refused.code, &refused.message)
    };
    outlet.push_answer(|out| encode_failure(failure, correlation(tag), out));
}
