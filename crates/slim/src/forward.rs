//! `Forward`: rewrites a publish for the next hop. The fields of the hop are replaced; all other
//! bytes are unchanged.
//!
//! ```text
//! in:    | before | publish, size | .. | header, size | kept, hop, kept, hop | tail                  |
//! out:   | before | publish, size | .. | header, size | kept, kept, TTL, MAC | the same tail, shared |
//!        `---------------------------- head --------------------------------´
//! ```

use crate::link::Link;
use crate::mac::{MAC_SIZE, MacInput};
use crate::message::Routed;
use crate::wire::{put_number, put_size, varint_size};

const PUBLISH: u32 = 3;
const HEADER: u32 = 1;
const TTL: u32 = 6;
const HEADER_MAC: u32 = 11;

/// A publish to forward. The head is made once and signed for each outgoing link. The value can be
/// reused, which reuses its buffers.
#[derive(Debug, Default)]
pub struct Forward {
    /// Bytes covered by the MAC.
    covered: Vec<u8>,
    /// Bytes up to the end of the header; the MAC comes last.
    head: Vec<u8>,
}

impl Forward {
    /// Prepares a message for forwarding. Returns false if its TTL is used up.
    pub fn prepare(&mut self, routed: &Routed<'_>) -> bool {
        let ttl = routed.header.ttl.saturating_sub(1);
        if ttl == 0 {
            return false;
        }
        self.covered.clear();
        MacInput::forwarded(&routed.header, ttl).write(&mut self.covered);
        self.head.clear();
        write_head(routed, ttl, &mut self.head);
        true
    }

    /// Returns the bytes for a link, up to the tail of the message.
    pub fn head(&mut self, link: &Link) -> &[u8] {
        let mac = link.mac().sign(&self.covered);
        let at = self.head.len() - MAC_SIZE;
        self.head[at..].copy_from_slice(&mac);
        &self.head
    }
}

fn write_head(routed: &Routed<'_>, ttl: u32, out: &mut Vec<u8>) {
    let Routed { whole, header, .. } = routed;
    let cut = &header.hop[..header.hop_count];
    let cut_size: usize = cut.iter().map(std::ops::Range::len).sum();
    let hop_size = 1 + varint_size(ttl.into()) + 2 + MAC_SIZE;
    let header_size = routed.at.end - routed.header_start - cut_size + hop_size;
    let field_size = 1 + varint_size(header_size as u64) + header_size;
    let publish_size = routed.publish.end - routed.publish_start - routed.at.len() + field_size;

    out.extend_from_slice(&whole[..routed.publish.start]);
    put_size(PUBLISH, publish_size, out);
    out.extend_from_slice(&whole[routed.publish_start..routed.at.start]);
    put_size(HEADER, header_size, out);
    let fields = &whole[routed.header_start..routed.at.end];
    let mut kept = 0;
    for hop in cut {
        out.extend_from_slice(&fields[kept..hop.start]);
        kept = hop.end;
    }
    out.extend_from_slice(&fields[kept..]);
    put_number(TTL, ttl.into(), out);
    put_size(HEADER_MAC, MAC_SIZE, out);
    out.extend_from_slice(&[0; MAC_SIZE]);
}
