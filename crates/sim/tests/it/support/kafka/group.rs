//! The only member of a consumer group.

use kafka::ErrorCode;

use super::{Kafka, pause};

/// A subscription to no topic, and an assignment of none: the group is only asked for offsets.
const NOTHING: &[u8] = b"\0\0\0\0\0\0\xff\xff\xff\xff";

/// A member in its generation.
pub(crate) struct Group {
    group: String,
    member: String,
    generation: i32,
}

impl Group {
    /// Joins a group that has no other member.
    pub(crate) async fn join(kafka: &mut Kafka, group: &str) -> Group {
        use kafka::join_group::{Protocol, Request};
        let mut member = String::new();
        loop {
            let request = Request {
                group_id: group.to_owned(),
                session_timeout_ms: 6_000,
                rebalance_timeout_ms: 6_000,
                member_id: member.clone(),
                protocol_type: "consumer".to_owned(),
                protocols: vec![Protocol {
                    name: "range".to_owned(),
                    metadata: bytes::Bytes::from_static(NOTHING),
                }],
                ..Request::default()
            };
            let joined = kafka.ask(5, &request, || {}).await;
            match joined.error_code {
                ErrorCode::None => {}
                ErrorCode::MemberIdRequired => {
                    member = joined.member_id;
                    continue;
                }
                _ => {
                    member.clear();
                    pause().await;
                    continue;
                }
            }
            let joined = Group {
                group: group.to_owned(),
                member: joined.member_id,
                generation: joined.generation_id,
            };
            if joined.synchronize(kafka).await {
                return joined;
            }
            member = joined.member;
            pause().await;
        }
    }

    /// Gives the only member its assignment. Returns false if it must join again.
    async fn synchronize(&self, kafka: &mut Kafka) -> bool {
        use kafka::sync_group::{Assignment, Request};
        let request = Request {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.member.clone(),
            assignments: vec![Assignment {
                member_id: self.member.clone(),
                assignment: bytes::Bytes::from_static(NOTHING),
            }],
            ..Request::default()
        };
        let response = kafka.ask(3, &request, || {}).await;
        response.error_code == ErrorCode::None
    }

    /// Commits the offsets of the first partitions of a topic. Returns false if the member must join
    /// again.
    pub(crate) async fn commit(&self, kafka: &mut Kafka, topic: &str, offsets: &[i64]) -> bool {
        use kafka::offset_commit::{Partition, Request, Topic};
        let partitions = (0..).zip(offsets).map(|(index, offset)| Partition {
            partition_index: index,
            committed_offset: *offset,
            ..Partition::default()
        });
        let request = Request {
            group_id: self.group.clone(),
            generation_id_or_member_epoch: self.generation,
            member_id: self.member.clone(),
            topics: vec![Topic {
                name: topic.to_owned(),
                partitions: partitions.collect(),
            }],
            ..Request::default()
        };
        let response = kafka.ask(7, &request, || {}).await;
        let mut partitions = response.topics[0].partitions.iter();
        partitions.all(|it| it.error_code == ErrorCode::None)
    }
}

/// Returns the committed offsets of the first partitions of a topic; 0 for none.
pub(crate) async fn committed_offsets(
    kafka: &mut Kafka,
    group: &str,
    topic: &str,
    partitions: i32,
) -> Vec<i64> {
    use kafka::offset_fetch::{Request, Topic};
    let request = Request {
        group_id: group.to_owned(),
        topics: Some(vec![Topic {
            name: topic.to_owned(),
            partition_indexes: (0..partitions).collect(),
        }]),
        ..Request::default()
    };
    loop {
        let response = kafka.ask(5, &request, || {}).await;
        if response.error_code == ErrorCode::None {
            let partitions = response.topics[0].partitions.iter();
            return partitions.map(|it| it.committed_offset.max(0)).collect();
        }
        pause().await;
    }
}
