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

/// Returns the headers and payloads of a stream of frames within the limit, which are taken in runs
/// where possible, and the number of runs.
fn read_runs(bytes: &[u8], size: usize) -> (Vec<(Header, Vec<u8>)>, usize) {
    let mut inbox = Inbox::new(LIMIT);
    let (mut found, mut runs) = (Vec::new(), 0);
    for chunk in bytes.chunks(size) {
        let mut frames = inbox.feed(chunk);
        loop {
            if let Some(run) = frames.next_run(Kind::SEND) {
                assert!((2..=RUN_LENGTH_MAX).contains(&run.payloads().len()));
                runs += 1;
                found.extend(run.payloads().iter().map(|payload| {
                    let length = payload.len() as u32;
                    (
                        Header {
                            length,
                            ..run.header
                        },
                        payload.to_vec(),
                    )
                }));
                continue;
            }
            match frames.next() {
                Some(Item::Frame(header, payload)) => found.push((header, payload.to_vec())),
                Some(Item::Oversize { .. }) => panic!("no frame is above the limit"),
                None => break,
            }
        }
    }
    (found, runs)
}

#[test]
fn a_run_ends_where_a_header_differs_in_more_than_its_length() {
    let mut bytes = Vec::new();
    let at = |slot| Correlation {
        slot,
        generation: 1,
    };
    for (kind, route, slot) in [
        (Kind::SEND, 1, 0),
        (Kind::SEND, 1, 0),
        (Kind::SEND, 2, 0),
        (Kind::REQUEST, 2, 0),
        (Kind::SEND, 2, 0),
        (Kind::SEND, 2, 1),
        (Kind::SEND, 2, 1),
    ] {
        encode_frame(&mut bytes, kind, Flags::NONE, route, at(slot), |out| {
            out.resize(out.len() + 9, 0);
        });
    }
    let (found, runs) = read_runs(&bytes, bytes.len());
    assert_eq!((found.len(), runs), (7, 2));
    let routes: Vec<_> = found.iter().map(|(header, _)| header.route).collect();
    assert_eq!(routes, [1, 1, 2, 2, 2, 2, 2]);
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
    fn runs_have_the_same_frames_in_the_same_order(
        frames in prop::collection::vec((1_u16..3, 0_usize..=100), 0..150),
        size in 1_usize..5000,
    ) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (number, (route, length)) in frames.into_iter().enumerate() {
            let start = bytes.len();
            let none = Correlation::NONE;
            encode_frame(&mut bytes, Kind::SEND, Flags::NONE, route, none, |out| {
                out.resize(out.len() + length, number as u8);
            });
            let header = Header::decode(bytes[start..].first_chunk().unwrap());
            expected.push((header, bytes[start + HEADER_SIZE..].to_vec()));
        }
        prop_assert_eq!(read_runs(&bytes, size).0, expected);
    }

    #[test]
    fn any_bytes_do_not_panic_and_hold_bounded_memory(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        sizes in prop::collection::vec(1usize..300, 1..10),
    ) {
        read(&bytes, &sizes);
    }
}
