//! The first bytes of a connection, little-endian.
//!
//! ```text
//!  0      4        6         7   8         16     24   32     40      72       76
//! +------+--------+---------+---+---------+------+----+------+-------+--------+
//! | TLPL | format | channel | 0 | cluster | from | to | life | nonce | crc32c |
//! |      |  u16   |   u8    |   |   u64   | u64  |u64 | u64  | 32 B  |  u32   |
//! +------+--------+---------+---+---------+------+----+------+-------+--------+
//! ```
//!
//! The dialer sends a hello. The listener sends a status, its own hello, and its proof; the dialer
//! sends its proof, and the listener a second status. A status other than 0 is a [`Refusal`], and
//! the last byte of the connection. On the channel for joining, the dialer has no id and names no
//! node and no cluster: all three are 0.

use super::Channel;

/// Bytes of a hello.
pub(super) const HELLO_SIZE: usize = 76;

/// Bytes of a nonce.
pub(super) const NONCE_SIZE: usize = 32;

const MAGIC: [u8; 4] = *b"TLPL";

/// The newest format of frames that this build knows, and the only one.
pub(super) const FORMAT: u16 = 1;

/// A node as it presents itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The cluster: the journal id of its founder.
    pub(crate) cluster: u64,
    /// The node's id.
    pub(crate) id: u64,
    /// The life of its journal, which grows with each start.
    pub(crate) life: u64,
}

/// A hello of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) channel: Channel,
    pub(super) from: Identity,
    /// The id of the node that is meant.
    pub(super) to: u64,
    /// Random bytes, so that no proof is ever repeated.
    pub(super) nonce: [u8; NONCE_SIZE],
}

/// The reason for which a listener refuses a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The node belongs to another cluster.
    #[error("the node belongs to another cluster")]
    Cluster = 1,
    /// Another node has the address.
    #[error("another node has this address")]
    Id = 2,
    /// Both nodes have one id.
    #[error("both nodes have the same id")]
    SameId = 3,
    /// The dialer did not prove that it knows the key.
    #[error("the cluster keys differ")]
    Key = 4,
    /// The listener does not know the format of frames.
    #[error("the node does not know this format of frames")]
    Format = 5,
    /// The bytes are no hello.
    #[error("the first bytes are no hello")]
    Malformed = 6,
    /// The node with the lower id dials.
    #[error("the node with the lower id dials, and this is the other one")]
    Direction = 7,
}

impl Refusal {
    pub(super) fn from_number(number: u8) -> Option<Refusal> {
        use Refusal::{Cluster, Direction, Format, Id, Key, Malformed, SameId};
        let all = [Cluster, Id, SameId, Key, Format, Malformed, Direction];
        all.into_iter().find(|it| *it as u8 == number)
    }
}

impl Hello {
    pub(super) fn encode(&self) -> [u8; HELLO_SIZE] {
        let mut bytes = [0; HELLO_SIZE];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[6] = self.channel as u8;
        bytes[8..16].copy_from_slice(&self.from.cluster.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.from.id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.to.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.from.life.to_le_bytes());
        bytes[40..72].copy_from_slice(&self.nonce);
        let crc = crc32c::crc32c(&bytes[..72]);
        bytes[72..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HELLO_SIZE]) -> Result<Hello, Refusal> {
        let mut crc = [0; 4];
        crc.copy_from_slice(&bytes[72..]);
        if bytes[..4] != MAGIC || u32::from_le_bytes(crc) != crc32c::crc32c(&bytes[..72]) {
            return Err(Refusal::Malformed);
        }
        if u16::from_le_bytes([bytes[4], bytes[5]]) != FORMAT {
            return Err(Refusal::Format);
        }
        let channel = Channel::from_number(bytes[6]).ok_or(Refusal::Malformed)?;
        if bytes[7] != 0 {
            return Err(Refusal::Malformed);
        }
        let number = |place: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[place..place + 8]);
            u64::from_le_bytes(number)
        };
        let mut nonce = [0; NONCE_SIZE];
        nonce.copy_from_slice(&bytes[40..72]);
        Ok(Hello {
            channel,
            from: Identity {
                cluster: number(8),
                id: number(16),
                life: number(32),
            },
            to: number(24),
            nonce,
        })
    }

    /// Checks a dialer's hello against the listener.
    pub(super) fn check(&self, own: Identity) -> Result<(), Refusal> {
        if self.channel == Channel::Join {
            Ok(())
        } else if self.from.cluster != own.cluster {
            Err(Refusal::Cluster)
        } else if self.to != own.id {
            Err(Refusal::Id)
        } else if self.from.id == own.id {
            Err(Refusal::SameId)
        } else if self.from.id > own.id && !self.channel.is_of_either() {
            Err(Refusal::Direction)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            channel: Channel::Log,
            from: Identity {
                cluster: 0x0807_0605_0403_0201,
                id: 2,
                life: 9,
            },
            to: 3,
            nonce: [0xAB; NONCE_SIZE],
        }
    }

    #[test]
    fn hello_has_the_published_bytes() {
        let bytes = hello().encode();
        assert_eq!(bytes[..8], *b"TLPL\x01\x00\x02\x00");
        assert_eq!(bytes[8..16], [1, 2, 3, 4, 5, 6, 7, 8]);
        let numbers = [2_u64, 3, 9].map(u64::to_le_bytes).concat();
        assert_eq!(bytes[16..40], numbers);
        assert_eq!(bytes[40..72], [0xAB; 32]);
        assert_eq!(bytes[72..], GOLDEN_CRC);
        assert_eq!(Hello::decode(&bytes), Ok(hello()));
    }

    /// Checksum of the hello above.
    const GOLDEN_CRC: [u8; 4] = [253, 11, 170, 73];

    #[test]
    fn changed_hello_is_refused() {
        let bytes = hello().encode();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                Hello::decode(&changed),
                Err(Refusal::Malformed),
                "bit {bit}"
            );
        }
    }

    #[test]
    fn listener_refuses_what_is_not_meant_for_it() {
        let own = |cluster, id| Identity {
            cluster,
            id,
            life: 1,
        };
        let cluster = hello().from.cluster;
        let check = |own| hello().check(own);
        assert_eq!(check(own(cluster, 3)), Ok(()));
        assert_eq!(check(own(1, 3)), Err(Refusal::Cluster));
        assert_eq!(check(own(cluster, 4)), Err(Refusal::Id));
        let same = Hello { to: 2, ..hello() };
        assert_eq!(same.check(own(cluster, 2)), Err(Refusal::SameId));
        let lower = Hello { to: 1, ..hello() };
        assert_eq!(lower.check(own(cluster, 1)), Err(Refusal::Direction));
    }

    #[test]
    fn refusals_have_their_numbers() {
        for number in 0..=255 {
            let refusal = Refusal::from_number(number);
            assert_eq!(refusal.is_some(), (1..=7).contains(&number));
            assert!(refusal.is_none_or(|it| it as u8 == number));
        }
    }
}
