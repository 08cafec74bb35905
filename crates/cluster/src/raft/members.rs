//! Memberships as bytes, little-endian: in blocks of the journal and in frames.
//!
//! ```text
//! term u64 | index u64 | configurations u32 | each: voters u32, each: id u64
//!          | nodes u32 | each: id u64, address size u32, address
//! ```
//!
//! Term and index are those of the entry, so that the newest committed membership can be restored
//! from its record alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bytes::{Buf, Bytes};
use journal::{DecidedBlock, Index};
use openraft::BasicNode;

use super::types::{LogId, Membership, log_id};

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
    for (id, node) in membership.nodes() {
        out.extend_from_slice(&id.to_le_bytes());
        put_u32(out, node.addr.len());
        out.extend_from_slice(node.addr.as_bytes());
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
        let size = bytes.try_get_u32_le().map_err(malformed)? as usize;
        if size > bytes.len() {
            return Err(self::malformed());
        }
        let address = String::from_utf8(bytes.split_to(size).to_vec());
        let address = address.map_err(|_| self::malformed())?;
        nodes.insert(id, BasicNode::new(address));
    }
    if bytes.has_remaining() {
        return Err(self::malformed());
    }
    let membership = Membership::new(configurations, nodes);
    let membership = membership.map_err(|_| self::malformed())?;
    Ok((log_id(term, index), membership))
}

/// Returns the first block of a new cluster's shard, as each founding member writes it: its members,
/// at term 0.
pub(crate) fn founding_block(
    members: &BTreeMap<u64, String>,
    time_ms: u64,
) -> Option<DecidedBlock> {
    let voters = members.keys().copied().collect();
    let nodes = members
        .iter()
        .map(|(id, address)| (*id, BasicNode::new(address)));
    let nodes: BTreeMap<_, _> = nodes.collect();
    let membership = Membership::new(vec![voters], nodes).ok()?;
    let mut bytes = Vec::new();
    encode_membership(log_id(0, 0), &membership, &mut bytes);
    let is_small = bytes.len() <= journal::MEMBERS_SIZE_MAX;
    is_small.then(|| DecidedBlock::members(0, Index(1), time_ms, 0, &bytes))
}

fn put_u32(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u32).to_le_bytes());
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed membership")
}
