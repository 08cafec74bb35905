//! Frames of the native protocol from any bytes in any pieces: the frames are the same, nothing
//! panics, and no more memory is held than bytes arrived.

use wire::{
    Append, Bind, Credit, Extract, Flags, Goaway, Hello, Inbox, Item, Kind, SubscriptionEnd,
};
use wire::{AppendedMessages, AppendedRecords, Message, Metadata, NewMessage, Outcome, Outcomes};
use wire::{Payload, Read, Receipt, Settle, Subscribe, Takes, TopicHeaders, TopicRecord, Welcome};

/// Checks one input.
///
/// # Panics
///
/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else {
        return;
    };
    let size = usize::from(*first).max(1);
    let whole = read(bytes, bytes.len().max(1));
    let pieces = read(bytes, size);
    assert_eq!(whole, pieces, "pieces of {size}");
}

/// Reads a stream in pieces of `size` bytes and decodes every item by its kind.
fn read(bytes: &[u8], size: usize) -> Vec<String> {
    let mut inbox = Inbox::new(4096);
    let mut items = Vec::new();
    for piece in bytes.chunks(size) {
        let mut frames = inbox.feed(piece);
        while let Some(item) = frames.next() {
            if let Item::Frame(header, payload) = &item {
                items.push(decode(header.kind, header.flags, header.route, payload));
            }
            items.push(format!("{item:?}"));
        }
        assert!(inbox.held_size() <= 2 * bytes.len().max(16));
    }
    items
}

fn decode(kind: Kind, flags: Flags, route: u16, payload: &[u8]) -> String {
    match kind {
        Kind::HELLO => format!("{:?}", Hello::decode(payload)),
        Kind::WELCOME => format!("{:?}", Welcome::decode(payload)),
        Kind::BIND => format!("{:?}", Bind::decode(route, payload)),
        Kind::SUBSCRIBE => format!("{:?}", Subscribe::decode(payload)),
        Kind::ERROR => format!("{:?}", wire::decode_failure(payload)),
        Kind::CREDIT => format!("{:?}", Credit::decode(payload)),
        Kind::RECEIPT => format!("{:?}", Receipt::decode(payload)),
        Kind::GOAWAY => format!("{:?}", Goaway::decode(payload)),
        Kind::ENDED => format!("{:?}", SubscriptionEnd::decode(payload)),
        Kind::FLOW => format!("{:?}", wire::decode_flow(payload)),
        Kind::TAKE => takes(payload),
        Kind::SETTLE => format!("{:?}", Settle::decode(payload)),
        Kind::PEEK => format!("{:?}", wire::decode_name(payload)),
        Kind::REPLY => {
            let parts = Payload::decode(flags, payload);
            format!("{} {} {parts:?}", outcomes(payload), answer(payload))
        }
        Kind::APPEND | Kind::READ | Kind::FOLLOW => match Payload::decode(flags, payload) {
            Ok(parts) if kind == Kind::APPEND => append(parts.body),
            Ok(parts) => read_of(parts.body),
            Err(error) => format!("{error:?}"),
        },
        _ => match Payload::decode(flags, payload) {
            Ok(parts) => format!(
                "{:?}",
                Metadata::new(parts.metadata).iter().collect::<Vec<_>>()
            ),
            Err(error) => format!("{error:?}"),
        },
    }
}

/// Decodes takes: all counted takes are present, and they encode to the same bytes.
fn takes(payload: &[u8]) -> String {
    let takes = match Takes::decode(payload) {
        Ok(takes) => takes,
        Err(error) => return format!("{error:?}"),
    };
    let mut again = Vec::new();
    for take in takes.iter() {
        take.encode(&mut again);
    }
    assert_eq!(again, payload);
    assert_eq!(takes.iter().count(), takes.count);
    format!("{:?}", takes.iter().collect::<Vec<_>>())
}

/// Decodes the answer to takes: every limit that an outcome refers to is present.
fn outcomes(payload: &[u8]) -> String {
    let outcomes = match Outcomes::decode(payload) {
        Ok(outcomes) => outcomes,
        Err(error) => return format!("{error:?}"),
    };
    let limits = outcomes.limits().count();
    for outcome in outcomes.iter() {
        match outcome {
            Outcome::Admitted(admitted) => {
                assert!(
                    admitted
                        .limit_states()
                        .all(|one| usize::from(one.limit) < limits)
                );
            }
            Outcome::Denied(denied) => assert!(usize::from(denied.limit) < limits),
            Outcome::Refused { .. } => {}
        }
    }
    assert_eq!(outcomes.iter().count(), outcomes.count);
    format!("{:?}", outcomes.iter().collect::<Vec<_>>())
}

/// Decodes an append: all counted records are present, and they encode to the same bytes.
fn append(body: &[u8]) -> String {
    let append = match Append::decode(body) {
        Ok(append) => append,
        Err(error) => return format!("{error:?}"),
    };
    let records: Vec<_> = append.records().collect();
    assert_eq!(records.len(), append.count as usize);
    let mut again = Vec::new();
    Append::encode(append.expected, &records, &mut again);
    assert_eq!(again, body);
    records
        .iter()
        .map(|record| record_of_a_topic(record) + &new_message(record))
        .collect()
}

fn record_of_a_topic(bytes: &[u8]) -> String {
    let record = match TopicRecord::decode(bytes) {
        Ok(record) => record,
        Err(error) => return format!("{error:?}"),
    };
    let mut buffer = Vec::new();
    let headers = TopicHeaders::encode(record.headers.iter(), &mut buffer);
    assert_eq!(headers, record.headers, "every record is present");
    let mut again = Vec::new();
    TopicRecord { headers, ..record }.encode(&mut again);
    assert_eq!(TopicRecord::decode(&again), Ok(record));
    format!("{record:?}")
}

fn new_message(bytes: &[u8]) -> String {
    let message = match NewMessage::decode(bytes) {
        Ok(message) => message,
        Err(error) => return format!("{error:?}"),
    };
    let mut again = Vec::new();
    message.encode(&mut again);
    assert_eq!(again, bytes);
    format!("{message:?}")
}

fn read_of(body: &[u8]) -> String {
    let read = match Read::decode(body) {
        Ok(read) => read,
        Err(error) => return format!("{error:?}"),
    };
    assert_eq!(read.encode(), body[..Read::SIZE]);
    format!("{read:?}")
}

/// Size of the range in front of the records of an answer, in bytes.
const EXTRACT_HEAD_SIZE: usize = 16;

/// Decodes an answer as the answer to each kind of request.
fn answer(payload: &[u8]) -> String {
    let mut decoded = String::new();
    if let Ok(extract) = Extract::decode(payload) {
        let records: Vec<_> = extract.records().collect();
        let size: usize = records
            .iter()
            .map(|one| wire::Record::HEAD_SIZE + one.bytes.len())
            .sum();
        assert_eq!(
            EXTRACT_HEAD_SIZE + size,
            payload.len(),
            "every record is present"
        );
        for record in records {
            decoded += &record_of_a_topic(record.bytes);
            decoded += &format!("{:?}", Message::decode(record.bytes));
        }
    }
    if let Ok(appended) = AppendedRecords::decode(payload) {
        assert_eq!(appended.places().count() * 12, payload.len());
    }
    if let Ok(appended) = AppendedMessages::decode(payload) {
        let size: usize = appended.made.iter().map(|id| 1 + id.len()).sum();
        assert_eq!(20 + size, payload.len(), "every record is present");
        decoded += &format!("{appended:?}");
    }
    decoded
}
