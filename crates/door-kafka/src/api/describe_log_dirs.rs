//! DescribeLogDirs: the disk usage of partitions. All are in one directory.

use std::collections::HashMap;
use std::sync::Arc;

use kafka::describe_log_dirs::{LogDir, PartitionResponse, Request, Response, TopicResponse};
use topic_service::{Topic, Topics};

use super::offset;
use crate::client::Client;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    let topics = client.topics();
    // No list means all topics; missing ones are left out.
    let wanted: Option<HashMap<String, Vec<i32>>> = request.topics.map(|asked| {
        let asked = asked.into_iter();
        asked.map(|it| (it.topic, it.partitions)).collect()
    });
    let shown = topics.list().into_iter().filter_map(|topic| match &wanted {
        None => Some(shown(topics, &topic, |_| true)),
        Some(wanted) => {
            let indexes = wanted.get(&topic.about().name)?;
            Some(shown(topics, &topic, |index| indexes.contains(&index)))
        }
    });
    Response {
        results: vec![LogDir {
            log_dir: client.door.options.log_dir.clone(),
            topics: shown.collect(),
            ..LogDir::default()
        }],
        ..Response::default()
    }
}

fn shown(topics: &Topics, topic: &Arc<Topic>, is_wanted: impl Fn(i32) -> bool) -> TopicResponse {
    let partitions = (0..topic.about().partitions).filter_map(|index| {
        let partition_index = i32::try_from(index).ok().filter(|it| is_wanted(*it))?;
        let view = topics.view(topic, index).ok()?;
        Some(PartitionResponse {
            partition_index,
            partition_size: offset(view.size),
            ..PartitionResponse::default()
        })
    });
    TopicResponse {
        name: topic.about().name.clone(),
        partitions: partitions.collect(),
    }
}
