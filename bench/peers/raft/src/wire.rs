//! Frames between nodes, little-endian.
//!
//! ```text
//!  0        4      5       6       8                16
//! +--------+------+-------+-------+----------------+- - - - - -+
//! | length | kind | group |   0   |       id       |   body    |
//! |  u32   |  u8  |  u8   |  u16  |      u64       |  length   |
//! +--------+------+-------+-------+----------------+- - - - - -+
//! ```
//!
//! A reply has the kind, the group and the id of its request.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bytes::{Buf, Bytes, BytesMut};
use openraft::raft::{AppendEntriesResponse, VoteRequest, VoteResponse};
use openraft::{BasicNode, EntryPayload, Membership};

use crate::types::{AppendRequest, Block, Entry, LogId, Types, Vote, log_id};

/// Bytes of the header.
const HEADER_SIZE: usize = 16;
/// The longest body that is taken.
const BODY_SIZE_MAX: usize = 128 << 20;
/// The request that a frame carries, or that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Append = 1,
    Vote = 2,
    PreVote = 3,
}

/// A frame without its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) group: u8,
    pub(crate) id: u64,
}

impl Head {
    /// Appends a frame whose body `write` appends.
    pub(crate) fn frame(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&[self.kind as u8, self.group, 0, 0]);
        out.extend_from_slice(&self.id.to_le_bytes());
        write(out);
        let size = (out.len() - start - HEADER_SIZE) as u32;
        out[start..start + 4].copy_from_slice(&size.to_le_bytes());
    }
}

/// Takes the next complete frame off `input`. Makes room for the rest of an incomplete one.
pub(crate) fn next_frame(input: &mut BytesMut) -> io::Result<Option<(Head, Bytes)>> {
    let Some(header) = input.first_chunk::<HEADER_SIZE>() else {
        return Ok(None);
    };
    let [a, b, c, d, kind, group, _, _, id @ ..] = *header;
    let size = u32::from_le_bytes([a, b, c, d]) as usize;
    let kind = match kind {
        1 => Kind::Append,
        2 => Kind::Vote,
        3 => Kind::PreVote,
        _ => return Err(garbage()),
    };
    if size > BODY_SIZE_MAX {
        return Err(garbage());
    }
    if input.len() < HEADER_SIZE + size {
        input.reserve(HEADER_SIZE + size - input.len());
        return Ok(None);
    }
    input.advance(HEADER_SIZE);
    let head = Head {
        kind,
        group,
        id: u64::from_le_bytes(id),
    };
    Ok(Some((head, input.split_to(size).freeze())))
}

fn garbage() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame that no node sends")
}

/// Appends an append request.
pub(crate) fn put_append(out: &mut Vec<u8>, request: &AppendRequest) {
    put_vote(out, &request.vote);
    put_log_id(out, request.prev_log_id);
    put_log_id(out, request.leader_commit);
    put_u32(out, request.entries.len());
    for entry in &request.entries {
        put_entry(out, entry);
    }
}

/// Reads an append request; the bodies of blocks share its bytes.
pub(crate) fn get_append(mut body: Bytes) -> io::Result<AppendRequest> {
    let vote = get_vote(&mut body)?;
    let prev_log_id = get_log_id(&mut body)?;
    let leader_commit = get_log_id(&mut body)?;
    let count = get_u32(&mut body)?;
    // An entry has at least 17 bytes: a count that promises more than there are is not believed.
    let mut entries = Vec::with_capacity(count.min(body.len() / 17));
    for _ in 0..count {
        entries.push(get_entry(&mut body)?);
    }
    Ok(AppendRequest {
        vote,
        prev_log_id,
        entries,
        leader_commit,
    })
}

/// Appends the answer to an append request.
pub(crate) fn put_append_reply(out: &mut Vec<u8>, reply: &AppendEntriesResponse<Types>) {
    match reply {
        AppendEntriesResponse::Success => out.push(0),
        AppendEntriesResponse::PartialSuccess(log_id) => {
            out.push(1);
            put_log_id(out, *log_id);
        }
        AppendEntriesResponse::Conflict => out.push(2),
        AppendEntriesResponse::HigherVote(vote) => {
            out.push(3);
            put_vote(out, vote);
        }
    }
}

/// Reads the answer to an append request.
pub(crate) fn get_append_reply(mut body: Bytes) -> io::Result<AppendEntriesResponse<Types>> {
    Ok(match get_u8(&mut body)? {
        0 => AppendEntriesResponse::Success,
        1 => AppendEntriesResponse::PartialSuccess(get_log_id(&mut body)?),
        2 => AppendEntriesResponse::Conflict,
        3 => AppendEntriesResponse::HigherVote(get_vote(&mut body)?),
        _ => return Err(garbage()),
    })
}

/// Appends a vote request.
pub(crate) fn put_vote_request(out: &mut Vec<u8>, request: &VoteRequest<Types>) {
    put_vote(out, &request.vote);
    put_log_id(out, request.last_log_id);
    out.push(request.leadership_transfer.into());
}

/// Reads a vote request.
pub(crate) fn get_vote_request(mut body: Bytes) -> io::Result<VoteRequest<Types>> {
    let mut request = VoteRequest::new(get_vote(&mut body)?, get_log_id(&mut body)?);
    request.leadership_transfer = get_u8(&mut body)? != 0;
    Ok(request)
}

/// Appends the answer to a vote request.
pub(crate) fn put_vote_reply(out: &mut Vec<u8>, reply: &VoteResponse<Types>) {
    put_vote(out, &reply.vote);
    put_log_id(out, reply.last_log_id);
    out.push(reply.vote_granted.into());
}

/// Reads the answer to a vote request.
pub(crate) fn get_vote_reply(mut body: Bytes) -> io::Result<VoteResponse<Types>> {
    let (vote, last) = (get_vote(&mut body)?, get_log_id(&mut body)?);
    Ok(VoteResponse::new(vote, last, get_u8(&mut body)? != 0))
}

/// Appends an entry.
pub(crate) fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.extend_from_slice(&entry.log_id.leader_id.term.to_le_bytes());
    out.extend_from_slice(&entry.log_id.index.to_le_bytes());
    match &entry.payload {
        EntryPayload::Blank => out.push(0),
        EntryPayload::Normal(block) => {
            out.push(1);
            out.extend_from_slice(&block.number.to_le_bytes());
            put_u32(out, block.body.len());
            out.extend_from_slice(&block.body);
        }
        EntryPayload::Membership(membership) => {
            out.push(2);
            put_membership(out, membership);
        }
    }
}

fn get_entry(body: &mut Bytes) -> io::Result<Entry> {
    let (term, index) = (get_u64(body)?, get_u64(body)?);
    let payload = match get_u8(body)? {
        0 => EntryPayload::Blank,
        1 => {
            let number = get_u64(body)?;
            let size = get_u32(body)?;
            let body = take(body, size)?;
            EntryPayload::Normal(Block { number, body })
        }
        2 => EntryPayload::Membership(get_membership(body)?),
        _ => return Err(garbage()),
    };
    Ok(Entry {
        log_id: log_id(term, index),
        payload,
    })
}

fn put_membership(out: &mut Vec<u8>, membership: &Membership<u64, BasicNode>) {
    put_u32(out, membership.get_joint_config().len());
    for voters in membership.get_joint_config() {
        put_u32(out, voters.len());
        for id in voters {
            out.extend_from_slice(&id.to_le_bytes());
        }
    }
    put_u32(out, membership.nodes().count());
    for (id, node) in membership.nodes() {
        out.extend_from_slice(&id.to_le_bytes());
        put_u32(out, node.addr.len());
        out.extend_from_slice(node.addr.as_bytes());
    }
}

fn get_membership(body: &mut Bytes) -> io::Result<Membership<u64, BasicNode>> {
    let mut configs = Vec::new();
    for _ in 0..get_u32(body)? {
        let mut voters = BTreeSet::new();
        for _ in 0..get_u32(body)? {
            voters.insert(get_u64(body)?);
        }
        configs.push(voters);
    }
    let mut nodes = BTreeMap::new();
    for _ in 0..get_u32(body)? {
        let id = get_u64(body)?;
        let size = get_u32(body)?;
        let address = String::from_utf8(take(body, size)?.to_vec()).map_err(|_| garbage())?;
        nodes.insert(id, BasicNode::new(address));
    }
    Membership::new(configs, nodes).map_err(io::Error::other)
}

/// Appends a vote.
pub(crate) fn put_vote(out: &mut Vec<u8>, vote: &Vote) {
    out.extend_from_slice(&vote.leader_id.term.to_le_bytes());
    out.extend_from_slice(&vote.leader_id.voted_for.to_le_bytes());
    out.push(vote.committed.into());
}

fn get_vote(body: &mut Bytes) -> io::Result<Vote> {
    let (term, node) = (get_u64(body)?, get_u64(body)?);
    Ok(match get_u8(body)? {
        0 => Vote::new(term, node),
        _ => Vote::new_committed(term, node),
    })
}

fn put_log_id(out: &mut Vec<u8>, log_id: Option<LogId>) {
    out.push(log_id.is_some().into());
    if let Some(log_id) = log_id {
        out.extend_from_slice(&log_id.leader_id.term.to_le_bytes());
        out.extend_from_slice(&log_id.index.to_le_bytes());
    }
}

fn get_log_id(body: &mut Bytes) -> io::Result<Option<LogId>> {
    Ok(match get_u8(body)? {
        0 => None,
        _ => Some(log_id(get_u64(body)?, get_u64(body)?)),
    })
}

fn put_u32(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u32).to_le_bytes());
}

fn get_u32(body: &mut Bytes) -> io::Result<usize> {
    body.try_get_u32_le()
        .map(|number| number as usize)
        .map_err(|_| garbage())
}

fn get_u64(body: &mut Bytes) -> io::Result<u64> {
    body.try_get_u64_le().map_err(|_| garbage())
}

fn get_u8(body: &mut Bytes) -> io::Result<u8> {
    body.try_get_u8().map_err(|_| garbage())
}

fn take(body: &mut Bytes, size: usize) -> io::Result<Bytes> {
    if size > body.len() {
        return Err(garbage());
    }
    Ok(body.split_to(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> AppendRequest {
        let members = BTreeMap::from([(1, BasicNode::new("a:1")), (2, BasicNode::new("b:2"))]);
        let membership = Membership::new(vec![BTreeSet::from([1, 2])], members).unwrap();
        let block = Block {
            number: 9,
            body: Bytes::from_static(b"frames"),
        };
        let payloads = [
            EntryPayload::Membership(membership),
            EntryPayload::Blank,
            EntryPayload::Normal(block),
        ];
        AppendRequest {
            vote: Vote::new_committed(3, 1),
            prev_log_id: Some(log_id(2, 6)),
            leader_commit: None,
            entries: (7..)
                .zip(payloads)
                .map(|(index, payload)| Entry {
                    log_id: log_id(3, index),
                    payload,
                })
                .collect(),
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let mut bytes = Vec::new();
        put_append(&mut bytes, &request());
        let read = get_append(bytes.into()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", request()));
    }

    #[test]
    fn a_request_that_is_cut_is_an_error() {
        let mut bytes = Vec::new();
        put_append(&mut bytes, &request());
        for size in 0..bytes.len() {
            assert!(get_append(Bytes::copy_from_slice(&bytes[..size])).is_err());
        }
    }

    #[test]
    fn frames_are_whole_however_the_bytes_are_cut() {
        let mut sent = Vec::new();
        for id in 0..50 {
            let (kind, group) = (Kind::Append, id as u8);
            let head = Head { kind, group, id };
            head.frame(&mut sent, |out| {
                out.resize(out.len() + id as usize * 7, group)
            });
        }
        for cut in [1, 3, 16, 100, 5000] {
            let mut input = BytesMut::new();
            let mut next = 0;
            for piece in sent.chunks(cut) {
                input.extend_from_slice(piece);
                while let Some((head, body)) = next_frame(&mut input).unwrap() {
                    assert_eq!((head.id, body.len()), (next, next as usize * 7));
                    next += 1;
                }
            }
            assert_eq!(next, 50);
        }
    }
}
