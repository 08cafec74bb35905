//! Reads stream names out of damaged bytes of the line, as unverified claims.
//!
//! Damage begins at a block boundary, so the block's fields are at their usual offsets, but any of
//! them may be wrong.

use journal::ShardId;
use journal::block::{BLOCK_HEADER_SIZE, aligned};
use journal::record::{self, RecordKind, RecordView};

use super::{Damage, Dependent, Evidence};

/// Adds the streams that damaged blocks name to the damage's dependents.
pub(super) fn claims(bytes: &[u8], shard_count: usize, damage: &mut Damage) {
    let mut at = 0;
    while let Some(block) = bytes
        .get(at..)
        .filter(|rest| rest.len() > BLOCK_HEADER_SIZE)
    {
        let shard = ShardId(u16::from_le_bytes([block[10], block[11]]));
        let length = u32::from_le_bytes([block[12], block[13], block[14], block[15]]) as usize;
        let body = &block[BLOCK_HEADER_SIZE..length.clamp(BLOCK_HEADER_SIZE, block.len())];
        for (_, record) in record::records(body).map_while(Result::ok) {
            let is_zeros = record.bytes.is_empty() && record.stream.0 == 0 && record.offset == 0;
            if is_zeros || usize::from(shard.0) >= shard_count {
                break;
            }
            claim(shard, &record, damage);
        }
        if !(BLOCK_HEADER_SIZE..=block.len()).contains(&length) {
            break;
        }
        at += aligned(length as u64) as usize;
    }
}

fn claim(shard: ShardId, record: &RecordView<'_>, damage: &mut Damage) {
    damage.add_dependent(Dependent {
        shard,
        stream: Some(record.stream),
        first: (record.kind == RecordKind::Data).then_some(record.offset),
        evidence: Evidence::Claim,
    });
}
