//! The clients of the nodes: writes to every node that leads, directly and through its service, and
//! reads at every node.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::{Leadership, Node, stall};
use journal::{
    AppendError, Appended, Journal, ReadLimit, Reign, ShardId, Stage, Status, StreamId, Ticket,
};
use parking_lot::Mutex;
use tokio::time::Duration;

use crate::history::{COUNTED, PAYLOAD_SIZE, STREAMS, numbers};
use crate::world::{Member, SHARDS, World};

/// Time limit of a hand-over.
const HAND_OVER_MAX: Duration = Duration::from_secs(3);

/// An append whose outcome is not known.
pub(crate) struct Waiting {
    pub(crate) id: u64,
    starts: u64,
    ticket: Ticket,
    stream: StreamId,
    offset: u64,
    payload: u64,
    /// Number of disks that the block must be on.
    quorum: usize,
}

/// The service of a node that leads all shards: it counts the records of some streams, which it has
/// read when it was opened, and writes the count into each record.
pub(crate) struct Service {
    journal: Journal,
    counts: BTreeMap<(u16, u64), u64>,
}

impl Service {
    fn open(journal: Journal) -> Service {
        let mut counts = BTreeMap::new();
        for shard in (0..SHARDS).map(ShardId) {
            for stream in COUNTED {
                let next = journal
                    .stream(shard, stream)
                    .map_or(0, |it| it.next_durable);
                let count = match next.checked_sub(1) {
                    Some(newest) => newest_count(&journal, shard, stream, newest),
                    None => 0,
                };
                counts.insert((shard.0, stream.0), count);
            }
        }
        Service { journal, counts }
    }
}

/// Returns the count after the newest record of a stream.
fn newest_count(journal: &Journal, shard: ShardId, stream: StreamId, newest: u64) -> u64 {
    let limit = ReadLimit {
        records: 1,
        bytes: usize::MAX,
    };
    let read = journal.read(shard, stream, newest, limit).unwrap();
    numbers(&read.records[0].payload).1 + 1
}

/// Opens the service of a node whenever it leads all shards, and hands over while the disk hangs.
pub(crate) async fn serve(
    node: Arc<Node>,
    journal: Arc<Journal>,
    service: Arc<Mutex<Option<Service>>>,
) {
    let mut leadership = Leadership::new(node.clone());
    loop {
        let reigns = leadership.next().await;
        *service.lock() = Some(Service::open(journal.in_reigns(&reigns)));
        loop {
            tokio::select! {
                () = node.end_of_any(&reigns) => break,
                () = node.loss_of_quorum() => break,
                () = stall(&journal) => node.hand_over(HAND_OVER_MAX).await,
            }
        }
        *service.lock() = None;
    }
}

impl Member {
    fn reign(&self, shard: ShardId) -> Option<Reign> {
        let running = self.running.as_ref()?;
        let reign = *running.node.reigns(shard).borrow();
        reign.map(|(reign, _)| reign)
    }
}

impl World {
    /// Returns a node that believes that it leads a shard.
    pub(crate) fn leader(&self, shard: ShardId) -> Option<u64> {
        let is_leader = |it: &&Member| it.reign(shard).is_some();
        self.members.iter().find(is_leader).map(|it| it.id)
    }

    /// Writes to every node that leads a shard, and reads at some node.
    pub(crate) fn use_nodes(&mut self) {
        let shard = ShardId(self.rng.u16(..SHARDS));
        for place in 0..self.members.len() {
            self.write(place, shard);
            self.write_counted(place, shard);
        }
        self.read();
    }

    fn payload(&mut self, shard: ShardId, stream: StreamId, count: u64) -> Vec<u8> {
        self.payloads += 1;
        let mut payload = vec![0; self.rng.usize(PAYLOAD_SIZE..400)];
        payload[..8].copy_from_slice(&self.payloads.to_le_bytes());
        payload[8..16].copy_from_slice(&count.to_le_bytes());
        let place = (shard.0, stream.0);
        self.history.written.insert(self.payloads, place);
        payload
    }

    fn write(&mut self, place: usize, shard: ShardId) {
        if self.members[place].reign(shard).is_none() {
            return;
        }
        for _ in 0..self.rng.usize(1..4) {
            let stream = StreamId(self.rng.u64(..STREAMS));
            let payload = self.payload(shard, stream, 0);
            let member = &self.members[place];
            let Some(running) = &member.running else {
                return;
            };
            let mut guard = running.journal.lock(shard, member.now_ms());
            let appended = guard.append(stream, None, 0, &payload);
            drop(guard);
            if !self.wait_for(place, stream, appended) {
                return;
            }
        }
    }

    /// Lets the service of a node write, if it is open.
    fn write_counted(&mut self, place: usize, shard: ShardId) {
        let Some(running) = &self.members[place].running else {
            return;
        };
        let service = running.service.clone();
        let mut service = service.lock();
        let Some(service) = &mut *service else {
            return;
        };
        let stream = *self.rng.choice(&COUNTED).unwrap();
        let count = service.counts.get_mut(&(shard.0, stream.0)).unwrap();
        let payload = self.payload(shard, stream, *count);
        let now_ms = self.members[place].now_ms();
        let mut guard = service.journal.lock(shard, now_ms);
        let appended = guard.append(stream, None, 0, &payload);
        drop(guard);
        if self.wait_for(place, stream, appended) {
            *count += 1;
        }
    }

    /// Waits for the outcome of an append. Returns false if nothing was appended.
    fn wait_for(
        &mut self,
        place: usize,
        stream: StreamId,
        appended: Result<Appended, AppendError>,
    ) -> bool {
        let member = &self.members[place];
        let running = member.running.as_ref().unwrap();
        let appended = match appended {
            Ok(appended) => appended,
            Err(AppendError::Moved | AppendError::Full) => return false,
            Err(AppendError::DiskFull | AppendError::Failed) => return false,
            Err(error) => panic!("{error}"),
        };
        let shard = appended.ticket.shard;
        self.waiting.push(Waiting {
            id: member.id,
            starts: member.starts,
            ticket: appended.ticket,
            stream,
            offset: appended.offset,
            payload: self.payloads,
            quorum: running.node.status(shard).voters.len() / 2 + 1,
        });
        true
    }

    /// Reads some records at any node, a leader or not.
    fn read(&mut self) {
        let place = self.rng.usize(..self.members.len());
        let Some(running) = &self.members[place].running else {
            return;
        };
        if running.disk.lock().has_failed {
            return;
        }
        let shard = ShardId(self.rng.u16(..SHARDS));
        let all: Vec<_> = (0..STREAMS).map(StreamId).chain(COUNTED).collect();
        let stream = *self.rng.choice(&all).unwrap();
        let journal = running.journal.clone();
        let next = journal
            .stream(shard, stream)
            .map_or(0, |it| it.next_durable);
        // Mostly the newest ones.
        let from = match self.rng.bool() {
            true => next.saturating_sub(self.rng.u64(..10)),
            false => self.rng.u64(..=next),
        };
        self.history.check_read(&journal, shard, stream, from);
    }

    /// Looks at the outcomes of appends.
    pub(crate) fn check_outcomes(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for one in waiting {
            let member = self.members.iter().find(|it| it.id == one.id);
            let member = member.filter(|it| it.starts == one.starts);
            let Some(running) = member.and_then(|it| it.running.as_ref()) else {
                continue;
            };
            match running.journal.status(one.ticket) {
                Status::Pending => self.waiting.push(one),
                Status::Durable => {
                    let (shard, index) = (one.ticket.shard, one.ticket.index);
                    let committed = running.journal.last(shard, Stage::Committed);
                    assert!(index <= committed, "{:?} was acked", one.ticket);
                    if self.rng.u8(..self.quorum_checks) == 0 {
                        self.check_quorum(&one);
                    }
                    let place = (shard.0, one.stream.0, one.offset);
                    let earlier = self.history.acked.insert(place, one.payload);
                    assert_eq!(earlier, None, "{place:?} was acked twice");
                }
                Status::Moved => drop(self.history.moved.insert(one.payload)),
                Status::Cut | Status::Failed => {}
            }
        }
    }

    /// Checks that an acknowledged block would survive a power failure of all nodes on a quorum.
    fn check_quorum(&self, acked: &Waiting) {
        let has_block = |member: &&Member| {
            member.has_on_disk(acked.ticket, acked.stream, acked.offset, acked.payload)
        };
        let count = self.members.iter().filter(has_block).count();
        let (quorum, ticket) = (acked.quorum, acked.ticket);
        assert!(count >= quorum, "{ticket:?} was acked on {count} disks");
    }
}
