//! Reading partitions of one broker in their order, as a consumer does.

use bytes::Bytes;
use kafka::{ErrorCode, fetch};
use recordbatch::Batches;

use super::link::word;
use super::session::Session;
use crate::workload::role::Failure;

/// What a fetch takes at most, and of one partition: what the Java client asks for by default.
const FETCH_SIZE_MAX: i32 = 50 << 20;
const PARTITION_SIZE_MAX: i32 = 1 << 20;

/// A partition and where the next fetch of it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) partition: i32,
    pub(super) offset: i64,
}

/// A connection that fetches.
#[derive(Debug)]
pub(super) struct Fetcher {
    session: Session,
    topic: String,
    pub(super) positions: Vec<Position>,
    /// The version of what is under way.
    version: Option<i16>,
}

impl Fetcher {
    /// Connects to whoever leads the partitions.
    ///
    /// # Errors
    /// When nobody is there.
    pub(super) fn open(
        address: &str,
        topic: &str,
        positions: Vec<Position>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            session: Session::open(address)?,
            topic: topic.to_owned(),
            positions,
            version: None,
        })
    }

    /// Asks for what follows, waiting at most so long for the first byte.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(super) fn ask(&mut self, wait_ms: i32) -> Result<(), Failure> {
        let partition = |position: &Position| fetch::Partition {
            partition: position.partition,
            fetch_offset: position.offset,
            partition_max_bytes: PARTITION_SIZE_MAX,
            ..fetch::Partition::default()
        };
        let request = fetch::Request {
            max_wait_ms: wait_ms,
            min_bytes: 1,
            max_bytes: FETCH_SIZE_MAX,
            topics: vec![fetch::Topic {
                topic: self.topic.clone(),
                partitions: self.positions.iter().map(partition).collect(),
                ..fetch::Topic::default()
            }],
            ..fetch::Request::default()
        };
        self.version = Some(self.session.send(&request)?);
        Ok(())
    }

    /// Waits for the answer, and moves on behind it: batches, by partition. Empty when the time has
    /// passed.
    ///
    /// # Errors
    /// When the connection is lost, or the broker refuses.
    pub(super) fn take(&mut self) -> Result<Vec<Bytes>, Failure> {
        let version = self.version.take().ok_or("nothing was asked for")?;
        let response = self.session.receive::<fetch::Request>(version)?;
        check(response.error_code)?;
        let mut fetched = Vec::new();
        for one in response
            .responses
            .into_iter()
            .flat_map(|topic| topic.partitions)
        {
            check(one.error_code)?;
            let records = one
                .records
                .map_or_else(Bytes::new, kafka::Records::into_bytes);
            self.advance(one.partition_index, &records);
            if !records.is_empty() {
                fetched.push(records);
            }
        }
        Ok(fetched)
    }

    /// The next fetch of a partition begins behind its last whole batch.
    fn advance(&mut self, partition: i32, records: &[u8]) {
        let whole = Batches::new(records).map_while(Result::ok);
        if let Some(last) = whole.last() {
            let next = last.header().last_offset() + 1;
            let mut own = self.positions.iter_mut();
            if let Some(position) = own.find(|one| one.partition == partition) {
                position.offset = next;
            }
        }
    }
}

fn check(code: ErrorCode) -> Result<(), Failure> {
    match code.is_error() {
        true => Err(format!("the broker refuses a fetch: {}", word(code)).into()),
        false => Ok(()),
    }
}
