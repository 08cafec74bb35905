//! Recognises applications of SLIM 1.x by the first message of their stream.
//!
//! They can only be refused: their names have ids of 64 bits, and their links have no keys.
//! Versions before 1.1 begin with a subscription, later versions with a link negotiation that
//! contains the version.

use crate::message::Message;
use crate::wire::Fields;

/// Numbers of message fields that must follow a negotiation: subscribe, unsubscribe, publish.
const PAYLOAD_FIELDS: [u32; 3] = [1, 2, 3];

/// True if the first message of a stream is from SLIM 1.x.
pub fn is_legacy(first: &[u8]) -> bool {
    if let Ok(Message::Link(Some(negotiation))) = Message::scan(first) {
        let is_old = |prefix| negotiation.version.starts_with(prefix);
        return negotiation.public_key.is_empty() && ["0.", "1."].into_iter().any(is_old);
    }
    let mut fields = Fields::new(first);
    while let Ok(Some(field)) = fields.next() {
        if PAYLOAD_FIELDS.contains(&field.number) && field.bytes().is_ok() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiation::{ConnectionKind, Negotiation};
    use crate::wire::{put_bytes, put_nested, put_number};

    fn negotiation(version: &str, public_key: &[u8]) -> Vec<u8> {
        let negotiation = Negotiation {
            link_id: "link",
            version,
            is_reply: false,
            public_key,
            kind: ConnectionKind::Remote,
            node_id: "",
            deployment: "",
            kem: None,
        };
        negotiation.encode()
    }

    /// A subscription of version 1.0, whose name has a number as its id.
    fn subscription() -> Vec<u8> {
        let mut message = Vec::new();
        put_nested(1, &mut message, |subscribe| {
            put_nested(1, subscribe, |header| {
                put_nested(1, header, |name| put_number(4, 7, name));
            });
        });
        message
    }

    #[test]
    fn first_messages_of_slim_1_are_recognized() {
        let mut metadata = Vec::new();
        put_bytes(4, b"metadata", &mut metadata);
        for (first, expected) in [
            (negotiation("1.4.0", b""), true),
            (negotiation("0.7.1", b""), true),
            (negotiation("2.0.0", b""), false),
            (negotiation("1.4.0", &[7; 32]), false),
            (subscription(), true),
            (metadata, false),
            (b"no message".to_vec(), false),
            (Vec::new(), false),
        ] {
            assert_eq!(is_legacy(&first), expected, "{first:?}");
        }
    }
}
