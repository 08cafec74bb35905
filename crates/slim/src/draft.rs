//! Encoding of the messages that an application sends.

use crate::link::Link;
use crate::mac::MacInput;
use crate::name::Name;
use crate::wire::{put_bytes, put_nested, put_number};

/// Header fields of a message that an application sends over its link.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// Name of the sender.
    pub source: Name<'a>,
    /// Destination, or the name to subscribe to.
    pub destination: Name<'a>,
    /// Identity token, which receivers may require.
    pub identity: &'a str,
    /// 1 for one subscriber; any other number for all subscribers.
    pub fanout: u32,
    /// Maximum number of hops.
    pub ttl: u32,
}

impl Draft<'_> {
    /// Encodes a subscribe. The node acknowledges it unless the number is 0.
    pub fn subscribe(&self, subscription_id: u64, link: &Link) -> Vec<u8> {
        self.subscription(1, subscription_id, link)
    }

    /// Encodes an unsubscribe.
    pub fn unsubscribe(&self, subscription_id: u64, link: &Link) -> Vec<u8> {
        self.subscription(2, subscription_id, link)
    }

    /// Encodes a publish with a payload. `session` is session type, message type, session number
    /// and message number.
    pub fn publish(&self, session: [u32; 4], payload: &[u8], link: &Link) -> Vec<u8> {
        let mut out = Vec::new();
        put_nested(3, &mut out, |out| {
            self.put_header(None, None, link, out);
            put_nested(2, out, |out| {
                for (field, number) in (1..).zip(session) {
                    put_number(field, number.into(), out);
                }
            });
            put_nested(3, out, |out| {
                put_nested(1, out, |out| put_bytes(2, payload, out));
            });
        });
        out
    }

    fn subscription(&self, kind: u32, subscription_id: u64, link: &Link) -> Vec<u8> {
        let mut out = Vec::new();
        put_nested(kind, &mut out, |out| {
            self.put_header(None, None, link, out);
            if subscription_id != 0 {
                put_number(2, subscription_id, out);
            }
        });
        out
    }

    /// Encodes the header. The sender's signature is not covered by the MAC of the link.
    pub(crate) fn put_header(
        &self,
        error: Option<bool>,
        signature: Option<&[u8]>,
        link: &Link,
        out: &mut Vec<u8>,
    ) {
        let mut covered = Vec::new();
        let cover = MacInput {
            source: &self.source,
            destination: &self.destination,
            identity: self.identity,
            fanout: self.fanout,
            recv_from: None,
            forward_to: None,
            error,
            ttl: self.ttl,
        };
        cover.write(&mut covered);
        let mac = link.mac().sign(&covered);
        put_nested(1, out, |out| {
            self.source.put(1, out);
            self.destination.put(2, out);
            put_bytes(3, self.identity.as_bytes(), out);
            put_number(4, self.fanout.into(), out);
            put_bytes(5, crate::VERSION.as_bytes(), out);
            put_number(6, self.ttl.into(), out);
            if let Some(error) = error {
                put_number(10, error.into(), out);
            }
            put_bytes(11, &mac, out);
            if let Some(signature) = signature {
                put_bytes(12, signature, out);
            }
        });
    }
}
