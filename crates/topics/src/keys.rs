//! The partition of a key: the one to which Kafka's Java client sends it, so that records appended
//! here and produced there are in one order.
//!
//! The hash is Austin Appleby's MurmurHash2 for 32 bits, with the seed that the client uses.

const SEED: u32 = 0x9747_b28c;
const MIX: u32 = 0x5bd1_e995;

/// Returns the partition of a key among `partitions`, which is at least one.
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    // The client makes the hash positive by dropping its sign, not by negating it.
    let positive = murmur2(key) & 0x7fff_ffff;
    positive % partitions.max(1)
}

fn murmur2(bytes: &[u8]) -> u32 {
    let mut hash = SEED ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(MIX);
        let word = (word ^ (word >> 24)).wrapping_mul(MIX);
        hash = hash.wrapping_mul(MIX) ^ word;
    }
    if !rest.is_empty() {
        let mut word = [0; 4];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u32::from_le_bytes(word)).wrapping_mul(MIX);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(MIX);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hashed_like_the_java_client_of_kafka() {
        // The values are those of the client's own test.
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
        }
    }

    #[test]
    fn every_key_maps_to_an_existing_partition() {
        for number in 0..1000_u32 {
            let key = number.to_le_bytes();
            assert!(partition_of(&key, 7) < 7);
            assert_eq!(partition_of(&key, 1), 0);
        }
        // A hash with its sign: 2,147,483,648 less than as it stands.
        assert_eq!(
            partition_of(b"21", 10),
            (3_321_034_988_u32 - (1 << 31)) % 10
        );
    }
}
