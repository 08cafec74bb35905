//! Topic administration: creation, leaders of partitions, offsets, and deletion.

use std::thread;
use std::time::Duration;

use kafka::{ErrorCode, create_topics, delete_topics, list_offsets, metadata};

use super::session::Session;
use bench::workload::role::Failure;
use meter::clock::now_ns;

/// Maximum time until every partition has a leader.
const PATIENCE_NS: u64 = 30_000_000_000;
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Timeout of an administration request.
const TIMEOUT_MS: i32 = 30_000;

/// Leaders of a topic's partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Brokers that lead at least one partition: `HOST:PORT`.
    pub(crate) leaders: Vec<String>,
    /// Index of the leader, by partition.
    pub(crate) led_by: Vec<usize>,
}

/// Settings of a new topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSettings<'a> {
    /// Number of partitions.
    pub partitions: i32,
    /// Number of replicas of each partition.
    pub replicas: i16,
    /// Further settings: names and values.
    pub configs: &'a [(&'static str, String)],
}

/// Creates a topic; an existing topic is used as it is.
///
/// # Errors
/// When the broker rejects the request.
pub fn create(
    session: &mut Session,
    name: &str,
    making: &TopicSettings<'_>,
) -> Result<(), Failure> {
    let config = |(name, value): &(&str, String)| create_topics::Config {
        name: (*name).to_owned(),
        value: Some(value.clone()),
    };
    let request = create_topics::Request {
        topics: vec![create_topics::Topic {
            name: name.to_owned(),
            num_partitions: making.partitions,
            replication_factor: making.replicas,
            configs: making.configs.iter().map(config).collect(),
            ..create_topics::Topic::default()
        }],
        timeout_ms: TIMEOUT_MS,
        ..create_topics::Request::default()
    };
    let answer = session.ask(&request)?;
    let creation = answer
        .topics
        .first()
        .ok_or("the response does not contain the topic")?;
    match creation.error_code {
        ErrorCode::None | ErrorCode::TopicAlreadyExists => Ok(()),
        code => {
            let why = creation.error_message.clone().unwrap_or_default();
            Err(format!("cannot create the topic {name}: {code:?} {why}").into())
        }
    }
}

/// Deletes a topic.
///
/// # Errors
/// When the broker rejects the request.
pub(crate) fn delete(session: &mut Session, name: &str) -> Result<(), Failure> {
    let request = delete_topics::Request {
        topic_names: vec![name.to_owned()],
        timeout_ms: TIMEOUT_MS,
        ..delete_topics::Request::default()
    };
    let answer = session.ask(&request)?;
    let deletion = answer
        .responses
        .first()
        .ok_or("the response does not contain the topic")?;
    match deletion.error_code {
        ErrorCode::None => Ok(()),
        code => Err(format!("cannot delete the topic {name}: {code:?}").into()),
    }
}

/// Waits until every partition has a leader. A broker with automatic topic creation creates the
/// topic.
///
/// # Errors
/// When a leader is missing after the time limit.
pub(crate) fn layout(session: &mut Session, name: &str) -> Result<Layout, Failure> {
    let limit_ns = now_ns() + PATIENCE_NS;
    loop {
        match request_layout(session, name)? {
            Ok(layout) => return Ok(layout),
            Err(code) if now_ns() > limit_ns => {
                return Err(
                    format!("a partition of the topic {name} has no leader: {code:?}").into(),
                );
            }
            Err(_) => thread::sleep(RETRY_INTERVAL),
        }
    }
}

fn ask_metadata(session: &mut Session, name: &str) -> Result<metadata::Response, Failure> {
    let request = metadata::Request {
        topics: Some(vec![metadata::TopicRequest {
            name: Some(name.to_owned()),
            ..metadata::TopicRequest::default()
        }]),
        ..metadata::Request::default()
    };
    session.ask(&request)
}

/// Returns the partitions of a topic as a broker describes them.
///
/// # Errors
/// When the broker does not know the topic.
pub(crate) fn state(
    session: &mut Session,
    name: &str,
) -> Result<Vec<metadata::Partition>, Failure> {
    let answer = ask_metadata(session, name)?;
    let mut topics = answer.topics.into_iter();
    let topic = topics
        .next()
        .ok_or("the response does not contain the topic")?;
    match topic.error_code {
        ErrorCode::None => Ok(topic.partitions),
        code => Err(format!("no state of the topic {name}: {code:?}").into()),
    }
}

/// Returns the address of the broker that leads a partition.
///
/// # Errors
/// When there is none at the moment.
pub(crate) fn leader(
    session: &mut Session,
    name: &str,
    partition: usize,
) -> Result<String, Failure> {
    let layout = request_layout(session, name)?;
    let layout = layout.map_err(|code| format!("no leader of {name}: {code:?}"))?;
    let leader = layout.led_by.get(partition).ok_or("no such partition")?;
    Ok(layout.leaders[*leader].clone())
}

fn request_layout(session: &mut Session, name: &str) -> Result<Result<Layout, ErrorCode>, Failure> {
    let answer = ask_metadata(session, name)?;
    let topic = answer
        .topics
        .first()
        .ok_or("the response does not contain the topic")?;
    let failed = topic.partitions.iter().map(|one| one.error_code);
    if let Some(code) = failed
        .chain([topic.error_code])
        .find(|code| code.is_error())
    {
        return Ok(Err(code));
    }
    let mut partitions: Vec<&metadata::Partition> = topic.partitions.iter().collect();
    partitions.sort_by_key(|one| one.partition_index);
    let mut layout = Layout {
        leaders: Vec::new(),
        led_by: Vec::new(),
    };
    for partition in partitions {
        let is_leader = |one: &&metadata::Broker| one.node_id == partition.leader_id;
        let Some(broker) = answer.brokers.iter().find(is_leader) else {
            return Ok(Err(ErrorCode::LeaderNotAvailable));
        };
        let address = format!("{}:{}", broker.host, broker.port);
        let known = layout.leaders.iter().position(|one| *one == address);
        layout.led_by.push(known.unwrap_or(layout.leaders.len()));
        if known.is_none() {
            layout.leaders.push(address);
        }
    }
    match layout.led_by.is_empty() {
        true => Ok(Err(ErrorCode::UnknownTopicOrPartition)),
        false => Ok(Ok(layout)),
    }
}

/// End of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffsetKind {
    First,
    Next,
}

/// Returns the first or the next offset of each partition. A new leader may not know it yet, so the
/// request is retried.
///
/// # Errors
/// When a leader does not answer with an offset.
pub(crate) fn offsets(layout: &Layout, name: &str, end: OffsetKind) -> Result<Vec<i64>, Failure> {
    let mut found = vec![0; layout.led_by.len()];
    let limit_ns = now_ns() + PATIENCE_NS;
    for (leader, address) in layout.leaders.iter().enumerate() {
        let mut session = Session::open(address)?;
        let request = of_leader(layout, name, leader, end);
        loop {
            match ask(&mut session, &request, &mut found)? {
                ErrorCode::None => break,
                code if code.is_retriable() && now_ns() < limit_ns => thread::sleep(RETRY_INTERVAL),
                code => return Err(format!("no offsets of {name}: {code:?}").into()),
            }
        }
    }
    Ok(found)
}

fn of_leader(layout: &Layout, name: &str, leader: usize, end: OffsetKind) -> list_offsets::Request {
    let timestamp = match end {
        OffsetKind::First => -2,
        OffsetKind::Next => -1,
    };
    let all = (0..).zip(&layout.led_by);
    let own = all.filter(|(_, led_by)| **led_by == leader);
    let partition = |(partition_index, _)| list_offsets::Partition {
        partition_index,
        timestamp,
        ..list_offsets::Partition::default()
    };
    list_offsets::Request {
        replica_id: -1,
        topics: vec![list_offsets::Topic {
            name: name.to_owned(),
            partitions: own.map(partition).collect(),
        }],
        ..list_offsets::Request::default()
    }
}

/// Stores the offsets of a response, up to the first error, which it returns.
fn ask(
    session: &mut Session,
    request: &list_offsets::Request,
    found: &mut [i64],
) -> Result<ErrorCode, Failure> {
    let answer = session.ask(request)?;
    for one in answer.topics.iter().flat_map(|topic| &topic.partitions) {
        if one.error_code.is_error() {
            return Ok(one.error_code);
        }
        let slot = usize::try_from(one.partition_index).ok();
        let slot = slot.and_then(|at| found.get_mut(at));
        *slot.ok_or("the broker answers for an unknown partition")? = one.offset;
    }
    Ok(ErrorCode::None)
}
