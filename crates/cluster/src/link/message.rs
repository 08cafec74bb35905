//! Bodies of frames, little-endian.
//!
//! ```text
//! vote           term u64 | node u64 | committed u8
//! log id         0 u8, or 1 u8 | term u64 | index u64
//! entry          term u64 | index u64 | time u64 | kind u8 | 0: nothing; 1, 2: size u32, bytes
//! append         vote | previous log id | committed log id | count u32 | entries
//! append answer  0 u8: success; 1 u8 | log id: partial; 2 u8: conflict; 3 u8 | vote: higher vote
//! vote request   vote | last log id | leadership transfer u8
//! vote answer    vote | last log id | granted u8
//! transfer       vote | node u64 | last log id
//! transfer answer   accepted u8
//! report         statement
//! report answer  time u64
//! ```
//!
//! Kind 1 of an entry is a block of records, kind 2 a membership. A time is in milliseconds since
//! 1970. A statement is as in [records](super::records).

use std::io;

use bytes::{Buf, Bytes};
use openraft::EntryPayload;
use openraft::raft::{TransferLeaderRequest, VoteRequest, VoteResponse};

use crate::raft::{
    AppendRequest, AppendResponse, Block, Entry, LogId, Types, Vote, decode_membership,
    encode_membership, log_id,
};

/// Bytes of an entry at least.
const ENTRY_SIZE_MIN: usize = 25;

/// Bytes of a block from which on it stays in the receive buffer. Larger than what is read while no
/// large frame is incomplete.
const SLICE_SIZE_MIN: usize = 64 << 10;

const BLANK: u8 = 0;
const BLOCK: u8 = 1;
const MEMBERS: u8 = 2;

/// Appends an append request.
pub(crate) fn put_append(out: &mut Vec<u8>, request: &AppendRequest) {
    put_vote(out, &request.vote);
    put_log_id(out, request.prev_log_id);
    put_log_id(out, request.leader_commit);
    put_size(out, request.entries.len());
    for entry in &request.entries {
        put_entry(out, entry);
    }
}

/// Decodes an append request.
pub(crate) fn get_append(mut body: Bytes) -> io::Result<AppendRequest> {
    let vote = get_vote(&mut body)?;
    let prev_log_id = get_log_id(&mut body)?;
    let leader_commit = get_log_id(&mut body)?;
    let count = get_size(&mut body)?;
    let mut entries = Vec::with_capacity(count.min(body.len() / ENTRY_SIZE_MIN));
    for _ in 0..count {
        entries.push(get_entry(&mut body)?);
    }
    end(&body)?;
    Ok(AppendRequest {
        vote,
        prev_log_id,
        entries,
        leader_commit,
    })
}

/// Appends the answer to an append request.
pub(crate) fn put_append_answer(out: &mut Vec<u8>, answer: &AppendResponse) {
    match answer {
        AppendResponse::Success => out.push(0),
        AppendResponse::PartialSuccess(log_id) => {
            out.push(1);
            put_log_id(out, *log_id);
        }
        AppendResponse::Conflict => out.push(2),
        AppendResponse::HigherVote(vote) => {
            out.push(3);
            put_vote(out, vote);
        }
    }
}

/// Decodes the answer to an append request.
pub(crate) fn get_append_answer(mut body: Bytes) -> io::Result<AppendResponse> {
    let answer = match get_u8(&mut body)? {
        0 => AppendResponse::Success,
        1 => AppendResponse::PartialSuccess(get_log_id(&mut body)?),
        2 => AppendResponse::Conflict,
        3 => AppendResponse::HigherVote(get_vote(&mut body)?),
        _ => return Err(malformed()),
    };
    end(&body)?;
    Ok(answer)
}

/// Appends a vote request.
pub(crate) fn put_vote_request(out: &mut Vec<u8>, request: &VoteRequest<Types>) {
    put_vote(out, &request.vote);
    put_log_id(out, request.last_log_id);
    out.push(request.leadership_transfer.into());
}

/// Decodes a vote request.
pub(crate) fn get_vote_request(mut body: Bytes) -> io::Result<VoteRequest<Types>> {
    let mut request = VoteRequest::new(get_vote(&mut body)?, get_log_id(&mut body)?);
    request.leadership_transfer = get_bool(&mut body)?;
    end(&body)?;
    Ok(request)
}

/// Appends the answer to a vote request.
pub(crate) fn put_vote_answer(out: &mut Vec<u8>, answer: &VoteResponse<Types>) {
    put_vote(out, &answer.vote);
    put_log_id(out, answer.last_log_id);
    out.push(answer.vote_granted.into());
}

/// Decodes the answer to a vote request.
pub(crate) fn get_vote_answer(mut body: Bytes) -> io::Result<VoteResponse<Types>> {
    let (vote, last) = (get_vote(&mut body)?, get_log_id(&mut body)?);
    let answer = VoteResponse::new(vote, last, get_bool(&mut body)?);
    end(&body)?;
    Ok(answer)
}

/// Appends a request to take over the leadership.
pub(crate) fn put_transfer(out: &mut Vec<u8>, request: &TransferLeaderRequest<Types>) {
    put_vote(out, request.from_leader());
    out.extend_from_slice(&request.to_node_id().to_le_bytes());
    put_log_id(out, request.last_log_id().copied());
}

/// Decodes a request to take over the leadership.
pub(crate) fn get_transfer(mut body: Bytes) -> io::Result<TransferLeaderRequest<Types>> {
    let (vote, to) = (get_vote(&mut body)?, get_u64(&mut body)?);
    let request = TransferLeaderRequest::new(vote, to, get_log_id(&mut body)?);
    end(&body)?;
    Ok(request)
}

/// Appends the answer to a request to take over the leadership.
pub(crate) fn put_transfer_answer(out: &mut Vec<u8>, is_accepted: bool) {
    out.push(is_accepted.into());
}

/// Decodes the answer to a request to take over the leadership.
pub(crate) fn get_transfer_answer(mut body: Bytes) -> io::Result<bool> {
    let is_accepted = get_bool(&mut body)?;
    end(&body)?;
    Ok(is_accepted)
}

/// Appends the answer to a report: the time of the node that answers.
pub(crate) fn put_report_answer(out: &mut Vec<u8>, now_ms: u64) {
    out.extend_from_slice(&now_ms.to_le_bytes());
}

/// Decodes the answer to a report.
pub(crate) fn get_report_answer(mut body: Bytes) -> io::Result<u64> {
    let now_ms = get_u64(&mut body)?;
    end(&body)?;
    Ok(now_ms)
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.extend_from_slice(&entry.log_id.leader_id.term.to_le_bytes());
    out.extend_from_slice(&entry.log_id.index.to_le_bytes());
    out.extend_from_slice(&entry.time_ms.unwrap_or_default().to_le_bytes());
    match &entry.payload {
        EntryPayload::Blank => out.push(BLANK),
        EntryPayload::Normal(block) => {
            out.push(BLOCK);
            put_size(out, block.body.len());
            out.extend_from_slice(&block.body);
        }
        EntryPayload::Membership(membership) => {
            out.push(MEMBERS);
            let start = out.len();
            put_size(out, 0);
            encode_membership(entry.log_id, membership, out);
            let size = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&size.to_le_bytes());
        }
    }
}

fn get_entry(body: &mut Bytes) -> io::Result<Entry> {
    let log_id = log_id(get_u64(body)?, get_u64(body)?);
    let time_ms = get_u64(body)?;
    let payload = match get_u8(body)? {
        BLANK => EntryPayload::Blank,
        BLOCK => EntryPayload::Normal(Block {
            time_ms,
            body: owned(get_bytes(body)?),
        }),
        MEMBERS => {
            let (at, membership) = decode_membership(get_bytes(body)?)?;
            if at != log_id {
                return Err(malformed());
            }
            EntryPayload::Membership(membership)
        }
        _ => return Err(malformed()),
    };
    Ok(Entry {
        log_id,
        time_ms: Some(time_ms),
        payload,
    })
}

/// Returns bytes that hold little more memory than their own: a slice holds its whole receive buffer
/// as long as the block is in memory.
fn owned(slice: Bytes) -> Bytes {
    match slice.len() < SLICE_SIZE_MIN {
        true => Bytes::copy_from_slice(&slice),
        // The receive buffer was made for its frame.
        false => slice,
    }
}

pub(super) fn put_vote(out: &mut Vec<u8>, vote: &Vote) {
    out.extend_from_slice(&vote.leader_id.term.to_le_bytes());
    out.extend_from_slice(&vote.leader_id.voted_for.to_le_bytes());
    out.push(vote.committed.into());
}

pub(super) fn get_vote(body: &mut Bytes) -> io::Result<Vote> {
    let (term, node) = (get_u64(body)?, get_u64(body)?);
    Ok(match get_bool(body)? {
        false => Vote::new(term, node),
        true => Vote::new_committed(term, node),
    })
}

pub(super) fn put_log_id(out: &mut Vec<u8>, log_id: Option<LogId>) {
    out.push(log_id.is_some().into());
    if let Some(log_id) = log_id {
        out.extend_from_slice(&log_id.leader_id.term.to_le_bytes());
        out.extend_from_slice(&log_id.index.to_le_bytes());
    }
}

pub(super) fn get_log_id(body: &mut Bytes) -> io::Result<Option<LogId>> {
    Ok(match get_bool(body)? {
        false => None,
        true => Some(log_id(get_u64(body)?, get_u64(body)?)),
    })
}

fn put_size(out: &mut Vec<u8>, size: usize) {
    out.extend_from_slice(&(size as u32).to_le_bytes());
}

fn get_size(body: &mut Bytes) -> io::Result<usize> {
    let size = body.try_get_u32_le().map_err(|_| malformed())?;
    Ok(size as usize)
}

fn get_bytes(body: &mut Bytes) -> io::Result<Bytes> {
    let size = get_size(body)?;
    if size > body.len() {
        return Err(malformed());
    }
    Ok(body.split_to(size))
}

pub(super) fn get_u64(body: &mut Bytes) -> io::Result<u64> {
    body.try_get_u64_le().map_err(|_| malformed())
}

fn get_u8(body: &mut Bytes) -> io::Result<u8> {
    body.try_get_u8().map_err(|_| malformed())
}

pub(super) fn get_bool(body: &mut Bytes) -> io::Result<bool> {
    match get_u8(body)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(malformed()),
    }
}

pub(super) fn end(body: &Bytes) -> io::Result<()> {
    match body.is_empty() {
        true => Ok(()),
        false => Err(malformed()),
    }
}

pub(super) fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed frame")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::{Addresses, Member};
    use crate::raft::members_block;

    fn request() -> AppendRequest {
        let member = |id| Member {
            id,
            addresses: Addresses {
                link: format!("host-{id}:7402"),
                ..Addresses::default()
            },
        };
        let first = members_block(Default::default(), 0, &[member(1), member(2)], 5, 0);
        let members = first.unwrap().as_members().unwrap();
        let (_, membership) = decode_membership(members).unwrap();
        let block = Block {
            time_ms: 77,
            body: Bytes::from_static(b"records"),
        };
        let payloads = [
            EntryPayload::Membership(membership),
            EntryPayload::Blank,
            EntryPayload::Normal(block),
        ];
        let entry = |(index, payload)| Entry {
            log_id: log_id(3, index),
            time_ms: Some(77),
            payload,
        };
        AppendRequest {
            vote: Vote::new_committed(3, 1),
            prev_log_id: Some(log_id(2, 6)),
            leader_commit: None,
            entries: (7..).zip(payloads).map(entry).collect(),
        }
    }

    fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        let mut out = Vec::new();
        encode(&mut out);
        out.into()
    }

    #[test]
    fn append_request_is_decoded_unchanged() {
        let bytes = encoded(|out| put_append(out, &request()));
        let decoded = get_append(bytes.clone()).unwrap();
        assert_eq!(decoded.entries, request().entries);
        assert_eq!(encoded(|out| put_append(out, &decoded)), bytes);
        for size in 0..bytes.len() {
            assert!(get_append(bytes.slice(..size)).is_err(), "{size}");
        }
    }

    #[test]
    fn append_request_has_the_published_bytes() {
        let request = AppendRequest {
            entries: request().entries.split_off(1),
            ..request()
        };
        let bytes = encoded(|out| put_append(out, &request));
        let number = |number: u64| number.to_le_bytes().to_vec();
        let expected = [
            [number(3), number(1), vec![1]].concat(),
            [vec![1], number(2), number(6)].concat(),
            vec![0],
            vec![2, 0, 0, 0],
            [number(3), number(8), number(77), vec![0]].concat(),
            [number(3), number(9), number(77), vec![1, 7, 0, 0, 0]].concat(),
            b"records".to_vec(),
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn answers_and_votes_are_decoded_unchanged() {
        let vote = Vote::new(9, 2);
        for answer in [
            AppendResponse::Success,
            AppendResponse::PartialSuccess(Some(log_id(1, 2))),
            AppendResponse::Conflict,
            AppendResponse::HigherVote(vote),
        ] {
            let bytes = encoded(|out| put_append_answer(out, &answer));
            assert_eq!(get_append_answer(bytes).unwrap(), answer);
        }
        let mut request = VoteRequest::new(vote, Some(log_id(4, 5)));
        request.leadership_transfer = true;
        let bytes = encoded(|out| put_vote_request(out, &request));
        assert_eq!(get_vote_request(bytes).unwrap(), request);
        let answer = VoteResponse::new(vote, None, true);
        let bytes = encoded(|out| put_vote_answer(out, &answer));
        assert_eq!(get_vote_answer(bytes).unwrap(), answer);
        let request = TransferLeaderRequest::new(vote, 3, Some(log_id(4, 5)));
        let bytes = encoded(|out| put_transfer(out, &request));
        assert_eq!(get_transfer(bytes).unwrap(), request);
    }
}
