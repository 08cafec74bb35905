//! Comparison of records: produce, fetch, offset queries, deletion.

use anyhow::Result;
use bytes::Bytes;
use kafka::{
    Records, delete_records, fetch, list_offsets, metadata, offset_for_leader_epoch, produce,
};
use recordbatch::{Attributes, Builder, Template};

use super::script::Script;
use super::topics::{make, topic, topic_with};

const TOPIC: &str = "records";
const COMPACTED: &str = "records-compacted";
const SMALL: &str = "records-small";
/// Topic for batches that only one of the brokers may accept.
const STRANGE: &str = "records-strange";

pub(super) fn compare(script: &mut Script) -> Result<()> {
    let topics = vec![
        topic(TOPIC),
        topic(STRANGE),
        topic_with(COMPACTED, "cleanup.policy", "compact"),
        topic_with(SMALL, "max.message.bytes", "200"),
    ];
    script.compare("topics for records", 4, &make(topics))?;
    // A new leader may not know its leadership yet.
    std::thread::sleep(std::time::Duration::from_secs(2));
    compare_rejections(script)?;
    compare_appends(script)?;
    compare_fetches(script)?;
    compare_offset_queries(script)?;
    compare_deletions(script)
}

/// Encodes a batch of `count` records with times from `time` on, by the template.
pub(super) fn batch(count: i64, time: i64, template: &Template) -> Vec<u8> {
    let mut builder = Builder::new();
    for number in 0..count {
        let value = format!("value {number}");
        builder.push(time + number, Some(b"key"), Some(value.as_bytes()), &[]);
    }
    let mut bytes = Vec::new();
    builder.finish(template, &mut bytes);
    bytes
}

fn plain(count: i64, time: i64) -> Vec<u8> {
    batch(count, time, &Template::default())
}

/// Returns a request that appends a batch to a partition.
pub(super) fn append(topic: &str, index: i32, acks: i16, batch: Vec<u8>) -> produce::Request {
    produce::Request {
        acks,
        timeout_ms: 5_000,
        topic_data: vec![produce::Topic {
            name: topic.to_owned(),
            partition_data: vec![produce::Partition {
                index,
                records: Some(Records::from(Bytes::from(batch))),
            }],
            ..produce::Topic::default()
        }],
        ..produce::Request::default()
    }
}

/// Returns a valid batch with one field overwritten and a correct checksum.
fn altered(at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = plain(2, 1_000);
    bytes[at..at + field.len()].copy_from_slice(field);
    let crc = crc32c::crc32c(&bytes[21..]).to_be_bytes();
    bytes[17..21].copy_from_slice(&crc);
    bytes
}

fn compare_rejections(script: &mut Script) -> Result<()> {
    let good = || plain(2, 1_000);
    let mut torn = good();
    torn.truncate(torn.len() - 3);
    let mut damaged = good();
    if let Some(last) = damaged.last_mut() {
        *last ^= 1;
    }
    let cases: [(&str, &str, i32, i16, Vec<u8>); 19] = [
        ("unknown topic", "absent", 0, 1, good()),
        ("invalid topic name", "no good", 0, 1, good()),
        ("unknown partition", TOPIC, 7, 1, good()),
        ("negative partition", TOPIC, -1, 1, good()),
        ("with acks of two", TOPIC, 0, 2, good()),
        ("torn", TOPIC, 0, -1, torn),
        ("damaged", TOPIC, 0, -1, damaged),
        ("two batches", TOPIC, 0, -1, [good(), good()].concat()),
        ("format 1", TOPIC, 0, -1, altered(16, &[1])),
        ("format 3", TOPIC, 0, -1, altered(16, &[3])),
        ("unknown compression", TOPIC, 0, -1, altered(21, &[0, 7])),
        (
            "timestamp type of a broker",
            STRANGE,
            0,
            -1,
            altered(21, &[0, 8]),
        ),
        (
            "transactional without a transaction",
            TOPIC,
            0,
            -1,
            altered(21, &[0, 16]),
        ),
        ("control batch", TOPIC, 0, -1, altered(21, &[0, 32])),
        (
            "with more offsets than records",
            TOPIC,
            0,
            -1,
            altered(23, &5_i32.to_be_bytes()),
        ),
        (
            "with more records than there are",
            TOPIC,
            0,
            -1,
            altered(57, &9_i32.to_be_bytes()),
        ),
        (
            "base offset other than 0",
            TOPIC,
            0,
            -1,
            altered(0, &5_i64.to_be_bytes()),
        ),
        ("too large", SMALL, 0, -1, plain(50, 1_000)),
        ("no records", TOPIC, 0, -1, Vec::new()),
    ];
    for (name, topic, index, acks, bytes) in cases {
        script.compare(name, 9, &append(topic, index, acks, bytes))?;
    }
    let mut builder = Builder::new();
    builder.push(1_000, None, Some(b"without a key"), &[]);
    let mut keyless = Vec::new();
    builder.finish(&Template::default(), &mut keyless);
    script.compare(
        "without a key in a compacted topic",
        9,
        &append(COMPACTED, 0, -1, keyless),
    )?;
    let packed = Template {
        attributes: Attributes::of(recordbatch::Compression::Zstd),
        ..Template::default()
    };
    script.compare(
        "zstd in a version without it",
        6,
        &append(TOPIC, 0, -1, batch(1, 1_000, &packed)),
    )?;
    let by_no_id = append("", 0, -1, good());
    script.compare("unknown topic id", 13, &by_no_id)?;
    Ok(())
}

/// Appends offsets 0 to 9 in four batches, with times from 1,000 on.
fn compare_appends(script: &mut Script) -> Result<()> {
    for (version, count, time) in [(3, 1, 1_000), (7, 2, 2_000), (9, 3, 3_000), (11, 4, 4_000)] {
        let request = append(TOPIC, 0, -1, plain(count, time));
        script.compare("valid batches", version, &request)?;
    }
    Ok(())
}

/// Returns a fetch request for one partition, which does not wait.
pub(super) fn fetch_from(topic: &str, partition: i32, offset: i64) -> fetch::Request {
    fetch::Request {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: 1 << 20,
        topics: vec![fetch::Topic {
            topic: topic.to_owned(),
            partitions: vec![fetch::Partition {
                partition,
                fetch_offset: offset,
                partition_max_bytes: 1 << 20,
                ..fetch::Partition::default()
            }],
            ..fetch::Topic::default()
        }],
        ..fetch::Request::default()
    }
}

fn compare_fetches(script: &mut Script) -> Result<()> {
    for version in [4, 11, 12] {
        for offset in [0, 1, 2, 9, 10, 11, -1, -5] {
            let request = fetch_from(TOPIC, 0, offset);
            script.compare(&format!("from {offset}"), version, &request)?;
        }
    }
    script.compare("unknown topic", 12, &fetch_from("absent", 0, 0))?;
    script.compare("unknown partition", 12, &fetch_from(TOPIC, 7, 0))?;
    script.compare("unknown topic id", 13, &fetch_from("", 0, 0))?;
    // The first batch is returned whole, independent of the size limit.
    for bytes in [0, 1, 100] {
        let mut request = fetch_from(TOPIC, 0, 0);
        request.max_bytes = bytes;
        request.topics[0].partitions[0].partition_max_bytes = bytes;
        script.compare(&format!("at most {bytes} bytes"), 12, &request)?;
    }
    let session = fetch::Request {
        session_id: 12_345,
        session_epoch: 3,
        ..fetch_from(TOPIC, 0, 0)
    };
    script.compare("unknown session", 12, &session)?;
    compare_epochs(script)
}

/// Current leader epoch on each broker: each counts in its own way.
type Epochs = [i32; 2];

fn current_epochs(script: &mut Script) -> Result<Option<Epochs>> {
    let request = metadata::Request {
        topics: Some(vec![metadata::TopicRequest {
            name: Some(TOPIC.to_owned()),
            ..metadata::TopicRequest::default()
        }]),
        ..metadata::Request::default()
    };
    let answers = script.compare("leader epoch", 9, &request)?;
    let [Some(theirs), Some(ours)] = answers else {
        return Ok(None);
    };
    let epoch = |answer: metadata::Response| {
        let topic = answer.topics.first()?;
        topic.partitions.first().map(|it| it.leader_epoch)
    };
    Ok(epoch(theirs).zip(epoch(ours)).map(<[i32; 2]>::from))
}

fn compare_epochs(script: &mut Script) -> Result<()> {
    let Some(now) = current_epochs(script)? else {
        return Ok(());
    };
    for later in [0, 1, 99] {
        let requests = now.map(|now| {
            let mut request = fetch_from(TOPIC, 0, 0);
            request.topics[0].partitions[0].current_leader_epoch = now + later;
            request
        });
        let name = format!("leader epoch + {later}");
        script.compare_each(&name, 12, [&requests[0], &requests[1]])?;
    }
    let end = |leader_epoch, current_leader_epoch| offset_for_leader_epoch::Request {
        replica_id: -1,
        topics: vec![offset_for_leader_epoch::Topic {
            topic: TOPIC.to_owned(),
            partitions: vec![offset_for_leader_epoch::Partition {
                partition: 0,
                current_leader_epoch,
                leader_epoch,
            }],
        }],
    };
    for (asked, current) in [(0, None), (0, Some(0)), (5, None), (0, Some(9))] {
        let requests = now.map(|now| end(now + asked, current.map_or(-1, |later| now + later)));
        let name = format!("epoch + {asked}, current epoch {current:?}");
        script.compare_each(&name, 4, [&requests[0], &requests[1]])?;
    }
    script.compare("no epoch", 4, &end(-1, -1))?;
    Ok(())
}

fn compare_offset_queries(script: &mut Script) -> Result<()> {
    let at =
        |topic: &str, partition_index, timestamp, current_leader_epoch| list_offsets::Request {
            replica_id: -1,
            topics: vec![list_offsets::Topic {
                name: topic.to_owned(),
                partitions: vec![list_offsets::Partition {
                    partition_index,
                    current_leader_epoch,
                    timestamp,
                }],
            }],
            ..list_offsets::Request::default()
        };
    for timestamp in [
        -2,
        -1,
        -3,
        -77,
        0,
        999,
        1_000,
        1_001,
        2_001,
        3_000,
        4_003,
        4_004,
        i64::MAX,
    ] {
        let request = at(TOPIC, 0, timestamp, -1);
        script.compare(&format!("at time {timestamp}"), 7, &request)?;
    }
    script.compare("of an empty partition, the end", 7, &at(SMALL, 0, -1, -1))?;
    script.compare(
        "of an empty partition, the highest time",
        7,
        &at(SMALL, 0, -3, -1),
    )?;
    script.compare("of an empty partition, a time", 7, &at(SMALL, 0, 5, -1))?;
    script.compare("unknown topic", 7, &at("absent", 0, -1, -1))?;
    script.compare("unknown partition", 7, &at(TOPIC, 7, -1, -1))?;
    script.compare("future leader epoch", 7, &at(TOPIC, 0, -1, 99))?;
    Ok(())
}

fn compare_deletions(script: &mut Script) -> Result<()> {
    let upto = |topic: &str, partition_index, offset| delete_records::Request {
        topics: vec![delete_records::Topic {
            name: topic.to_owned(),
            partitions: vec![delete_records::Partition {
                partition_index,
                offset,
            }],
        }],
        timeout_ms: 5_000,
    };
    script.compare("unknown topic", 2, &upto("absent", 0, 0))?;
    script.compare("unknown partition", 2, &upto(TOPIC, 7, 0))?;
    script.compare("beyond the end", 2, &upto(TOPIC, 0, 11))?;
    script.compare("negative offset", 2, &upto(TOPIC, 0, -2))?;
    script.compare("compacted topic", 2, &upto(COMPACTED, 0, 0))?;
    script.compare("up to the middle of a batch", 2, &upto(TOPIC, 0, 2))?;
    script.compare("up to the log start", 2, &upto(TOPIC, 0, 1))?;
    for offset in [0, 1, 2] {
        script.compare(
            &format!("from {offset} after partial deletion"),
            12,
            &fetch_from(TOPIC, 0, offset),
        )?;
    }
    script.compare("all records", 2, &upto(TOPIC, 0, -1))?;
    script.compare(
        "from the end after full deletion",
        12,
        &fetch_from(TOPIC, 0, 10),
    )?;
    Ok(())
}
