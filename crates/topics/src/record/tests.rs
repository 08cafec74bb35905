use proptest::prelude::*;

use super::*;
use crate::{
    Alter, Batch, BatchPosition, Change, Config, Ending, Key, Limits, Marker, Participant,
    Partition, ProducerId, Reserved, Sequenced, State, Topic, TopicId, Transaction,
};

mod golden;

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

fn topic() -> Topic {
    let mut config = Config::default();
    config
        .alter(Key::RetentionMs, Alter::Set("-1"))
        .expect("a value of the key");
    config
        .alter(Key::CleanupPolicy, Alter::Set("compact"))
        .expect("a value of the key");
    Topic {
        id: TopicId(*b"0123456789abcdef"),
        name: "orders".to_owned(),
        partitions: 3,
        created_ms: 0x0102,
        config,
    }
}

fn transaction() -> Transaction {
    let topic = TopicId(*b"0123456789abcdef");
    Transaction {
        name: "copy-1".to_owned(),
        producer: ProducerId(7),
        epoch: 2,
        last_producer: None,
        last_epoch: -1,
        timeout_ms: 60_000,
        state: State::Ongoing,
        participants: [
            Participant::Group("readers".to_owned()),
            Participant::Partition { topic, index: 5 },
        ]
        .into(),
        started_ms: 3,
        updated_ms: 4,
    }
}

/// A partition in which every field is set.
fn partition() -> Partition {
    let mut partition = Partition::new(Limits::default());
    partition.apply(Change::Leader { epoch: 4, start: 0 });
    let place = |offset, record| BatchPosition {
        offset,
        record,
        now_ms: 9,
    };
    let batch = |id, is_transactional| Batch {
        offsets: 2,
        size: 100,
        timestamp_max: 8,
        timestamp_base: 8,
        producer: Some(Sequenced {
            id: ProducerId(id),
            epoch: 1,
            sequence: 5,
        }),
        is_transactional,
    };
    partition.appended(place(0, 0), &batch(7, true));
    partition.appended(place(2, 1), &batch(6, true));
    let marker = Marker {
        id: ProducerId(7),
        epoch: 1,
        ending: Ending::Abort,
        coordinator_epoch: 3,
        size: 78,
        timestamp: 9,
    };
    partition.marked(place(4, 2), &marker);
    partition.durable(5);
    partition.apply(Change::LogStart(1));
    partition
}

fn compacted() -> Compacted {
    Compacted {
        first: 1,
        end: 2,
        rest: 3,
    }
}

/// Decodes any bytes as every record; a decoded record encodes to the same bytes.
fn read_all(bytes: &[u8]) {
    if let Ok(change) = Change::decode(bytes) {
        assert_eq!(encoded(|out| change.encode(out)), bytes);
    }
    if let Ok(reserved) = Reserved::decode(bytes) {
        assert_eq!(reserved.encode(), bytes);
    }
    if let Ok(compacted) = Compacted::decode(bytes) {
        assert_eq!(encoded(|out| compacted.encode(out)), bytes);
    }
    if let Ok(topic) = Topic::decode(bytes) {
        assert_eq!(Topic::decode(&encoded(|out| topic.encode(out))), Ok(topic));
    }
    if let Ok(transaction) = Transaction::decode(bytes) {
        let again = encoded(|out| transaction.encode(out));
        assert_eq!(Transaction::decode(&again), Ok(transaction));
    }
    if let Ok(snapshot) = Partition::decode_undated(bytes, Limits::default(), 5) {
        let again = encoded(|out| snapshot.partition.encode(snapshot.records, out));
        assert_eq!(Partition::decode(&again, Limits::default()), Ok(snapshot));
    }
    if let Ok(snapshot) = Partition::decode(bytes, Limits::default()) {
        let again = encoded(|out| snapshot.partition.encode(snapshot.records, out));
        assert_eq!(Partition::decode(&again, Limits::default()), Ok(snapshot));
    }
}

#[test]
fn truncated_records_and_records_with_extra_bytes_are_refused() {
    let records = [
        encoded(|out| topic().encode(out)),
        encoded(|out| transaction().encode(out)),
        encoded(|out| partition().encode(3, out)),
        encoded(|out| Change::Leader { epoch: 1, start: 2 }.encode(out)),
        Reserved(5).encode().to_vec(),
        encoded(|out| compacted().encode(out)),
    ];
    type Read = fn(&[u8]) -> bool;
    let reads: [Read; 6] = [
        |it| Topic::decode(it).is_ok(),
        |it| Transaction::decode(it).is_ok(),
        |it| Partition::decode(it, Limits::default()).is_ok(),
        |it| Change::decode(it).is_ok(),
        |it| Reserved::decode(it).is_ok(),
        |it| Compacted::decode(it).is_ok(),
    ];
    for (mut record, is_read) in records.into_iter().zip(reads) {
        assert!(is_read(&record));
        for cut in 0..record.len() {
            assert!(!is_read(&record[..cut]), "{cut} of {}", record.len());
        }
        record.push(0);
        assert!(!is_read(&record));
    }
}

#[test]
fn a_forged_count_in_a_transaction_record_is_refused() {
    let mut bytes = encoded(|out| transaction().encode(out));
    let at = 2 + 6 + 8 + 2 + 8 + 2 + 4 + 1 + 8 + 8;
    bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Transaction::decode(&bytes).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_a_record_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    #[test]
    fn damaged_records_are_read_or_refused(
        which in 0..3_usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = match which {
            0 => encoded(|out| topic().encode(out)),
            1 => encoded(|out| transaction().encode(out)),
            _ => encoded(|out| partition().encode(3, out)),
        };
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_all(&bytes);
    }
}
