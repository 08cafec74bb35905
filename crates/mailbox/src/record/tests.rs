use proptest::prelude::*;

use super::*;

/// The layouts as stored on disk. Never regenerate them.
#[test]
fn record_layouts_are_unchanged() {
    let mut bytes = Vec::new();
    let write = Write {
        id: Some(WriteId(*b"0123456789abcdef")),
        expires_ms: 0x0102_0304,
        sender: "a/b/c",
        method: "do",
        metadata: b"m",
        body: b"body",
    };
    write.encode(&mut bytes);
    let expected = b"\x010123456789abcdef\x04\x03\x02\x01\0\0\0\0\x05\0a/b/c\x02do\x01\0mbody";
    assert_eq!(bytes, expected);
    assert_eq!(Write::decode(expected), Ok(write));

    let notes = [
        Note::Handed {
            offset: 5,
            deliveries: 2,
        },
        Note::Left { offset: 4 },
        Note::Dead {
            offset: 3,
            cause: Cause::Refused,
        },
        Note::Dead {
            offset: 2,
            cause: Cause::Unanswered,
        },
        Note::Revived { offset: 1 },
    ];
    let mut bytes = Vec::new();
    encode_notes(&notes, &mut bytes);
    let expected = b"\x05\0\0\0\0\0\0\0\x02\0\0\0\x04\0\0\0\0\0\0\0\xff\xff\xff\xff\
        \x03\0\0\0\0\0\0\0\xfe\xff\xff\xff\x02\0\0\0\0\0\0\0\xfd\xff\xff\xff\
        \x01\0\0\0\0\0\0\0\xfc\xff\xff\xff";
    assert_eq!(bytes, expected);
    let read: Result<Vec<_>, _> = decode_notes(expected).collect();
    assert_eq!(read.unwrap(), notes);

    let moved = Moved {
        offset: 5,
        written_ms: 0x0102,
        state: MessageState {
            deliveries: 9,
            forgiven: 4,
            dead: Some(Cause::Unanswered),
        },
        write: b"write",
    };
    let mut bytes = Vec::new();
    moved.encode(&mut bytes);
    let expected = b"\x05\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x09\0\0\0\x04\0\0\0\x02write";
    assert_eq!(bytes, expected);
    assert_eq!(Moved::decode(expected), Ok(moved));
    assert!(Moved::decode(&expected[..24]).is_err());

    let ids = [(7, Some(WriteId(*b"0123456789abcdef"))), (9, None)];
    let mut bytes = Vec::new();
    encode_ids(ids.into_iter(), &mut bytes);
    let mut expected = b"\x07\0\0\0\0\0\0\0\x010123456789abcdef\x09\0\0\0\0\0\0\0\0".to_vec();
    expected.extend_from_slice(&[0; 16]);
    assert_eq!(bytes, expected);
    let read: Result<Vec<_>, _> = decode_ids(&expected).collect();
    assert_eq!(read.unwrap(), ids);
}

proptest! {
    #[test]
    fn write_record_is_decoded_unchanged(
        id in prop::option::of(any::<[u8; 16]>()),
        expires_ms: u64,
        sender in ".{0,40}",
        method in "[a-z]{0,255}",
        metadata in prop::collection::vec(any::<u8>(), 0..100),
        body in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let write = Write {
            id: id.map(WriteId),
            expires_ms,
            sender: &sender,
            method: &method,
            metadata: &metadata,
            body: &body,
        };
        let mut bytes = Vec::new();
        write.encode(&mut bytes);
        prop_assert_eq!(Write::decode(&bytes), Ok(write));
        let head = bytes.len() - body.len();
        for length in 0..head {
            prop_assert!(Write::decode(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn decoding_any_bytes_does_not_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = (Write::decode(&bytes), Moved::decode(&bytes));
        prop_assert_eq!(decode_notes(&bytes).count(), bytes.len().div_ceil(NOTE_SIZE));
        prop_assert_eq!(decode_ids(&bytes).count(), bytes.len().div_ceil(ID_SIZE));
    }
}
