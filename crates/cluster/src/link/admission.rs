//! Admission of a member: the part of a handshake in which each side shows the other what it has
//! recorded of it, and then what it has on disk.
//!
//! Both sides send two pieces, little-endian: `size u32 | crc32c u32 | content`. The first one is the
//! sender's [record](super::records) of the receiver, the second one a statement of the sender's
//! disk. The statement is made after the record has arrived. So the statement has everything that the
//! record has, also if reports arrive on other connections meanwhile, unless the disk has lost data.
//! Both sides then know both results.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use net::{Sink, Stream};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use super::handshake::{self, HANDSHAKE_MAX, HandshakeError};
use super::hello::Identity;
use super::message::malformed;
use super::records::{
    DiskState, OutdatedError, Record, SIZE_MAX, get_record, get_statement, put_record,
    put_statement,
};
use super::reports::Reports;
use crate::raft::ShardLog;

/// This node comes with less than it has reported to another member, and takes no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {id} runs from an old copy of its data, or its disk has lost some: {error}")]
pub struct Outdated {
    /// This node.
    pub id: u64,
    /// The member that has the record.
    pub by: u64,
    /// The missing vote or block.
    pub error: OutdatedError,
}

/// The admission of other members, and the state by which they admit this node.
pub(crate) struct Admission {
    own: Identity,
    logs: Vec<Arc<ShardLog>>,
    pub(super) reports: Arc<Reports>,
    /// The reason for which this node takes no part in the consensus.
    outdated: watch::Sender<Option<Outdated>>,
    /// The members that this node does not admit.
    refused: Mutex<BTreeMap<u64, OutdatedError>>,
}

impl Admission {
    /// Creates the admission of a node, of which no member has refused anything.
    pub(crate) fn new(own: Identity, logs: Vec<Arc<ShardLog>>, reports: Arc<Reports>) -> Admission {
        Admission {
            own,
            logs,
            reports,
            outdated: watch::Sender::default(),
            refused: Mutex::default(),
        }
    }

    /// Returns what this node has on disk, by shard.
    pub(crate) fn statement(&self) -> Vec<DiskState> {
        let state = |log: &Arc<ShardLog>| {
            let (vote, last) = log.on_disk();
            DiskState { vote, last }
        };
        self.logs.iter().map(state).collect()
    }

    /// Returns why this node takes no part, if a member has found that out.
    pub(crate) fn outdated(&self) -> watch::Receiver<Option<Outdated>> {
        self.outdated.subscribe()
    }

    /// Checks that this node takes part.
    pub(super) fn check_own(&self) -> Result<(), HandshakeError> {
        let outdated = *self.outdated.borrow();
        outdated.map_or(Ok(()), |it| Err(it.into()))
    }

    /// Returns the members that this node does not admit, and why.
    pub(crate) fn refused(&self) -> BTreeMap<u64, OutdatedError> {
        self.refused.lock().clone()
    }

    /// Admits a member whose hello has proved that it knows the key.
    pub(super) async fn admit(
        &self,
        stream: &mut Stream,
        peer: Identity,
    ) -> Result<(), HandshakeError> {
        let exchanging = self.exchange(stream, peer.id);
        let exchanged = timeout(HANDSHAKE_MAX, exchanging).await;
        let [own, theirs] = exchanged.map_err(handshake::timed_out)??;
        if let Err(error) = own.record.check(self.own.life, &own.statement) {
            let outdated = Outdated {
                id: self.own.id,
                by: peer.id,
                error,
            };
            self.outdated.send_replace(Some(outdated));
        }
        self.check_own()?;
        if let Err(error) = theirs.record.check(peer.life, &theirs.statement) {
            self.refused.lock().insert(peer.id, error);
            return Err(HandshakeError::PeerOutdated { id: peer.id, error });
        }
        self.refused.lock().remove(&peer.id);
        self.reports.note(peer.id, |record| {
            record.note_life(peer.life) | record.note_statement(&theirs.statement)
        });
        Ok(())
    }

    /// Returns this node's statement and the peer's, each with the record that it must satisfy.
    async fn exchange(&self, stream: &mut Stream, peer: u64) -> io::Result<[Stated; 2]> {
        let of_peer = self.reports.record(peer);
        let mut piece = Vec::new();
        put_record(&mut piece, &of_peer);
        put(&*stream.sink, &piece).await?;
        let of_own = get_record(get(stream).await?)?;
        let statement = self.statement();
        piece.clear();
        put_statement(&mut piece, &statement);
        put(&*stream.sink, &piece).await?;
        let theirs = get_statement(get(stream).await?)?;
        let stated = |record, statement| Stated { record, statement };
        Ok([stated(of_own, statement), stated(of_peer, theirs)])
    }
}

/// A statement, and the record that it must satisfy.
struct Stated {
    record: Record,
    statement: Vec<DiskState>,
}

async fn put(sink: &dyn Sink, piece: &[u8]) -> io::Result<()> {
    let mut framed = (piece.len() as u32).to_le_bytes().to_vec();
    framed.extend_from_slice(&crc32c::crc32c(piece).to_le_bytes());
    framed.extend_from_slice(piece);
    net::write_all(sink, &framed).await
}

async fn get(stream: &mut Stream) -> io::Result<Bytes> {
    let size: [u8; 4] = handshake::read(&mut *stream.source).await?;
    let crc: [u8; 4] = handshake::read(&mut *stream.source).await?;
    let size = u32::from_le_bytes(size) as usize;
    if size > SIZE_MAX {
        return Err(malformed());
    }
    let mut piece = vec![0; size];
    net::read_exact(&mut *stream.source, &mut piece).await?;
    match crc32c::crc32c(&piece) == u32::from_le_bytes(crc) {
        true => Ok(piece.into()),
        false => Err(malformed()),
    }
}
