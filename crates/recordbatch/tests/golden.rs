//! Bytes laid by hand from the public layout (Apache Kafka's documentation, "Record Batch"), their
//! checksums by another program. Never made anew.

use recordbatch::{
    Attributes, Batch, Builder, Marker, MarkerKind, PatchedBatch, Producer, Rejected, Rules,
    Survey, Template, TimestampType, survey, validate,
};

const RULES: Rules = Rules {
    batch_size_max: 1 << 20,
};

const TIMESTAMP: i64 = 0x0102_0304_0506_0708;

fn two_records() -> Vec<u8> {
    let pieces: &[&[u8]] = &[
        b"\0\0\0\0\0\0\0\0\0\0\0\x47\xff\xff\xff\xff\x02\x1b\x82\xf1\x94",
        b"\0\0\0\0\0\x01",
        b"\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06\x07\x12",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\0\0\x02",
        b"\x18\0\0\0\x02k\x04hi\x02\x02h\x01",
        b"\x10\0\x14\x02\x01\x04ho\0",
    ];
    pieces.concat()
}

#[test]
fn a_batch_of_two_records() {
    let mut builder = Builder::new();
    builder.push(TIMESTAMP, Some(b"k"), Some(b"hi"), &[("h", None)]);
    builder.push(TIMESTAMP + 10, None, Some(b"ho"), &[]);
    assert_eq!((builder.count(), builder.size()), (2, two_records().len()));
    let mut bytes = Vec::new();
    builder.finish(&Template::default(), &mut bytes);
    assert_eq!(bytes, two_records());

    let (batch, rest) = Batch::split(&bytes).unwrap();
    assert!(rest.is_empty());
    assert_eq!(validate(&batch, RULES), Ok(()));
    let timestamps = Survey {
        timestamp_max: TIMESTAMP + 10,
        timestamp_min: Some(TIMESTAMP),
    };
    assert_eq!(survey(&batch), Some(Ok(timestamps)));
    let records: Vec<_> = batch.records().unwrap().map(Result::unwrap).collect();
    let seen: Vec<_> = records
        .iter()
        .map(|it| (it.offset, it.timestamp, it.key, it.value))
        .collect();
    assert_eq!(
        seen,
        [
            (0, TIMESTAMP, Some(&b"k"[..]), Some(&b"hi"[..])),
            (1, TIMESTAMP + 10, None, Some(&b"ho"[..])),
        ]
    );
    assert_eq!(records[0].headers().collect::<Vec<_>>(), [("h", None)]);
}

#[test]
fn a_commit() {
    let marker = Marker {
        producer_id: 7,
        producer_epoch: 3,
        kind: MarkerKind::Commit,
        coordinator_epoch: 5,
    };
    let mut bytes = Vec::new();
    marker.encode(42, 1, 1000, &mut bytes);
    let pieces: &[&[u8]] = &[
        b"\0\0\0\0\0\0\0\x2a\0\0\0\x42\0\0\0\x01\x02\xd4\x2b\xe5\x84",
        b"\0\x30\0\0\0\0\0\0\0\0\0\0\x03\xe8\0\0\0\0\0\0\x03\xe8",
        b"\0\0\0\0\0\0\0\x07\0\x03\xff\xff\xff\xff\0\0\0\x01",
        b"\x20\0\0\0\x08\0\0\0\x01\x0c\0\0\0\0\0\x05\0",
    ];
    assert_eq!(bytes, pieces.concat());
    let (batch, _) = Batch::split(&bytes).unwrap();
    assert_eq!(Marker::decode(&batch), Ok(marker));
    assert!(batch.is_intact());
}

#[test]
fn offset_and_leader_epoch_are_written_outside_the_checksum() {
    let produced = two_records();
    let mut patched = PatchedBatch::new(&Batch::split(&produced).unwrap().0);
    patched.place(0x1122_3344_5566_7788, 9);
    let bytes = patched.to_vec();
    assert_eq!(bytes.len(), patched.size());
    let mut expected = two_records();
    expected[..8].copy_from_slice(b"\x11\x22\x33\x44\x55\x66\x77\x88");
    expected[12..16].copy_from_slice(b"\0\0\0\x09");
    assert_eq!(bytes, expected);
    let (batch, _) = Batch::split(&bytes).unwrap();
    assert!(batch.is_intact());
    let offsets: Vec<_> = batch
        .records()
        .unwrap()
        .map(|it| it.unwrap().offset)
        .collect();
    assert_eq!(offsets, [0x1122_3344_5566_7788, 0x1122_3344_5566_7789]);
}

#[test]
fn append_time_replaces_the_timestamp_of_every_record() {
    let produced = two_records();
    let mut patched = PatchedBatch::new(&Batch::split(&produced).unwrap().0);
    patched.append_time(77);
    let bytes = patched.to_vec();
    let (batch, _) = Batch::split(&bytes).unwrap();
    assert!(batch.is_intact());
    let header = batch.header();
    assert_eq!(header.attributes.timestamp_type(), TimestampType::Append);
    assert_eq!(header.base_timestamp, TIMESTAMP);
    let times: Vec<_> = batch
        .records()
        .unwrap()
        .map(|it| it.unwrap().timestamp)
        .collect();
    assert_eq!(times, [77, 77]);
    // What a broker stamped, no producer sends.
    assert_eq!(validate(&batch, RULES), Err(Rejected::AppendTime));
}

/// Changes a header's field, makes the checksum right again and asks.
#[track_caller]
fn check(at: usize, field: &[u8], expected: Result<(), Rejected>) {
    let mut bytes = two_records();
    bytes[at..at + field.len()].copy_from_slice(field);
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    let (batch, _) = Batch::split(&bytes).expect("a whole batch");
    assert_eq!(validate(&batch, RULES), expected);
}

#[test]
fn each_invalid_header_field_of_a_producer_is_refused() {
    check(7, &[1], Err(Rejected::BaseOffset { base_offset: 1 }));
    check(22, &[5], Err(Rejected::Compression { number: 5 }));
    check(22, &[1 << 3], Err(Rejected::AppendTime));
    for attributes in [1 << 4, 1 << 5, 1 << 6, 1 << 7] {
        let field = i16::to_be_bytes(attributes);
        check(21, &field, Err(Rejected::Attributes { attributes }));
    }
    let count = |count, offsets| {
        Err(Rejected::Count {
            count,
            offsets,
            size: 22,
        })
    };
    check(57, &[0, 0, 0, 3], count(3, 2));
    check(57, &[0xff, 0xff, 0xff, 0xff], count(-1, 2));
    check(23, &[0, 0, 0, 0], count(2, 1));
    check(23, &[0xff, 0xff, 0xff, 0xff], count(2, 0));
    let base_timestamp = i64::MIN;
    let max_timestamp = TIMESTAMP + 10;
    let expected = Err(Rejected::Timestamp {
        base_timestamp,
        max_timestamp,
    });
    check(27, &base_timestamp.to_be_bytes(), expected);
    let producer = |id, epoch, sequence| {
        let mut field = i64::to_be_bytes(id).to_vec();
        field.extend_from_slice(&i16::to_be_bytes(epoch));
        field.extend_from_slice(&i32::to_be_bytes(sequence));
        field
    };
    for (id, epoch, sequence) in [(-2, 0, 0), (3, -1, 0), (3, 0, -1)] {
        let expected = Err(Rejected::Producer {
            id,
            epoch,
            sequence,
        });
        check(43, &producer(id, epoch, sequence), expected);
    }
    // Without an id the rest may be anything: clients differ.
    check(43, &producer(-1, 0, 0), Ok(()));
    check(43, &producer(3, 0, 0), Ok(()));
}

#[test]
fn more_records_than_the_bytes_could_hold_are_refused() {
    let mut bytes = two_records();
    bytes[57..61].copy_from_slice(&[0, 0, 0, 4]);
    bytes[23..27].copy_from_slice(&[0, 0, 0, 3]);
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    let (batch, _) = Batch::split(&bytes).unwrap();
    let (count, offsets, size) = (4, 4, 22);
    let expected = Rejected::Count {
        count,
        offsets,
        size,
    };
    assert_eq!(validate(&batch, RULES), Err(expected));
}

#[test]
fn a_batch_above_the_limit_is_refused() {
    let bytes = two_records();
    let (batch, _) = Batch::split(&bytes).unwrap();
    let max = bytes.len() - 1;
    let rules = Rules {
        batch_size_max: max,
    };
    let expected = Rejected::Size { size: max + 1, max };
    assert_eq!(validate(&batch, rules), Err(expected));
}

#[test]
fn a_transactional_batch_with_a_producer_is_valid() {
    let mut builder = Builder::new();
    builder.push(1, None, None, &[]);
    let template = Template {
        attributes: Attributes::default().transactional(),
        producer: Some(Producer {
            id: 1,
            epoch: 0,
            sequence: i32::MAX,
        }),
        ..Template::default()
    };
    let mut bytes = Vec::new();
    builder.finish(&template, &mut bytes);
    let (batch, _) = Batch::split(&bytes).unwrap();
    assert_eq!(validate(&batch, RULES), Ok(()));
    assert_eq!(batch.header().producer(), template.producer);
    assert!(Marker::decode(&batch).is_err());
}
