//! Sequential reads from the partitions of one broker, as by a consumer.

use bytes::Bytes;
use kafka::{ErrorCode, fetch};
use recordbatch::Batches;

use super::session::{Session, error_name};
use bench::workload::role::Failure;

/// Maximum bytes of a fetch, and of one partition in it: the defaults of the Java client.
const FETCH_SIZE_MAX: i32 = 50 << 20;
const PARTITION_SIZE_MAX: i32 = 1 << 20;

/// A partition, and the offset of its next fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Index of the partition.
    pub partition: i32,
    /// Offset of its next fetch.
    pub offset: i64,
}

/// Connection that fetches.
#[derive(Debug)]
pub struct Fetcher {
    session: Session,
    topic: String,
    pub(crate) positions: Vec<Position>,
    /// API version of the request in flight.
    version: Option<i16>,
}

impl Fetcher {
    /// Connects to the leader of the partitions.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn open(address: &str, topic: &str, positions: Vec<Position>) -> Result<Self, Failure> {
        Ok(Self {
            session: Session::open(address)?,
            topic: topic.to_owned(),
            positions,
            version: None,
        })
    }

    /// Requests the next batches. The broker waits at most `wait_ms` for the first byte.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn ask(&mut self, wait_ms: i32) -> Result<(), Failure> {
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

    /// Waits for the response, and advances the positions. Returns batches by partition; empty if
    /// the wait time is over.
    ///
    /// # Errors
    /// When the connection is lost, or the broker returns an error.
    pub fn take(&mut self) -> Result<Vec<Bytes>, Failure> {
        let version = self.version.take().ok_or("no fetch is in flight")?;
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

    /// Sets the position of a partition to the offset after its last complete batch.
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
        true => Err(format!("the broker rejects a fetch: {}", error_name(code)).into()),
        false => Ok(()),
    }
}
