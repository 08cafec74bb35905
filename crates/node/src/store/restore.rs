//! Restoration of a mailbox from its stream.

use ::mailbox::record::{self, Malformed};
use ::mailbox::{Limits, Mailbox, NewMessage, Span};
use journal::{Journal, Read, ReadError, ReadLimit};
use model::{ErrorCode, Name};

use super::Store;
use super::directory::{Kind, Location};
use super::mailbox::{Fetched, Instance, Methods, Progress, State};
use crate::node::Inner;

/// Size of one read of a mailbox's stream.
const CHUNK: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

/// The reach of a read: memory only, or also the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Memory only: never waits.
    Memory,
    /// Also the disk: may wait.
    Disk,
}

impl Reach {
    /// Reads records of a stream; `None` if they are not within reach.
    pub(crate) fn read(
        self,
        journal: &Journal,
        Location { shard, stream }: Location,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read>, ReadError> {
        match self {
            Self::Memory => journal.read_in_memory(shard, stream, from, limit),
            Self::Disk => journal.read(shard, stream, from, limit).map(Some),
        }
    }
}

/// The reason why a mailbox cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl From<LoadError> for (ErrorCode, String) {
    fn from(error: LoadError) -> Self {
        (ErrorCode::Internal, error.to_string())
    }
}

impl Store {
    /// Restores a mailbox, which need not exist; `None` if its records are not within reach.
    pub(super) fn read_back(
        &self,
        inner: &Inner,
        base: &str,
        reach: Reach,
    ) -> Result<Option<State>, LoadError> {
        let options = &self.options;
        let mut mailbox = Mailbox::new(Limits {
            messages_max: options.messages_max,
            bytes_max: options.size_max,
            in_flight_max: options.in_flight_max,
            deliveries_max: options.deliveries_max,
        });
        let location = self.find(Kind::Mailbox, base);
        let mut stream = Progress::default();
        if let Some(location) = location {
            let Some(progress) = self.restore(location, &mut mailbox, reach)? else {
                return Ok(None);
            };
            stream = progress;
        }
        mailbox.restored();
        let name = Name::parse(base).map_err(|_| Malformed {
            what: "name of a mailbox",
        })?;
        Ok(Some(State {
            mailbox,
            location,
            target: inner.table.write().target(&name),
            stream,
            methods: Methods::default(),
            fetched: Fetched::default(),
            used_ns: inner.platform.ports.clock.now_ns(),
        }))
    }

    /// Reads every record of the stream. All of them are durable, because the mailbox is not
    /// loaded.
    fn restore(
        &self,
        location: Location,
        mailbox: &mut Mailbox<Instance>,
        reach: Reach,
    ) -> Result<Option<Progress>, LoadError> {
        let Location { shard, stream } = location;
        let start = self.journal.stream(shard, stream).map_or(0, |it| it.start);
        let mut progress = Progress {
            span: Span::new(start),
            ticket: None,
        };
        let mut from = start;
        loop {
            let Some(read) = self.read_within(reach, location, from, CHUNK)? else {
                return Ok(None);
            };
            let Some(last) = read.records.last() else {
                return Ok(Some(progress));
            };
            from = last.offset + 1;
            for record in &read.records {
                progress.span.push(record.offset, record.payload.len());
                if record.tag == record::WRITE {
                    progress.span.count_write();
                }
                restore_record(mailbox, record)?;
            }
        }
    }

    /// Reads a stream; `None` if the records are not within reach.
    pub(crate) fn read_within(
        &self,
        reach: Reach,
        location: Location,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Option<Read>, ReadError> {
        reach.read(&self.journal, location, from, limit)
    }
}

fn restore_record(
    mailbox: &mut Mailbox<Instance>,
    record: &journal::Record,
) -> Result<(), Malformed> {
    let bytes = &record.payload;
    match record.tag {
        record::WRITE => mailbox.restore(written(record.offset, bytes)?),
        record::MOVED => {
            let moved = record::Moved::decode(bytes)?;
            let written = written(moved.offset, moved.write)?;
            mailbox.restore_moved(written, record.offset, moved.standing);
        }
        record::NOTES => {
            for note in record::decode_notes(bytes) {
                mailbox.restore_note(note?);
            }
        }
        record::IDS => {
            for id in record::decode_ids(bytes) {
                let (offset, id) = id?;
                mailbox.restore_id(offset, id);
            }
        }
        _ => return Err(Malformed { what: "record" }),
    }
    Ok(())
}

/// Decodes the bytes of a write.
fn written(offset: u64, bytes: &[u8]) -> Result<NewMessage<'_>, Malformed> {
    let write = record::Write::decode(bytes)?;
    Ok(NewMessage {
        offset,
        id: write.id,
        sender: write.sender,
        size: bytes.len() as u32,
        expires_ms: write.expires_ms,
    })
}
