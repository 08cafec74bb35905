//! Properties of arbitrary bytes.

use proptest::prelude::*;

use super::oracle::{self, encode, publish};
use crate::{Forward, Link, Message};

/// Bytes close to a valid message: some are changed, removed or inserted.
fn nearly_valid_bytes() -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 0..4);
    (edits, any::<u32>(), any::<Option<u64>>()).prop_map(|(edits, ttl, forward_to)| {
        let mut message = publish();
        let header = message.header.as_mut().unwrap();
        (header.ttl, header.forward_to) = (ttl, forward_to);
        let mut bytes = encode(message, &[("key", "value")]);
        for (at, byte, kind) in edits {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Message::scan(&bytes);
    }

    #[test]
    fn every_accepted_message_decodes_at_the_receiver(bytes in nearly_valid_bytes()) {
        if Message::scan(&bytes).is_ok() {
            prop_assert!(oracle::decode(&bytes).is_ok());
        }
    }

    #[test]
    fn forwarding_changes_only_the_ttl_and_mac(bytes in nearly_valid_bytes(), id in "[a-z]{1,40}") {
        let Ok(Message::Publish(routed)) = Message::scan(&bytes) else { return Ok(()) };
        let mut forward = Forward::default();
        if !forward.prepare(&routed) {
            prop_assert!(routed.header.ttl <= 1);
            return Ok(());
        }
        let link = Link::with_secret(&[3; 32], &id);
        let passed = [forward.head(&link), &bytes[routed.tail_start()..]].concat();
        let Ok(Message::Publish(again)) = Message::scan(&passed) else {
            return Err(TestCaseError::fail("what is passed on is no publish"));
        };
        prop_assert!(link.verify(&again.header, &mut Vec::new()));
        let mut came = oracle::decode(&bytes).unwrap();
        let Some(oracle::Kind::Publish(publish)) = &mut came.kind else { unreachable!() };
        let header = publish.header.as_mut().unwrap();
        header.ttl -= 1;
        header.header_mac = again.header.header_mac.map(<[u8]>::to_vec);
        (header.recv_from, header.forward_to, header.incoming_conn) = (None, None, None);
        prop_assert_eq!(oracle::decode(&passed).unwrap(), came);
    }
}
