use proptest::prelude::*;

use super::*;
use crate::header::{Correlation, Flags, Kind, encode_frame};

const LIMIT: u32 = 100;

/// Returns all items of a stream that arrives in pieces of the given sizes.
fn read(bytes: &[u8], sizes: &[usize]) -> Vec<String> {
    let mut inbox = Inbox::new(LIMIT);
    let mut items = Vec::new();
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (chunk, tail) = rest.split_at(size);
        rest = tail;
        let mut frames = inbox.feed(chunk);
        while let Some(item) = frames.next() {
            items.push(format!("{item:?}"));
        }
        assert!(inbox.held_size() <= 2 * (LIMIT as usize + HEADER_SIZE));
    }
    items
}

fn stream(lengths: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, length) in lengths.iter().enumerate() {
        let correlation = Correlation {
            slot: index as u32,
            generation: 1,
        };
        encode_frame(&mut bytes, Kind::SEND, Flags::NONE, 7, correlation, |out| {
            out.resize(out.len() + length, index as u8);
        });
    }
    bytes
}

#[test]
fn frame_above_the_limit_is_reported_and_skipped() {
    let items = read(&stream(&[3, 101, 5]), &[1000]);
    assert_eq!(items.len(), 3);
    assert!(
        items[1].starts_with("Oversize") && items[1].contains("fatal: false"),
        "{items:?}"
    );
    assert!(items[2].starts_with("Frame"));
}

#[test]
fn frame_far_above_the_limit_is_fatal() {
    let items = read(&stream(&[3, 1601, 5]), &[7]);
    assert_eq!(items.len(), 2);
    assert!(items[1].contains("fatal: true"), "{items:?}");
}

#[test]
fn no_memory_is_held_after_a_complete_frame() {
    let mut inbox = Inbox::new(LIMIT);
    let bytes = stream(&[64, 64]);
    for byte in &bytes {
        let mut frames = inbox.feed(std::slice::from_ref(byte));
        while frames.next().is_some() {}
    }
    assert!(!inbox.is_partial());
    assert_eq!(inbox.held_size(), 0);
}

#[test]
fn rest_of_a_chunk_can_be_fed_again() {
    let bytes = stream(&[3, 4, 5, 6]);
    let mut inbox = Inbox::new(LIMIT);
    let (head, tail) = bytes.split_at(HEADER_SIZE);
    assert!(inbox.feed(head).next().is_none());
    let mut rest = tail;
    for length in [3, 4, 5, 6] {
        let mut frames = inbox.feed(rest);
        assert!(matches!(frames.next(), Some(Item::Frame(header, _)) if header.length == length));
        rest = frames.into_rest();
    }
    assert!(rest.is_empty() && !inbox.is_partial());
}

proptest! {
    #[test]
    fn any_chunking_decodes_the_same_frames(
        lengths in prop::collection::vec(prop_oneof![0usize..=100, 101usize..=1600], 0..12),
        sizes in prop::collection::vec(1usize..200, 1..20),
    ) {
        let bytes = stream(&lengths);
        let whole = read(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(whole.len(), lengths.len());
        prop_assert_eq!(read(&bytes, &sizes), whole);
    }

    #[test]
    fn any_bytes_do_not_panic_and_hold_bounded_memory(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        sizes in prop::collection::vec(1usize..300, 1..10),
    ) {
        read(&bytes, &sizes);
    }
}
