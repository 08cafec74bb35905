//! Offsets to commit: those of existing partitions, and error codes for the others.

use kafka::ErrorCode;
use topic_service::{TopicRef, Topics};
use topics::groups::{Mark, Refused};

use super::partition_in;
use crate::errors::{Failed, of_refused};

/// A requested commit for one partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitRequest<'a> {
    pub(super) topic: &'a str,
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) leader_epoch: i32,
    pub(super) metadata: &'a str,
}

/// All commits of a request, in their order.
#[derive(Debug)]
pub(super) struct Marks<'a>(Vec<Result<Mark<'a>, ErrorCode>>);

/// The codes that are known before the node answers.
#[derive(Debug)]
pub(super) struct Codes(Vec<Option<ErrorCode>>);

impl<'a> Marks<'a> {
    /// Looks up the partitions of the requested commits.
    pub(super) fn of(topics: &Topics, asked: impl Iterator<Item = CommitRequest<'a>>) -> Self {
        let mark = |asked: CommitRequest<'a>| {
            let topic = topics.find(TopicRef::Name(asked.topic));
            let topic = topic.ok_or(ErrorCode::UnknownTopicOrPartition)?;
            Ok(Mark {
                topic: asked.topic,
                partition: partition_in(&topic, asked.partition)?,
                offset: asked.offset,
                leader_epoch: asked.leader_epoch,
                metadata: asked.metadata,
            })
        };
        Self(asked.map(mark).collect())
    }

    /// Returns the commits for existing partitions.
    pub(super) fn known(&self) -> impl Iterator<Item = Mark<'a>> {
        self.0.iter().filter_map(|mark| mark.as_ref().ok().copied())
    }

    pub(super) fn into_codes(self) -> Codes {
        Codes(self.0.into_iter().map(Result::err).collect())
    }
}

impl Codes {
    /// Returns a code for each commit, in the order of the request.
    pub(super) fn with(self, told: Result<Vec<Result<(), Refused>>, Failed>) -> Vec<ErrorCode> {
        let (mut each, all) = match told {
            Ok(each) => (each.into_iter(), None),
            Err(failed) => (Vec::new().into_iter(), Some(failed.code)),
        };
        let code = |known: Option<ErrorCode>| {
            known.or(all).unwrap_or_else(|| match each.next() {
                Some(Ok(())) => ErrorCode::None,
                Some(Err(refused)) => of_refused(&refused),
                None => ErrorCode::UnknownServerError,
            })
        };
        self.0.into_iter().map(code).collect()
    }
}
