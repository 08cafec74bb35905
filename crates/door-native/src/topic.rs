//! Topics on one connection: APPEND, READ and FOLLOW frames to the node's topics.
//!
//! Appends are answered in their order, when their topic's durability is reached. Each read and each
//! follow has its own reader, which is polled when it was woken or got credit ([`PartitionReader`]).
//! Invariant: *every request is answered once.*

use door::topics::{ReadableRange, Refused, find_or_create};
use messaging::Turn;
use model::ErrorCode;
use routing::Ticket;
use topic_service::records::{Appending, NewRecord};
use topic_service::{TopicRef, Topics};
use wire::{Append, Malformed, Read, TopicRecord};

use super::answers::{Answer, Answers};
use super::followers::{Followers, Source};
use super::outlet::correlation;
use super::partition::{BoundPartition, Kind, PartitionReader};
use super::routes::TopicRoute;

/// The offset in a READ that asks only for the start and the end of the partition.
const END: u64 = u64::MAX;

/// Appends records to a topic.
pub(super) fn append(
    node: &node::Node,
    turn: &mut Turn<'_>,
    answers: &mut Answers,
    tag: Ticket,
    route: &TopicRoute,
    append: &Append<'_>,
) -> Result<(), Malformed> {
    let records = append.records().map(TopicRecord::decode);
    let records = records.collect::<Result<Vec<_>, _>>()?;
    let size = append.records().map(<[u8]>::len).sum::<usize>();
    let charge = match turn.admit_append(size as u64) {
        Ok(charge) => charge,
        Err(throttled) => {
            answers.fail(tag, throttled);
            return Ok(());
        }
    };
    match try_append(node, route, append, &records) {
        Ok(appending) => answers.push(tag, charge, Answer::Records(appending), size),
        Err(refused) => answers.fail(tag, refused),
    }
    Ok(())
}

fn try_append(
    node: &node::Node,
    route: &TopicRoute,
    append: &Append<'_>,
    records: &[TopicRecord<'_>],
) -> Result<Appending, Refused> {
    if append.expected.is_some() {
        let message = "an append to a topic has no expected offset: send 2^64-1";
        return Err(Refused::new(ErrorCode::InvalidArgument, message));
    }
    if records.is_empty() {
        let message = "an append to a topic needs at least one record";
        return Err(Refused::new(ErrorCode::InvalidArgument, message));
    }
    let topics = open_topics(node)?;
    let topic = find_or_create(&topics, &route.topic)?;
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
            partition: record.partition.or(route.partition),
        });
    let new: Vec<_> = new.collect();
    Ok(topics.append_records(&topic, &new)?)
}

/// Reads the existing records of a partition from an offset.
pub(super) fn read(
    node: &node::Node,
    answers: &mut Answers,
    followers: &mut Followers,
    tag: Ticket,
    route: &TopicRoute,
    read: Read,
) {
    match place(node, route) {
        Err(refused) => answers.fail(tag, refused),
        Ok(place) if read.from == END => match place.readable() {
            Ok(ReadableRange { start, end }) => {
                let at = correlation(tag);
                answers.send(|out| {
                    wire::encode_extracted(start, end, &[], wire::Flags::NONE, at, out);
                });
            }
            Err(refused) => answers.fail(tag, refused),
        },
        Ok(place) => begin(answers, followers, tag, place, read, Kind::Read),
    }
}

/// Follows a partition from an offset.
pub(super) fn follow(
    node: &node::Node,
    answers: &mut Answers,
    followers: &mut Followers,
    tag: Ticket,
    route: &TopicRoute,
    read: Read,
) {
    match place(node, route) {
        Ok(place) => begin(answers, followers, tag, place, read, Kind::Follow),
        Err(refused) => answers.fail(tag, refused),
    }
}

fn begin(
    answers: &mut Answers,
    followers: &mut Followers,
    tag: Ticket,
    place: BoundPartition,
    read: Read,
    kind: Kind,
) {
    let reader = place.reader(read.from);
    let reader = PartitionReader::new(kind, place, reader, read);
    if let Err(error) = followers.add(tag, Source::Partition(Box::new(reader))) {
        answers.fail(tag, error);
    }
}

fn open_topics(node: &node::Node) -> Result<Topics, Refused> {
    node.topics().ok_or_else(Refused::no_topics)
}

/// Returns the partition of a route.
fn place(node: &node::Node, route: &TopicRoute) -> Result<BoundPartition, Refused> {
    let topics = open_topics(node)?;
    let name = &route.topic;
    let Some(topic) = topics.find(TopicRef::Name(name)) else {
        return Err(Refused::unknown(&topics, name));
    };
    let Some(partition) = route.partition else {
        let message = format!("the route names no partition: bind it to `{name}/0`, for example");
        return Err(Refused::new(ErrorCode::InvalidArgument, message));
    };
    match partition < topic.about().partitions {
        true => Ok(BoundPartition::new(topics, topic, partition)),
        false => Err(Refused::no_partition(&topics, name, &partition.to_string())),
    }
}
