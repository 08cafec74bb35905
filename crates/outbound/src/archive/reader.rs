//! Reads trimmed messages back from the archive.
//!
//! Requests are served one after the other over one connection, which is made on demand. A request
//! that waited longer than the limit fails; a caller waits at most twice the limit.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use conversation_service::archive::{
    Archive, ArchiveQuery, ArchiveRead, ArchiveUnavailable, ArchiveView, ArchivedMessage,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::address::Address;
use super::failure::Failure;
use super::session::Session;
use super::state::Shared;

/// Maximum number of waiting requests.
const WAITING_MAX: usize = 256;

/// Maximum bytes of an answer, unless a single message is larger.
const BYTES_MAX: usize = 8 << 20;

/// Idle time after which the connection is closed.
const IDLE: Duration = Duration::from_secs(60);

type Answer = Result<Vec<ArchivedMessage>, ArchiveUnavailable>;

struct Request {
    wanted: ArchiveQuery,
    asked: Instant,
    answer: oneshot::Sender<Answer>,
}

/// Port of the node for reading the archive.
pub(super) struct Reader {
    requests: mpsc::Sender<Request>,
    shared: Arc<Shared>,
}

impl Reader {
    /// Creates the port and the task that serves it.
    pub(super) fn new(
        address: Address,
        limit: Duration,
        shared: Arc<Shared>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (requests, waiting) = mpsc::channel(WAITING_MAX);
        let reader = Self {
            requests,
            shared: shared.clone(),
        };
        (reader, answer_all(address, limit, shared, waiting))
    }
}

impl Archive for Reader {
    fn read(&self, wanted: ArchiveQuery) -> ArchiveRead {
        let (answer, answered) = oneshot::channel();
        let request = Request {
            wanted,
            asked: Instant::now(),
            answer,
        };
        let sent = self.requests.try_send(request);
        Box::pin(async move {
            sent.map_err(|_| away(format!("too many reads are waiting (limit {WAITING_MAX})")))?;
            let ended = |_| away("the node is shutting down");
            answered.await.map_err(ended)?
        })
    }

    fn view(&self) -> ArchiveView {
        self.shared.view()
    }
}

fn away(reason: impl Into<String>) -> ArchiveUnavailable {
    ArchiveUnavailable {
        reason: reason.into(),
    }
}

async fn answer_all(
    address: Address,
    limit: Duration,
    shared: Arc<Shared>,
    mut requests: mpsc::Receiver<Request>,
) {
    let mut session = None;
    loop {
        let request = match tokio::time::timeout(IDLE, requests.recv()).await {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(_) => {
                session = None;
                continue;
            }
        };
        if request.answer.is_closed() {
            continue;
        }
        let answer = match request.asked.elapsed() > limit {
            true => Err(away(format!(
                "the request waited longer than {limit:?} (archive.read_timeout)"
            ))),
            false => answer(&address, limit, &mut session, &request.wanted).await,
        };
        let count = answer.as_ref().map_or(0, Vec::len);
        shared.change(|view| view.read_back += count as u64);
        // The caller may have gone.
        let _ = request.answer.send(answer);
    }
}

async fn answer(
    address: &Address,
    limit: Duration,
    session: &mut Option<Session>,
    wanted: &ArchiveQuery,
) -> Answer {
    let is_reused = session.is_some();
    let reading = async {
        match read(address, limit, session, wanted).await {
            // The database may have restarted since the connection was made.
            Err(Failure::Database(error)) if is_reused && error.is_closed() => {
                *session = None;
                read(address, limit, session, wanted).await
            }
            read => read,
        }
    };
    let read = tokio::time::timeout(limit, reading).await;
    let read = read.unwrap_or(Err(Failure::Timeout {
        seconds: limit.as_secs(),
    }));
    read.map_err(|failure| {
        *session = None;
        away(failure.to_string())
    })
}

const SELECT: &str = "
SELECT seq, at, record FROM (
    SELECT seq, at, record, sum(octet_length(record)) OVER (ORDER BY seq) AS total FROM (
        SELECT seq, at, record FROM telpher.messages
        WHERE journal = $1 AND conversation = $2 AND seq BETWEEN $3 AND $4
        UNION ALL
        SELECT seq, at, record FROM telpher.refused
        WHERE journal = $1 AND conversation = $2 AND seq BETWEEN $3 AND $4
    ) AS both_tables
) AS summed
WHERE total <= $5 OR seq = $3 ORDER BY seq";

async fn read(
    address: &Address,
    limit: Duration,
    session: &mut Option<Session>,
    wanted: &ArchiveQuery,
) -> Result<Vec<ArchivedMessage>, Failure> {
    let session = match session {
        Some(session) => session,
        None => session.insert(Session::connect(address, limit).await?),
    };
    let (journal, conversation) = (wanted.journal as i64, wanted.conversation as i64);
    let (first, last) = (*wanted.seqs.start() as i64, *wanted.seqs.end() as i64);
    let bytes = wanted.bytes.min(BYTES_MAX) as i64;
    let values: super::session::Values<'_> = &[&journal, &conversation, &first, &last, &bytes];
    let rows = session.query(SELECT, values).await?;
    let archived = |row: tokio_postgres::Row| {
        let (seq, at): (i64, SystemTime) = (row.try_get(0)?, row.try_get(1)?);
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let record: Vec<u8> = row.try_get(2)?;
        Ok(ArchivedMessage {
            seq: seq as u64,
            at_ms: since.as_millis() as u64,
            record: Bytes::from(record),
        })
    };
    rows.into_iter().map(archived).collect()
}
