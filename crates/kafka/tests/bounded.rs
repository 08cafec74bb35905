//! Memory bounds: no size from the wire allocates more than its bytes justify, as counted by an
//! allocator.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::{Bytes, BytesMut};
use kafka::{API_KEYS, Api, ApiKey, RequestError, decode_request, take_frame};

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static HELD_MAX: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(size: isize) {
    let held = HELD.get() + size;
    HELD.set(held);
    HELD_MAX.set(HELD_MAX.get().max(held));
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new memory exist at the same time while one is copied to the other.
        count(size.cast_signed());
        count(-layout.size().cast_signed());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the maximum memory allocated at a time during `run`.
fn allocated_max<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    HELD_MAX.set(before);
    let result = run();
    (result, usize::try_from(HELD_MAX.get() - before).unwrap())
}

/// Builds a request header without a client id, followed by `body`.
fn request(api: &Api, version: i16, body: &[u8]) -> Bytes {
    let mut frame = Vec::new();
    frame.extend_from_slice(&api.key.code().to_be_bytes());
    frame.extend_from_slice(&version.to_be_bytes());
    frame.extend_from_slice(&7i32.to_be_bytes());
    frame.extend_from_slice(&(-1i16).to_be_bytes());
    if api.is_flexible(version) {
        frame.push(0);
    }
    frame.extend_from_slice(body);
    frame.into()
}

fn every_version() -> impl Iterator<Item = (&'static Api, i16)> {
    API_KEYS.iter().flat_map(|key| {
        let api = key.api();
        (api.version_min..=api.version_max).map(move |version| (api, version))
    })
}

/// Memory limit for a frame of `size` bytes: its arrays, half as much again while one of them
/// grows, and its texts.
fn allowed(size: usize) -> usize {
    let arrays = (1 << 20) + 4 * size;
    arrays + arrays / 2 + size
}

/// Bodies that announce an array of maximum length with elements of minimum size.
fn dense_bodies(is_flexible: bool) -> Vec<Vec<u8>> {
    const SIZE: usize = 100_000;
    let mut bodies = Vec::new();
    // Prefixes before the first array: nothing, texts, numbers.
    for lead in [
        &[][..],
        &[1],
        &[0],
        &[1, 1],
        &[0; 2],
        &[0; 4],
        &[0; 6],
        &[0; 8],
        &[0; 14],
    ] {
        for element in [&[1][..], &[1, 0], &[1, 1, 0], &[1, 1, 1, 0], &[0]] {
            for count in [SIZE, SIZE / element.len()] {
                let compact = [
                    (count + 1) as u8 | 0x80,
                    ((count + 1) >> 7) as u8 | 0x80,
                    ((count + 1) >> 14) as u8,
                ];
                let classic = (count as u32).to_be_bytes();
                let count = if is_flexible { &compact[..] } else { &classic };
                bodies.push([lead, count, &element.repeat(SIZE / element.len())].concat());
            }
        }
    }
    bodies
}

#[test]
fn densest_request_bodies_allocate_a_bounded_multiple_of_the_frame() {
    let mut allocated_most = 0;
    for key in API_KEYS {
        let api = key.api();
        for version in [api.version_min, api.version_max] {
            for body in dense_bodies(api.is_flexible(version)) {
                let frame = request(api, version, &body);
                let (_, allocated) = allocated_max(|| decode_request(&frame).is_ok());
                assert!(
                    allocated <= allowed(frame.len()),
                    "{} {version}: {allocated} bytes for {:?}..",
                    api.name,
                    &body[..24],
                );
                allocated_most = allocated_most.max(allocated);
            }
        }
    }
    assert!(
        allocated_most > 1 << 20,
        "no array was filled: {allocated_most}"
    );
}

#[test]
fn empty_strings_are_decoded_until_they_exceed_the_memory_bound() {
    let texts = |count: u32| {
        let body = [&count.to_be_bytes()[..], &[0; 2].repeat(count as usize)].concat();
        decode_request(&request(ApiKey::DescribeGroups.api(), 0, &body)).map(|_| ())
    };
    // 24 bytes in memory per text; 1 MiB plus eight bytes for the two on the wire.
    assert_eq!(texts(65_000), Ok(()));
    let refused = texts(67_000).unwrap_err().to_string();
    assert!(
        refused.contains("groups: 1608000 bytes of memory needed"),
        "{refused}"
    );
}

#[test]
fn small_random_bodies_take_a_bounded_multiple_of_the_frame() {
    let mut random = fastrand::Rng::with_seed(7);
    for (api, version) in every_version() {
        // 24 bytes for the single byte of an empty text, and structures with several.
        for _ in 0..100 {
            let mut body = vec![0; random.usize(..2048)];
            // Small numbers are likely counts, sizes and tags.
            body.fill_with(|| {
                if random.bool() {
                    random.u8(..4)
                } else {
                    random.u8(..)
                }
            });
            let frame = request(api, version, &body);
            let (_, allocated) = allocated_max(|| decode_request(&frame).is_ok());
            assert!(
                allocated <= 72 * frame.len(),
                "{} {version}: {allocated}",
                api.name
            );
        }
    }
}

/// A Metadata request that announces `count` topics and contains `rest`.
fn metadata_with_count(count: i32, rest: &[u8]) -> Bytes {
    let api = ApiKey::Metadata.api();
    request(api, 1, &[&count.to_be_bytes(), rest].concat())
}

#[test]
fn forged_count_allocates_no_more_than_the_bytes_that_follow() {
    for count in [1 << 20, 1 << 28, i32::MAX] {
        let frame = metadata_with_count(count, &[0xff; 1000]);
        let (read, allocated) = allocated_max(|| decode_request(&frame).map(|_| ()));
        assert!(matches!(read, Err(RequestError::Body { .. })), "{read:?}");
        assert_eq!(allocated, 0, "{count} topics announced");
    }
    // A count equal to the number of bytes is plausible, so memory is reserved.
    for count in [1, 10, 100, 999, 1000] {
        let frame = metadata_with_count(count, &[0xff; 1000]);
        let (read, allocated) = allocated_max(|| decode_request(&frame).map(|_| ()));
        assert!(read.is_err());
        assert!(
            allocated <= 1000,
            "{allocated} bytes for {count} topics announced"
        );
    }
}

#[test]
fn announced_frame_size_allocates_no_memory() {
    let mut arrived = BytesMut::from(&[0x7f, 0xff, 0xff, 0xff, 0, 18][..]);
    let (taken, allocated) = allocated_max(|| take_frame(&mut arrived, usize::MAX));
    assert_eq!(taken, Ok(None));
    assert_eq!(allocated, 0);
}
