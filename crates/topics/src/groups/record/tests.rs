use super::*;

/// Checks a record against its bytes, which never change.
#[track_caller]
fn golden(record: &Record, tag: u8, bytes: &[&[u8]]) {
    let bytes = bytes.concat();
    let mut encoded = Vec::new();
    record.encode(&mut encoded);
    assert_eq!(record.tag(), tag);
    assert_eq!(
        encoded.escape_ascii().to_string(),
        bytes.escape_ascii().to_string()
    );
    assert_eq!(Record::decode(tag, &bytes).as_ref(), Ok(record));
    for length in 0..bytes.len() {
        assert!(Record::decode(tag, &bytes[..length]).is_err(), "{length}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(Record::decode(tag, &longer).is_err());
}

fn profile() -> Profile {
    Profile {
        instance: Some("i".into()),
        client_id: "c".into(),
        client_host: "h".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 300_000,
        protocols: vec![
            Protocol {
                name: "range".into(),
                metadata: Arc::from(*b"\x00\x01"),
            },
            Protocol {
                name: "sticky".into(),
                metadata: Arc::default(),
            },
        ],
        topics: Some(vec!["t".into(), "u".into()]),
        assignment: Arc::from(*b"mine"),
    }
}

fn marks() -> Marks {
    Marks {
        group: "g".into(),
        committed_ms: 0x0102,
        expires_ms: None,
        marks: vec![
            MarkKept {
                topic: "t".into(),
                partition: 3,
                offset: 0x0405,
                leader_epoch: 7,
                metadata: "note".into(),
            },
            MarkKept {
                topic: "t".into(),
                partition: 4,
                offset: -1,
                leader_epoch: -1,
                metadata: "".into(),
            },
        ],
    }
}

const MARKS: &[&[u8]] = &[
    b"\x01\x00g",
    b"\x02\x01\x00\x00\x00\x00\x00\x00",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x02\x00\x00\x00",
    b"\x01\x00t\x03\x00\x00\x00\x05\x04\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x04\x00note",
    b"\x01\x00t\x04\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00",
];

#[test]
fn a_group_with_a_member() {
    let record = Record::Group(Snapshot {
        group: "g".into(),
        since_ms: 0x0102,
        generation: 5,
        protocol_type: "consumer".into(),
        protocol: Some("range".into()),
        leader: Some("m".into()),
        members: vec![("m".into(), profile())],
    });
    golden(
        &record,
        1,
        &[
            b"\x01\x00g\x02\x01\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00",
            b"\x08\x00consumer\x01\x05\x00range\x01\x01\x00m",
            b"\x01\x00\x00\x00\x01\x00m",
            b"\x01\x01\x00i\x01\x00c\x01\x00h\x10\x27\x00\x00\xe0\x93\x04\x00",
            b"\x02\x00\x00\x00\x05\x00range\x02\x00\x00\x00\x00\x01\x06\x00sticky\x00\x00\x00\x00",
            b"\x01\x02\x00\x00\x00\x01\x00t\x01\x00u",
            b"\x04\x00\x00\x00mine",
        ],
    );
}

#[test]
fn a_group_without_members() {
    let record = Record::Group(Snapshot {
        group: "g".into(),
        since_ms: 1,
        generation: 6,
        protocol_type: "consumer".into(),
        protocol: None,
        leader: None,
        members: Vec::new(),
    });
    golden(
        &record,
        1,
        &[
            b"\x01\x00g\x01\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00",
            b"\x08\x00consumer\x00\x00\x00\x00\x00\x00",
        ],
    );
}

#[test]
fn golden_bytes_of_a_member_without_topics() {
    let mut out = Vec::new();
    put_profile(
        &Profile {
            instance: None,
            topics: None,
            protocols: Vec::new(),
            assignment: Arc::default(),
            ..profile()
        },
        &mut out,
    );
    let expected: &[&[u8]] = &[
        b"\x00\x01\x00c\x01\x00h\x10\x27\x00\x00\xe0\x93\x04\x00",
        b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    ];
    assert_eq!(out, expected.concat());
}

#[test]
fn offsets_that_were_committed() {
    golden(&Record::Committed(marks()), 2, MARKS);
    let expires_ms = Some(0x0203);
    let record = Record::Committed(Marks {
        expires_ms,
        marks: Vec::new(),
        ..marks()
    });
    golden(
        &record,
        2,
        &[
            b"\x01\x00g\x02\x01\x00\x00\x00\x00\x00\x00",
            b"\x03\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        ],
    );
}

#[test]
fn offsets_that_a_transaction_would_commit() {
    let record = Record::Pending {
        producer: ProducerId(9),
        marks: marks(),
    };
    let producer: &[u8] = b"\x09\x00\x00\x00\x00\x00\x00\x00";
    golden(&record, 3, &[&[producer], MARKS].concat());
}

#[test]
fn the_end_of_a_transaction() {
    for (ending, byte) in [(Ending::Abort, b"\x00"), (Ending::Commit, b"\x01")] {
        let record = Record::Ended {
            group: "g".into(),
            producer: ProducerId(9),
            ending,
        };
        let bytes: &[&[u8]] = &[b"\x01\x00g\x09\x00\x00\x00\x00\x00\x00\x00", byte];
        golden(&record, 4, bytes);
    }
}

#[test]
fn golden_bytes_of_deleted_offsets_and_a_deleted_group() {
    let record = Record::Forgotten {
        group: "g".into(),
        partitions: vec![("t".into(), 2)],
    };
    golden(
        &record,
        5,
        &[b"\x01\x00g\x01\x00\x00\x00\x01\x00t\x02\x00\x00\x00"],
    );
    golden(&Record::Gone { group: "g".into() }, 6, &[b"\x01\x00g"]);
}

#[test]
fn a_record_with_an_unknown_tag_is_refused() {
    for tag in [0, 7, u8::MAX] {
        assert!(Record::decode(tag, b"\x01\x00g").is_err());
    }
}

#[test]
fn a_forged_count_in_a_group_record_is_refused() {
    let bytes = b"\x01\x00g\xff\xff\xff\xff\x01\x00t\x02\x00\x00\x00";
    assert!(Record::decode(5, bytes).is_err());
}

proptest::proptest! {
    #[test]
    fn any_bytes_that_decode_encode_to_the_same_bytes(
        tag in 0_u8..8,
        bytes in proptest::collection::vec(0_u8..4, 0..64),
    ) {
        if let Ok(record) = Record::decode(tag, &bytes) {
            let mut again = Vec::new();
            record.encode(&mut again);
            proptest::prop_assert_eq!(again, bytes);
        }
    }
}
