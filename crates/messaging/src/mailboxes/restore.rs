//! Restoration of a mailbox from its stream.

use journal::ReadLimit;
use mailbox::record::{self, Malformed};
use mailbox::{Limits, Mailbox, NewMessage, Span};
use model::Name;
use store::{Kind, Location, Reach};

use super::Mailboxes;
use super::error::LoadError;
use super::pull::Pulls;
use super::slot::{Fetched, Instance, Methods, Progress, State};

/// Size of one read of a mailbox's stream.
const CHUNK: ReadLimit = ReadLimit {
    records: 4_096,
    bytes: 1 << 20,
};

impl Mailboxes {
    /// Restores a mailbox, which need not exist; `None` if its records are not within reach.
    pub(super) fn read_back(&self, base: &str, reach: Reach) -> Result<Option<State>, LoadError> {
        let options = &self.options;
        let mut mailbox = Mailbox::new(Limits {
            messages_max: options.messages_max,
            bytes_max: options.size_max,
            in_flight_max: options.in_flight_max,
            deliveries_max: options.deliveries_max,
        });
        let location = self.store.find(Kind::Mailbox, base);
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
            target: self.router.table.write().target(&name),
            stream,
            methods: Methods::default(),
            fetched: Fetched::default(),
            pulls: Pulls::default(),
            used_ns: self.platform.now_ns(),
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
        let start = self
            .store
            .journal
            .stream(shard, stream)
            .map_or(0, |it| it.start);
        let mut progress = Progress {
            span: Span::new(start),
            ticket: None,
        };
        let mut from = start;
        loop {
            let Some(read) = self.store.read_within(reach, location, from, CHUNK)? else {
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
            mailbox.restore_moved(written, record.offset, moved.state);
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
