//! Messages from a stream, for any division into chunks.

use bytes::Bytes;
use proptest::prelude::*;

use crate::{Compressed, Inbox, Item};

fn frame(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

fn read(inbox: &mut Inbox, piece: &[u8]) -> Result<Vec<Item>, Compressed> {
    inbox.feed(Bytes::copy_from_slice(piece));
    let mut items = Vec::new();
    while let Some(item) = inbox.pull()? {
        items.push(item);
    }
    Ok(items)
}

#[test]
fn a_message_within_one_chunk_is_not_copied() {
    let piece = Bytes::from([frame(b"one"), frame(b"two")].concat());
    let mut inbox = Inbox::new(10);
    inbox.feed(piece.clone());
    for range in [5..8, 13..16] {
        let Ok(Some(Item::Message(message))) = inbox.pull() else {
            panic!("{range:?}");
        };
        assert_eq!(message.as_ptr(), piece[range].as_ptr());
    }
    assert_eq!(inbox.pull(), Ok(None));
}

#[test]
fn an_oversized_message_is_reported_once_and_skipped() {
    let stream = [frame(b"before"), frame(&[7; 100]), frame(b"behind")].concat();
    for size in [1, 3, 50, stream.len()] {
        let mut inbox = Inbox::new(10);
        let pieces = stream.chunks(size);
        let items: Vec<_> = pieces
            .flat_map(|piece| read(&mut inbox, piece).unwrap())
            .collect();
        let message = |bytes: &'static [u8]| Item::Message(Bytes::from_static(bytes));
        assert_eq!(
            items,
            [message(b"before"), Item::Oversize(100), message(b"behind")]
        );
    }
}

#[test]
fn an_announced_size_allocates_no_memory() {
    let mut inbox = Inbox::new(u32::MAX);
    let head = [0, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(read(&mut inbox, &head), Ok(vec![]));
    assert!(inbox.partial_capacity() < 1024);
}

#[test]
fn a_compressed_message_ends_the_stream() {
    assert_eq!(
        read(&mut Inbox::new(10), &[1, 0, 0, 0, 1, 9]),
        Err(Compressed)
    );
}

proptest! {
    #[test]
    fn messages_decode_for_any_division_into_chunks(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6),
        size in 1usize..12,
    ) {
        let stream: Vec<u8> = messages.iter().flat_map(|message| frame(message)).collect();
        let mut inbox = Inbox::new(15);
        let mut items = Vec::new();
        for piece in stream.chunks(size) {
            items.extend(read(&mut inbox, piece).unwrap());
        }
        let expected: Vec<_> = messages.iter().map(|message| match message.len() {
            size @ 16.. => Item::Oversize(size as u32),
            _ => Item::Message(Bytes::copy_from_slice(message)),
        }).collect();
        prop_assert_eq!(items, expected);
    }
}
