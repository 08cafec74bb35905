//! Becoming a member: a node without data asks a member, and the leader sends it an id and an image of
//! its journal, from which it starts. The rest comes as log.
//!
//! After the handshake both sides send pieces, little-endian: `size u32 | crc32c u32 | kind u8 |
//! content`. The checksum covers kind and content.
//!
//! ```text
//! 1 request    newcomer: name and addresses, each: size u32, bytes
//! 2 elsewhere  address of the leader
//! 3 refused    reason
//! 4 accepted   cluster u64 | id u64
//! 5 file       path below the journal's directory
//! 6 data       the next bytes of the file
//! 7 end        of the image
//! ```

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use journal::disk::{Disk, File};
use net::{Sink, Stream};
use tokio::time::timeout;

use super::hello::Identity;
use super::peers::Dialer;
use super::{Channel, HandshakeError, Key, handshake};
use crate::member::Addresses;
use crate::raft::{get_addresses, put_addresses};

/// Bytes of a piece at most.
const PIECE_SIZE_MAX: usize = (1 << 20) + 16;

/// Bytes of data in a piece.
const DATA_SIZE: u64 = 1 << 20;

/// Time limit of a piece. Making the image may take long.
const PIECE_MAX: Duration = Duration::from_secs(120);

/// How often another node is asked because the one before does not lead.
const HOPS_MAX: usize = 5;

/// Directories of a journal, from the outermost.
const DIRECTORIES: [&str; 3] = ["", "line", "extents"];

const REQUEST: u8 = 1;
const ELSEWHERE: u8 = 2;
const REFUSED: u8 = 3;
const ACCEPTED: u8 = 4;
const FILE: u8 = 5;
const DATA: u8 = 6;
const END: u8 = 7;

/// An accepted node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The cluster.
    pub cluster: u64,
    /// The id of the new member.
    pub id: u64,
    /// Bytes of the image.
    pub bytes: u64,
}

/// A node that has not become a member.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// No connection to a member.
    #[error("{address}: {error}")]
    Connection {
        /// The address that was dialed.
        address: String,
        /// The error.
        error: HandshakeError,
    },
    /// The connection broke, or a piece is malformed or came too late.
    #[error("the transfer has failed: {0}")]
    Io(#[from] io::Error),
    /// The leader refuses.
    #[error("{reason}")]
    Refused {
        /// The reason.
        reason: String,
    },
    /// No node that was asked leads the cluster.
    #[error("no leader was found")]
    NoLeader,
}

/// An image of a journal. It is removed when it is dropped.
pub trait Image: Send {
    /// Returns the files of the image, as those of a journal.
    fn disk(&self) -> &dyn Disk;
}

/// The answer to a node that asks to become a member.
pub(crate) enum JoinAnswer {
    /// The leader is at this address; empty if it is unknown.
    Elsewhere(String),
    Refused(String),
    Accepted {
        cluster: u64,
        id: u64,
    },
}

/// Asks the member at `contact`, or the leader that it names, to become a member. Writes the image of
/// the journal to `target`, which must be empty, and calls `progress` with the bytes so far.
pub async fn join(
    dialer: &dyn Dialer,
    contact: &str,
    key: &Key,
    addresses: &Addresses,
    target: Arc<dyn Disk>,
    mut progress: impl FnMut(u64),
) -> Result<Joined, JoinError> {
    let mut address = contact.to_owned();
    for _ in 0..HOPS_MAX {
        let mut stream = connect(dialer, &address, key).await?;
        let mut request = vec![REQUEST];
        put_addresses(addresses, &mut request);
        put(&*stream.sink, &request).await?;
        let mut answer = get(&mut stream).await?;
        match answer.try_get_u8().map_err(malformed)? {
            ACCEPTED => {
                let cluster = answer.try_get_u64_le().map_err(malformed)?;
                let id = answer.try_get_u64_le().map_err(malformed)?;
                let bytes = receive(&mut stream, &*target, &mut progress).await?;
                return Ok(Joined { cluster, id, bytes });
            }
            ELSEWHERE => {
                let leader = text(answer)?;
                match leader.is_empty() {
                    true => tokio::time::sleep(Duration::from_secs(1)).await,
                    false => address = leader,
                }
            }
            REFUSED => {
                let reason = text(answer)?;
                return Err(JoinError::Refused { reason });
            }
            _ => return Err(malformed(()).into()),
        }
    }
    Err(JoinError::NoLeader)
}

async fn connect(dialer: &dyn Dialer, address: &str, key: &Key) -> Result<Stream, JoinError> {
    let own = Identity {
        cluster: 0,
        id: 0,
        life: 0,
    };
    let greeted = async {
        let mut stream = dialer.dial(address).await?;
        handshake::greet(&mut stream, own, 0, Channel::Join, key).await?;
        Ok(stream)
    };
    greeted.await.map_err(|error| JoinError::Connection {
        address: address.to_owned(),
        error,
    })
}

/// Writes the files of an image.
async fn receive(
    stream: &mut Stream,
    target: &dyn Disk,
    progress: &mut impl FnMut(u64),
) -> Result<u64, JoinError> {
    for directory in DIRECTORIES {
        target.create_dir(directory)?;
    }
    let mut file: Option<(Arc<dyn File>, u64)> = None;
    let mut bytes = 0;
    loop {
        let mut piece = get(stream).await?;
        match (piece.try_get_u8().map_err(malformed)?, &mut file) {
            (FILE, last) => {
                if let Some((file, _)) = last.take() {
                    file.sync_all()?;
                }
                let path = text(piece)?;
                check_path(&path)?;
                *last = Some((target.create(&path)?, 0));
            }
            (DATA, Some((file, size))) => {
                journal::disk::write_all(&**file, &piece, *size)?;
                *size += piece.len() as u64;
                bytes += piece.len() as u64;
                progress(bytes);
            }
            (END, last) => {
                if let Some((file, _)) = last.take() {
                    file.sync_all()?;
                }
                for directory in DIRECTORIES.iter().rev() {
                    target.sync_dir(directory)?;
                }
                return Ok(bytes);
            }
            _ => return Err(malformed(()).into()),
        }
    }
}

/// Checks that a path is one of a journal.
fn check_path(path: &str) -> io::Result<()> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_name = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    let is_known = DIRECTORIES.contains(&directory);
    match is_known && !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_name) {
        true => Ok(()),
        false => Err(malformed(())),
    }
}

/// Reads the request of a newcomer.
pub(crate) async fn read_request(stream: &mut Stream) -> io::Result<Addresses> {
    let mut request = get(stream).await?;
    if request.try_get_u8().map_err(malformed)? != REQUEST {
        return Err(malformed(()));
    }
    let addresses = get_addresses(&mut request)?;
    match request.is_empty() {
        true => Ok(addresses),
        false => Err(malformed(())),
    }
}

/// Answers the request of a newcomer.
pub(crate) async fn answer(sink: &dyn Sink, answer: &JoinAnswer) -> io::Result<()> {
    let mut out = Vec::new();
    match answer {
        JoinAnswer::Elsewhere(address) => {
            out.put_u8(ELSEWHERE);
            out.extend_from_slice(address.as_bytes());
        }
        JoinAnswer::Refused(reason) => {
            out.put_u8(REFUSED);
            out.extend_from_slice(reason.as_bytes());
        }
        JoinAnswer::Accepted { cluster, id } => {
            out.put_u8(ACCEPTED);
            out.put_u64_le(*cluster);
            out.put_u64_le(*id);
        }
    }
    put(sink, &out).await
}

/// Sends the files of an image.
pub(crate) async fn send_image(sink: &dyn Sink, image: &dyn Disk) -> io::Result<()> {
    for directory in DIRECTORIES {
        for name in image.list(directory)? {
            let path = match directory {
                "" => name,
                directory => format!("{directory}/{name}"),
            };
            if DIRECTORIES.contains(&&*path) {
                continue;
            }
            let file = image.open(&path)?;
            put(sink, &[&[FILE], path.as_bytes()].concat()).await?;
            let size = file.size()?;
            let mut offset = 0;
            while offset < size {
                let mut piece = vec![DATA; 1 + DATA_SIZE.min(size - offset) as usize];
                file.read_at(&mut piece[1..], offset)?;
                put(sink, &piece).await?;
                offset += piece.len() as u64 - 1;
            }
        }
    }
    put(sink, &[END]).await?;
    sink.finish();
    Ok(())
}

async fn put(sink: &dyn Sink, piece: &[u8]) -> io::Result<()> {
    let mut framed = Vec::with_capacity(piece.len() + 8);
    framed.put_u32_le(piece.len() as u32);
    framed.put_u32_le(crc32c::crc32c(piece));
    framed.extend_from_slice(piece);
    let written = net::write_all(sink, &framed);
    timeout(PIECE_MAX, written).await.map_err(timed_out)?
}

async fn get(stream: &mut Stream) -> io::Result<Bytes> {
    let reading = async {
        let head: [u8; 8] = handshake::read(&mut *stream.source).await?;
        let [size @ .., _, _, _, _] = head;
        let [_, _, _, _, crc @ ..] = head;
        let size = u32::from_le_bytes(size) as usize;
        if size > PIECE_SIZE_MAX {
            return Err(malformed(()));
        }
        let mut piece = vec![0; size];
        net::read_exact(&mut *stream.source, &mut piece).await?;
        match crc32c::crc32c(&piece) == u32::from_le_bytes(crc) {
            true => Ok(Bytes::from(piece)),
            false => Err(malformed(())),
        }
    };
    timeout(PIECE_MAX, reading).await.map_err(timed_out)?
}

fn text(bytes: Bytes) -> io::Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(malformed)
}

fn timed_out(_: tokio::time::error::Elapsed) -> io::Error {
    io::ErrorKind::TimedOut.into()
}

fn malformed<E>(_: E) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed piece")
}
