//! Consumer group metadata, compared with the `kafka-protocol` crate.

use bytes::{BufMut, Bytes, BytesMut};
use kafka::consumer_protocol::{Assignment, Subscription, TopicPartitions};
use kafka_protocol::messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
use kafka_protocol::protocol::{Decodable, Encodable};

fn subscription(version: i16) -> Subscription {
    let mut subscription = Subscription {
        topics: vec!["orders".to_owned(), "bills".to_owned()],
        user_data: Some(Bytes::from_static(b"sticky")),
        ..Subscription::default()
    };
    if version >= 1 {
        subscription.owned_partitions = owned();
    }
    if version >= 2 {
        subscription.generation_id = 9;
    }
    if version >= 3 {
        subscription.rack_id = Some("rack".to_owned());
    }
    subscription
}

fn owned() -> Vec<TopicPartitions> {
    vec![TopicPartitions {
        topic: "orders".to_owned(),
        partitions: vec![0, 2],
    }]
}

#[test]
fn both_sides_read_each_others_subscriptions() {
    for version in 0..=3 {
        let ours = subscription(version);
        let mut written = Vec::new();
        ours.encode(version, &mut written).unwrap();
        let mut rest = Bytes::copy_from_slice(&written[2..]);
        let theirs = ConsumerProtocolSubscription::decode(&mut rest, version).unwrap();
        assert!(rest.is_empty());
        assert_eq!(theirs.generation_id, ours.generation_id);
        assert_eq!(theirs.owned_partitions.len(), ours.owned_partitions.len());
        let mut rewritten = BytesMut::new();
        rewritten.put_i16(version);
        theirs.encode(&mut rewritten, version).unwrap();
        assert_eq!(Subscription::decode(&rewritten.freeze()), Ok(ours));
    }
}

#[test]
fn both_sides_read_each_others_assignments() {
    let ours = Assignment {
        assigned_partitions: owned(),
        user_data: None,
    };
    let mut written = Vec::new();
    ours.encode(3, &mut written).unwrap();
    let mut rest = Bytes::copy_from_slice(&written[2..]);
    let theirs = ConsumerProtocolAssignment::decode(&mut rest, 3).unwrap();
    assert!(rest.is_empty());
    let mut rewritten = BytesMut::new();
    rewritten.put_i16(3);
    theirs.encode(&mut rewritten, 3).unwrap();
    assert_eq!(Assignment::decode(&rewritten.freeze()), Ok(ours));
}

#[test]
fn subscription_of_a_later_version_is_decoded_up_to_known_fields() {
    let mut written = Vec::new();
    subscription(3).encode(3, &mut written).unwrap();
    written[..2].copy_from_slice(&9i16.to_be_bytes());
    written.extend_from_slice(b"something new");
    assert_eq!(Subscription::decode(&written.into()), Ok(subscription(3)));
}

#[test]
fn truncated_assignments_are_errors_and_no_bytes_are_empty() {
    let mut written = Vec::new();
    subscription(3).encode(3, &mut written).unwrap();
    let written = Bytes::from(written);
    for size in 0..written.len() {
        assert!(
            Subscription::decode(&written.slice(..size)).is_err(),
            "{size}"
        );
    }
    assert!(Subscription::decode(&Bytes::from_static(b"\xff\xff\0\0\0\0\0\0\0\0")).is_err());
    assert_eq!(Assignment::decode(&Bytes::new()), Ok(Assignment::default()));
}
