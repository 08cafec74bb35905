//! Memberships as bytes, little-endian: in blocks of the journal and in frames.
//!
//! ```text
//! term u64 | index u64 | configurations u32 | each: voters u32, each: id u64
//!          | members u32 | each: id u64, five texts, each: size u32, bytes
//! ```
//!
//! Term and index are those of the entry, so that the newest committed membership can be restored
//! from its record alone. The texts are the name, and the addresses for nodes, Kafka, HTTP and native
//! clients; an empty one is none.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bytes::{Buf, Bytes};
use journal::segment::ShardEnd;
use journal::{DecidedBlock, Index};

use super::types::{LogId, Membership, log_id};
use crate::member::{Addresses, Member, TEXT_SIZE_MAX};

/// Encodes a membership with the log id of its entry.
pub(crate) fn encode_membership(log_id: LogId, membership: &Membership, out: &mut Vec<u8>) {
    out.extend_from_slice(&log_id.leader_id.term.to_le_bytes());
    out.extend_from_slice(&log_id.index.to_le_bytes());
    put_u32(out, membership.get_joint_config().len());
    for voters in membership.get_joint_config() {
        put_u32(out, voters.len());
        for id in voters {
            out.extend_from_slice(&id.to_le_bytes());
        }
    }
    put_u32(out, membership.nodes().count());
    for (id, addresses) in membership.nodes() {
        out.extend_from_slice(&id.to_le_bytes());
        put_addresses(addresses, out);
    }
}

/// Decodes a membership, with nothing after it.
pub(crate) fn decode_membership(mut bytes: Bytes) -> io::Result<(LogId, Membership)> {
    let malformed = |_| malformed();
    let term = bytes.try_get_u64_le().map_err(malformed)?;
    let index = bytes.try_get_u64_le().map_err(malformed)?;
    let mut configurations = Vec::new();
    for _ in 0..bytes.try_get_u32_le().map_err(malformed)? {
        let mut voters = BTreeSet::new();
        for _ in 0..bytes.try_get_u32_le().map_err(malformed)? {
            voters.insert(bytes.try_get_u64_le().map_err(malformed)?);
        }
        // An empty configuration takes no room for voters: a count alone must not allocate.
        if voters.is_empty() {
            return Err(self::malformed());
        }
        configurations.push(voters);
    }
    let mut nodes = BTreeMap::new();
    for _ in 0..bytes.try_get_u32_le().map_err(malformed)? {
        let id = bytes.try_get_u64_le().map_err(malformed)?;
        nodes.insert(id, get_addresses(&mut bytes)?);
    }
    if bytes.has_remaining() {
        return Err(self::malformed());
    }
    let membership = Membership::new(configurations, nodes);
    let membership = membership.map_err(|_| self::malformed())?;
    Ok((log_id(term, index), membership))
}

/// Returns a block with the members of a shard, which are its voters. It comes after `last`, the
/// shard's last block, has this term, and is the record at `offset` of the shard's memberships. No
/// members end the shard's part in a cluster. `None` if their addresses take too much room.
pub(crate) fn members_block(
    last: ShardEnd,
    term: u64,
    members: &[Member],
    time_ms: u64,
    offset: u64,
) -> Option<DecidedBlock> {
    let voters: BTreeSet<_> = members.iter().map(|member| member.id).collect();
    let nodes = members
        .iter()
        .map(|member| (member.id, member.addresses.clone()));
    let nodes: BTreeMap<_, _> = nodes.collect();
    let configurations = match voters.is_empty() {
        true => Vec::new(),
        false => vec![voters],
    };
    let membership = Membership::new(configurations, nodes).ok()?;
    let mut bytes = Vec::new();
    encode_membership(log_id(term, last.index.0), &membership, &mut bytes);
    let index = Index(last.index.0 + 1);
    let block = || DecidedBlock::members(term, index, time_ms, offset, &bytes);
    (bytes.len() <= journal::MEMBERS_SIZE_MAX).then(block)
}

/// Appends the name and the addresses of a member.
pub(crate) fn put_addresses(addresses: &Addresses, out: &mut Vec<u8>) {
    for text in addresses.texts() {
        put_u32(out, text.len());
        out.extend_from_slice(text.as_bytes());
    }
}

/// Takes the name and the addresses of a member off the bytes.
pub(crate) fn get_addresses(bytes: &mut Bytes) -> io::Result<Addresses> {
    let mut texts: [String; 5] = Default::default();
    for text in &mut texts {
        let size = bytes.try_get_u32_le().map_err(|_| malformed())? as usize;
        if size > bytes.len() || size > TEXT_SIZE_MAX {
            return Err(malformed());
        }
        let decoded = String::from_utf8(bytes.split_to(size).to_vec());
        *text = decoded.map_err(|_| malformed())?;
    }
    Ok(Addresses::from_texts(texts))
}

fn put_u32(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u32).to_le_bytes());
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed membership")
}
