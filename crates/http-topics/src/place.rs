//! Extractors: the topic and the partition that a request names.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use door::topics::{ReadableRange, Refused};
use http_api::Problem;
use http_api::Shared;
use topic_service::{Topic, TopicRef, Topics};

/// The topic name of a request, which may not exist, and the node's topics.
pub(crate) struct Named {
    pub(super) topics: Topics,
    pub(super) name: String,
}

/// The existing topic that a request names.
pub(crate) struct ExistingTopic {
    pub(super) topics: Topics,
    pub(super) topic: Arc<Topic>,
}

/// The existing partition that a request names.
pub(crate) struct Partition {
    pub(super) topics: Topics,
    pub(super) topic: Arc<Topic>,
    pub(super) partition: u32,
}

impl Partition {
    /// Returns the readable range.
    pub(super) fn readable(&self) -> Result<ReadableRange, Problem> {
        Ok(ReadableRange::of(
            &self.topics,
            &self.topic,
            self.partition,
        )?)
    }
}

/// Returns the topics of the node, or an error if it has none.
pub(crate) fn of(shared: &Shared) -> Result<Topics, Problem> {
    let topics = shared.node.topics();
    topics.ok_or_else(|| Refused::no_topics().into())
}

async fn params(parts: &mut Parts, shared: &Shared) -> Result<RawPathParams, Problem> {
    let params = RawPathParams::from_request_parts(parts, shared).await;
    params.map_err(|error| Problem::invalid(error.to_string()))
}

fn part<'a>(params: &'a RawPathParams, wanted: &str) -> &'a str {
    let found = params.iter().find(|(name, _)| *name == wanted);
    found.map_or("", |(_, value)| value)
}

impl FromRequestParts<Shared> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let topics = of(shared)?;
        let params = params(parts, shared).await?;
        let name = part(&params, "topic").to_owned();
        Ok(Self { topics, name })
    }
}

impl FromRequestParts<Shared> for ExistingTopic {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let Named { topics, name } = Named::from_request_parts(parts, shared).await?;
        match topics.find(TopicRef::Name(&name)) {
            Some(topic) => Ok(Self { topics, topic }),
            None => Err(Refused::unknown(&topics, &name).into()),
        }
    }
}

impl FromRequestParts<Shared> for Partition {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let ExistingTopic { topics, topic } =
            ExistingTopic::from_request_parts(parts, shared).await?;
        let params = params(parts, shared).await?;
        let text = part(&params, "partition");
        let found = text.parse().ok();
        match found.filter(|partition| *partition < topic.about().partitions) {
            Some(partition) => Ok(Self {
                topics,
                topic,
                partition,
            }),
            None => Err(Refused::no_partition(&topics, &topic.about().name, text).into()),
        }
    }
}
