//! Properties of the decoders of frames and hellos.

use bytes::{Bytes, BytesMut};
use openraft::entry::RaftEntry;

use super::frame::{FrameError, HEADER_SIZE, next_frame};
use super::hello::{HELLO_SIZE, Hello};
use super::message;
use super::records;
use crate::raft::{AppendRequest, Entry};

/// Bytes of a body in the checks at most.
const BODY_SIZE_MAX: usize = 4096;

/// Checks the decoders of bodies and of the hello. A body that is decoded is encoded unchanged.
pub(crate) fn check_decoders(body: &Bytes) {
    let same = |encode: &dyn Fn(&mut Vec<u8>)| {
        let mut again = Vec::new();
        encode(&mut again);
        assert_eq!(again, body[..]);
    };
    if let Ok(request) = message::get_append(body.clone())
        && !has_members(&request)
    {
        same(&|out| message::put_append(out, &request));
    }
    if let Ok(answer) = message::get_append_answer(body.clone()) {
        same(&|out| message::put_append_answer(out, &answer));
    }
    if let Ok(request) = message::get_vote_request(body.clone()) {
        same(&|out| message::put_vote_request(out, &request));
    }
    if let Ok(answer) = message::get_vote_answer(body.clone()) {
        same(&|out| message::put_vote_answer(out, &answer));
    }
    if let Ok(request) = message::get_transfer(body.clone()) {
        same(&|out| message::put_transfer(out, &request));
    }
    if let Ok(now_ms) = message::get_report_answer(body.clone()) {
        same(&|out| message::put_report_answer(out, now_ms));
    }
    if let Ok(record) = records::get_record(body.clone()) {
        same(&|out| records::put_record(out, &record));
    }
    if let Ok(statement) = records::get_statement(body.clone()) {
        same(&|out| records::put_statement(out, &statement));
    }
    check_file(body);
    if let Some(bytes) = body.first_chunk::<HELLO_SIZE>()
        && let Ok(hello) = Hello::decode(bytes)
    {
        assert_eq!(hello.encode(), *bytes);
    }
}

/// Checks the decoder of a node's file, with the checksum that its bytes have.
fn check_file(body: &Bytes) {
    let mut file = body.to_vec();
    file.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    let number = |place| body.get(place..).and_then(<[u8]>::first_chunk::<8>);
    let number = |place| number(place).map_or(0, |it| u64::from_le_bytes(*it));
    let (cluster, id) = (number(6), number(14));
    if let Ok(decoded) = records::decode_file(cluster, id, &file.into()) {
        let again = records::encode_file(cluster, id, &decoded);
        let same = records::decode_file(cluster, id, &again.into());
        assert!(same.is_ok_and(|it| it == decoded));
    }
}

/// Ids of a membership may come in any order, and are encoded in theirs.
fn has_members(request: &AppendRequest) -> bool {
    let is_members = |it: &Entry| it.get_membership().is_some();
    request.entries.iter().any(is_members)
}

/// Takes a frame off the input. Returns true if there was one.
pub(crate) fn check_frame(input: &mut BytesMut) -> Result<bool, FrameError> {
    let before = input.clone();
    let Some((head, body)) = next_frame(input, BODY_SIZE_MAX)? else {
        return Ok(false);
    };
    let mut again = Vec::new();
    head.frame(&mut again, |out| out.extend_from_slice(&body));
    assert_eq!(again, before[..HEADER_SIZE + body.len()]);
    Ok(true)
}
