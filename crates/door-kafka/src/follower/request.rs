//! The requests of a client: frames, and what is remembered of them until their answers.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use door::reading;
use kafka::{ApiKey, FrameError, Request, RequestError};
use net::Source;

use crate::inbox::{Inbox, Trust};
use crate::reply::Tag;

/// Time for which ApiVersions waits for the leader, and again for its answer: some clients give up after
/// two seconds.
pub(super) const VERSIONS_MAX: Duration = Duration::from_millis(500);

/// Time in which a leader that works answers a request that waits for nothing.
const PROMPT_MAX: Duration = Duration::from_secs(2);

/// The incoming requests of a connection.
pub(super) struct Requests {
    source: Box<dyn Source>,
    inbox: Inbox,
}

impl Requests {
    pub(super) fn new(source: Box<dyn Source>) -> Self {
        let inbox = Inbox::default();
        Self { source, inbox }
    }

    /// Returns the next frame; `None` at the end of the connection. Nothing is lost if the future is
    /// dropped.
    pub(super) async fn next(&mut self, trust: Trust) -> Result<Option<Bytes>, FrameError> {
        loop {
            if let Some(frame) = self.received(trust)? {
                return Ok(Some(frame));
            }
            let Self { source, inbox } = self;
            if !read(&mut **source, |bytes| inbox.feed(bytes)).await {
                return Ok(None);
            }
        }
    }

    /// Returns the next frame if it was received completely.
    pub(super) fn received(&mut self, trust: Trust) -> Result<Option<Bytes>, FrameError> {
        self.inbox.next(trust)
    }
}

/// Receives bytes. Returns false at the end of the connection. Nothing is lost if the future is dropped.
pub(super) async fn read(source: &mut dyn Source, mut feed: impl FnMut(&[u8])) -> bool {
    let read = poll_fn(|cx| {
        reading::with_chunk(|chunk| {
            let count = reading::poll_count(source, cx, chunk);
            if let Poll::Ready(Some(count)) = count {
                feed(&chunk[..count]);
            }
            count
        })
    });
    read.await.is_some()
}

/// A request without its records.
pub(super) enum PendingRequest {
    Known(Tag, Box<Request>),
    /// ApiVersions in an unsupported version, with its correlation id.
    FutureVersions(i32),
    /// A request that brokers answer by the end of the connection.
    Invalid,
}

impl PendingRequest {
    /// Reads a frame.
    pub(super) fn of(frame: &Bytes) -> Self {
        match kafka::decode_request(frame) {
            Ok((header, mut request)) => {
                if let Request::Produce(it) = &mut request {
                    let topics = it.topic_data.iter_mut();
                    let partitions = topics.flat_map(|topic| &mut topic.partition_data);
                    // They share the memory of the frame.
                    partitions.for_each(|partition| partition.records = None);
                }
                Self::Known(Tag::of(&header), Box::new(request))
            }
            Err(RequestError::UnsupportedVersion {
                key: ApiKey::ApiVersions,
                correlation_id,
                ..
            }) => Self::FutureVersions(correlation_id),
            Err(_) => Self::Invalid,
        }
    }

    /// Returns false if a producer wants no answer.
    pub(super) fn has_answer(&self) -> bool {
        let Self::Known(_, request) = self else {
            return true;
        };
        !matches!(&**request, Request::Produce(it) if it.acks == 0)
    }

    /// Returns whether a client asks for the versions of the protocol.
    pub(super) fn is_for_versions(&self) -> bool {
        match self {
            Self::Known(_, request) => matches!(**request, Request::ApiVersions(_)),
            Self::FutureVersions(_) => true,
            Self::Invalid => false,
        }
    }

    /// Returns the time in which a leader that works answers it, if that depends on neither the disk nor
    /// other clients.
    pub(super) fn answer_max(&self) -> Option<Duration> {
        if self.is_for_versions() {
            return Some(VERSIONS_MAX);
        }
        let Self::Known(_, request) = self else {
            return None;
        };
        let is_prompt = matches!(
            **request,
            Request::Metadata(_) | Request::FindCoordinator(_)
        );
        is_prompt.then_some(PROMPT_MAX)
    }

    /// Returns whether a client authenticates.
    pub(super) fn is_for_authentication(&self) -> bool {
        let Self::Known(_, request) = self else {
            return false;
        };
        matches!(
            **request,
            Request::SaslHandshake(_) | Request::SaslAuthenticate(_)
        )
    }

    /// Returns whether the answer to this request has that correlation id.
    pub(super) fn is_answered_by(&self, correlation_id: i32) -> bool {
        match self {
            Self::Known(tag, _) => tag.correlation_id == correlation_id,
            Self::FutureVersions(id) => *id == correlation_id,
            Self::Invalid => true,
        }
    }
}
