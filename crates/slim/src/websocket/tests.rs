use proptest::prelude::*;

use super::*;

const MASK: [u8; 4] = [0x5a, 0, 0xff, 0x13];

/// A frame as a client sends it, from its first byte and its payload.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    Opcode::Binary.put_head(payload.len(), &mut frame);
    frame[0] = first;
    frame[1] |= 0x80;
    frame.extend(MASK);
    let masked = payload.iter().zip(MASK.into_iter().cycle());
    frame.extend(masked.map(|(byte, mask)| byte ^ mask));
    frame
}

const FINAL: u8 = 0x80;
const MORE: u8 = 0;
const ON: u8 = 0;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

fn read(frames: &mut Frames, piece: &[u8]) -> Result<Vec<Event>, Violation> {
    frames.feed(piece);
    let mut events = Vec::new();
    while let Some(event) = frames.pull()? {
        events.push(event);
    }
    Ok(events)
}

fn read_all(size_max: u32, stream: &[u8], piece: usize) -> Result<Vec<Event>, Violation> {
    let mut frames = Frames::new(size_max);
    let mut events = Vec::new();
    for piece in stream.chunks(piece) {
        events.extend(read(&mut frames, piece)?);
    }
    Ok(events)
}

fn message(bytes: &[u8]) -> Event {
    Event::Message(Bytes::copy_from_slice(bytes))
}

#[test]
fn frames_decode_for_any_division_into_chunks() {
    let large: Vec<u8> = (0..70_000u32).map(|index| index as u8).collect();
    let stream = [
        frame(FINAL | BINARY, b""),
        frame(FINAL | BINARY, &large[..125]),
        frame(FINAL | BINARY, &large[..126]),
        frame(FINAL | PING, b"there?"),
        frame(FINAL | BINARY, &large),
        frame(FINAL | PONG, b""),
        frame(FINAL | CLOSE, &[3, 0xe8]),
    ]
    .concat();
    for piece in [1, 2, 3, 7, 1000, stream.len()] {
        let expected = [
            message(b""),
            message(&large[..125]),
            message(&large[..126]),
            Event::Ping(Bytes::from_static(b"there?")),
            message(&large),
            Event::Pong,
            Event::Close,
        ];
        assert_eq!(read_all(1 << 20, &stream, piece).unwrap(), expected);
    }
}

#[test]
fn control_frames_may_interleave_a_fragmented_message() {
    let stream = [
        frame(MORE | BINARY, b"one "),
        frame(FINAL | PING, b""),
        frame(MORE | ON, b""),
        frame(FINAL | ON, b"message"),
        frame(FINAL | BINARY, b"another"),
    ]
    .concat();
    let expected = [
        Event::Ping(Bytes::new()),
        message(b"one message"),
        message(b"another"),
    ];
    assert_eq!(read_all(11, &stream, stream.len()).unwrap(), expected);
}

#[test]
fn an_oversized_message_is_reported_once_and_skipped() {
    let stream = [
        frame(FINAL | BINARY, b"before"),
        frame(FINAL | BINARY, &[7; 100]),
        frame(MORE | BINARY, b"123456"),
        frame(MORE | ON, b"78901"),
        frame(FINAL | PONG, b""),
        frame(FINAL | ON, b"2"),
        frame(FINAL | BINARY, b"behind"),
    ]
    .concat();
    for piece in [1, 3, 50, stream.len()] {
        let expected = [
            message(b"before"),
            Event::Oversize(100),
            Event::Pong,
            Event::Oversize(12),
            message(b"behind"),
        ];
        assert_eq!(read_all(10, &stream, piece).unwrap(), expected);
    }
}

#[test]
fn an_announced_size_allocates_no_memory() {
    let mut frames = Frames::new(u32::MAX);
    let head = [
        0x82, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5,
    ];
    assert_eq!(read(&mut frames, &head), Ok(vec![]));
    assert!(frames.buffer.capacity() < 1024);
    // Processed bytes are not kept either.
    let mut frames = Frames::new(u32::MAX);
    let large = frame(FINAL | BINARY, &[7; 100_000]);
    assert_eq!(read(&mut frames, &large).unwrap().len(), 1);
    assert!(frames.buffer.capacity() <= KEPT_SIZE_MAX);
}

#[test]
fn protocol_violations_are_reported() {
    let unmasked = [0x82, 1, 7];
    let impossible = [0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0];
    let large = frame(FINAL | PING, &[0; 126]);
    let twice = [frame(BINARY, b"a"), frame(FINAL | BINARY, b"b")].concat();
    let cases: [(&[u8], _); 9] = [
        (&frame(FINAL | 1, b"text"), Violation::Text),
        (&frame(FINAL | 0x40 | BINARY, b""), Violation::Reserved),
        (&frame(FINAL | 3, b""), Violation::Opcode(3)),
        (&unmasked, Violation::Unmasked),
        (&frame(MORE | CLOSE, b""), Violation::Control),
        (&large, Violation::Control),
        (&frame(FINAL | ON, b""), Violation::Order),
        (&twice, Violation::Order),
        (&impossible, Violation::Size),
    ];
    for (stream, violation) in cases {
        for piece in [1, stream.len()] {
            assert_eq!(read_all(1000, stream, piece), Err(violation));
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_decode_equally_for_any_division_into_chunks(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        piece in 1usize..20,
    ) {
        prop_assert_eq!(
            read_all(50, &bytes, piece),
            read_all(50, &bytes, bytes.len().max(1)),
        );
    }

    #[test]
    fn fragmented_messages_are_reassembled(
        messages in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..5), 0..6),
        piece in 1usize..12,
    ) {
        let mut stream = Vec::new();
        for parts in &messages {
            for (index, part) in parts.iter().enumerate() {
                let end = if index + 1 == parts.len() { FINAL } else { MORE };
                let kind = if index == 0 { BINARY } else { ON };
                stream.extend(frame(end | kind, part));
            }
        }
        let expected: Vec<_> = messages.iter().map(|parts| match parts.concat() {
            whole if whole.len() > 40 => Event::Oversize(whole.len() as u64),
            whole => message(&whole),
        }).collect();
        prop_assert_eq!(read_all(40, &stream, piece).unwrap(), expected);
    }
}
