//! Errors of topics on the listeners other than Kafka's: one exhaustive match for each error type
//! of the node.

use std::sync::Arc;

use access::{Forbidden, Principal};
use model::{ErrorCode, nearest};
use platform::NotDurable;
use topic_service::records::{BadRecords, NotRead, RecordResult};
use topic_service::{AdminError, FetchError, ProduceError, ReadOnly, Storage};
use topic_service::{Topic, TopicRef, Topics};
use topics::TopicError;
use topics::{Denied, Refusal};

/// Checks that a client may delete a topic, or change its configuration. The topic counts as the
/// name `default/default/TOPIC`.
pub fn check(principal: &Principal, topic: &str) -> Result<(), Forbidden> {
    principal.check_subject(&format!("default/default/{topic}"))
}

/// Returns the topic of this name. Creates it, if the node creates topics by itself.
pub fn find_or_create(topics: &Topics, name: &str) -> Result<Arc<Topic>, Refused> {
    topics
        .find_or_create(name)
        .map_err(|error| match Refused::from(error) {
            refused if refused.code == ErrorCode::NotFound => Refused::unknown(topics, name),
            refused => refused,
        })
}

/// The range of offsets that readers may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadableRange {
    /// The first existing offset.
    pub start: u64,
    /// The offset after the last committed record (Kafka's last stable offset).
    pub end: u64,
}

impl ReadableRange {
    /// Returns the range of an existing partition; the topic may have been deleted meanwhile.
    pub fn of(topics: &Topics, topic: &Topic, partition: u32) -> Result<Self, Refused> {
        match topics.view(topic, partition) {
            Ok(view) => Ok(Self {
                start: view.log_start,
                end: view.last_stable,
            }),
            Err(_) => Err(Refused::unknown(topics, &topic.about().name)),
        }
    }
}

/// An error, with numbers for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The error code.
    pub code: ErrorCode,
    /// The text for people.
    pub message: String,
    /// The numbers with their names in documents, such as `index`.
    pub numbers: Vec<(&'static str, u64)>,
}

impl Refused {
    /// Creates an error without numbers.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            numbers: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, number: u64) -> Self {
        self.numbers.push((name, number));
        self
    }

    /// Returns the error for a record that does not fit into a frame.
    pub fn too_large_for_a_frame(offset: u64, size: usize) -> Self {
        let message = format!(
            "the record at offset {offset} takes {size} bytes, more than a frame: read it over HTTP"
        );
        Self::new(ErrorCode::TooLarge, message).with("next", offset + 1)
    }

    /// Returns the error of a node without storage.
    pub fn no_topics() -> Self {
        let message = "this node has no storage, so it has no topics";
        Self::new(ErrorCode::Unsupported, message)
    }

    /// Returns the error for an unknown topic, with the nearest name.
    pub fn unknown(topics: &Topics, name: &str) -> Self {
        let known = topics.list();
        let names = known.iter().map(|topic| topic.about().name.as_str());
        let message = match nearest(name, names) {
            Some(nearest) => format!("there is no topic `{name}`; is `{nearest}` meant?"),
            None => format!("there is no topic `{name}`"),
        };
        Self::new(ErrorCode::NotFound, message)
    }

    /// Returns the error for a missing partition, or for a deleted topic.
    pub fn no_partition(topics: &Topics, name: &str, partition: &str) -> Self {
        match topics.find(TopicRef::Name(name)) {
            Some(topic) => {
                let count = topic.about().partitions;
                let message = format!(
                    "`{name}` has no partition `{partition}`: it has 0 to {}",
                    count - 1
                );
                Self::new(ErrorCode::NotFound, message)
            }
            None => Self::unknown(topics, name),
        }
    }
}

impl Refused {
    /// Returns the error of an append of which some records failed: that of the first record whose
    /// outcome is unknown, else that of the first that failed. It is `unconfirmed` instead of
    /// `moved` if other records were appended.
    pub fn of_records(results: &[RecordResult]) -> Option<Self> {
        let mut failed = results.iter().filter_map(|it| it.offset.as_ref().err());
        let first = failed.clone().next()?;
        let is_unknown = |it: &&ProduceError| match it {
            ProduceError::NotDurable(error) => error.code() == ErrorCode::Unconfirmed,
            _ => false,
        };
        let mut refused = Self::from(failed.find(is_unknown).unwrap_or(first).clone());
        if refused.code == ErrorCode::Moved && results.iter().any(|it| it.offset.is_ok()) {
            refused.code = ErrorCode::Unconfirmed;
        }
        Some(refused)
    }
}

impl From<NotDurable> for Refused {
    fn from(error: NotDurable) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<Storage> for Refused {
    fn from(storage: Storage) -> Self {
        let code = match &storage {
            Storage::Busy => ErrorCode::Busy,
            Storage::DiskFull | Storage::Failed { .. } => ErrorCode::Unavailable,
            Storage::TooLarge { .. } => ErrorCode::TooLarge,
            Storage::Moved => ErrorCode::Moved,
            Storage::Unreadable { .. } => ErrorCode::Internal,
        };
        Self::new(code, storage.to_string())
    }
}

impl From<AdminError> for Refused {
    fn from(error: AdminError) -> Self {
        let code = match &error {
            AdminError::Topic(topic) => match topic {
                TopicError::Name(_) | TopicError::Partitions { .. } | TopicError::Config(_) => {
                    ErrorCode::InvalidArgument
                }
                TopicError::Collision { .. } | TopicError::Exists { .. } => ErrorCode::Conflict,
                TopicError::Unknown => ErrorCode::NotFound,
                TopicError::Room { .. } => ErrorCode::Denied,
            },
            AdminError::Names { .. } | AdminError::ReadOnly(ReadOnly) => ErrorCode::Denied,
            AdminError::Storage(storage) => return storage.clone().into(),
            AdminError::NotDurable(error) => return (*error).into(),
        };
        Self::new(code, error.to_string())
    }
}

impl From<ProduceError> for Refused {
    fn from(error: ProduceError) -> Self {
        let code = match &error {
            ProduceError::Unknown(_) => ErrorCode::NotFound,
            ProduceError::ReadOnly(ReadOnly) => ErrorCode::Denied,
            ProduceError::Malformed(_)
            | ProduceError::NotOne
            | ProduceError::Rejected(_)
            | ProduceError::Record(_)
            | ProduceError::NoKey { .. } => ErrorCode::InvalidArgument,
            // Records that are appended here have no producer and no transaction.
            ProduceError::Refused(
                Refusal::OutOfOrder { .. }
                | Refusal::Epoch { .. }
                | Refusal::Outside { .. }
                | Refusal::Coordinator { .. },
            )
            | ProduceError::Transaction(
                Denied::NoName
                | Denied::Participants { .. }
                | Denied::Timeout { .. }
                | Denied::Mapping
                | Denied::Fenced
                | Denied::Concurrent
                | Denied::State(_)
                | Denied::Transactions { .. },
            ) => ErrorCode::Internal,
            ProduceError::Storage(storage) => return storage.clone().into(),
            ProduceError::NotDurable(error) => return (*error).into(),
        };
        Self::new(code, error.to_string())
    }
}

impl From<BadRecords> for Refused {
    fn from(error: BadRecords) -> Self {
        use topic_service::records::Bad;
        let code = match error.reason {
            Bad::Partition { .. } => ErrorCode::NotFound,
            Bad::NoKey => ErrorCode::InvalidArgument,
            Bad::Large { .. } => ErrorCode::TooLarge,
        };
        Self::new(code, error.to_string()).with("index", error.index as u64)
    }
}

impl From<FetchError> for Refused {
    fn from(error: FetchError) -> Self {
        let code = match &error {
            FetchError::Unknown(_) => ErrorCode::NotFound,
            FetchError::ReadOnly(ReadOnly) => ErrorCode::Denied,
            FetchError::OutOfRange(it) if it.offset < it.log_start => ErrorCode::Trimmed,
            FetchError::OutOfRange(_) => ErrorCode::InvalidArgument,
            // Clients of these listeners name no leader epoch.
            FetchError::Fenced { .. } | FetchError::Ahead { .. } => ErrorCode::Internal,
            FetchError::Storage(storage) => return storage.clone().into(),
            FetchError::NotDurable(error) => return (*error).into(),
        };
        let refused = Self::new(code, error.to_string());
        match error {
            FetchError::OutOfRange(it) => refused.with("start", it.log_start).with("end", it.end),
            _ => refused,
        }
    }
}

impl From<NotRead> for Refused {
    fn from(error: NotRead) -> Self {
        let message = error.to_string();
        match error {
            NotRead::Fetch(error) => error.into(),
            NotRead::Large { next, .. } => {
                Self::new(ErrorCode::TooLarge, message).with("next", next)
            }
            NotRead::Malformed { next, .. } => {
                Self::new(ErrorCode::Internal, message).with("next", next)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the code of an append of three records with these results.
    fn code(results: [Result<u64, ProduceError>; 3]) -> Option<ErrorCode> {
        let results = results.map(|offset| RecordResult {
            partition: 0,
            offset,
        });
        Refused::of_records(&results).map(|refused| refused.code)
    }

    #[test]
    fn append_of_records_is_moved_only_if_none_may_be_stored() {
        let moved = || Err(NotDurable::Moved.into());
        let cut = || Err(NotDurable::Cut.into());
        let busy = || Err(Storage::Busy.into());
        assert_eq!(code([Ok(1), Ok(2), Ok(3)]), None);
        assert_eq!(code([moved(), moved(), moved()]), Some(ErrorCode::Moved));
        assert_eq!(code([moved(), busy(), moved()]), Some(ErrorCode::Moved));
        assert_eq!(
            code([moved(), Ok(2), moved()]),
            Some(ErrorCode::Unconfirmed)
        );
        assert_eq!(
            code([moved(), cut(), moved()]),
            Some(ErrorCode::Unconfirmed)
        );
        assert_eq!(code([busy(), cut(), Ok(3)]), Some(ErrorCode::Unconfirmed));
        assert_eq!(code([busy(), Ok(2), Ok(3)]), Some(ErrorCode::Busy));
    }
}
