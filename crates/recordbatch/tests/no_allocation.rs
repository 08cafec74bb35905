//! Reading a batch takes no memory, whatever its lengths say, and unpacking one takes no more than it
//! is allowed to.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use recordbatch::{
    Attributes, Batch, Builder, Compression, Header, Marker, PatchedBatch, Records, Rules,
    Template, codecs, seal, survey, validate,
};

thread_local! {
    /// Bytes that this thread has, and the most that it had.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(more: isize) {
    // A thread that ends has nothing to count any more.
    let _ = HELD.try_with(|held| {
        let (now, peak_bytes) = held.get();
        held.set((now + more, peak_bytes.max(now + more)));
    });
}

#[expect(unsafe_code, reason = "an allocator is unsafe to be")]
// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most that is held at once while it runs, above what was held before.
fn peak_bytes(run: impl FnOnce()) -> isize {
    let before = HELD.get().0;
    HELD.set((before, before));
    run();
    HELD.get().1 - before
}

fn batch() -> Vec<u8> {
    let mut builder = Builder::new();
    for index in 0..50 {
        builder.push(index, Some(b"key"), Some(&[7; 100]), &[("h", Some(b"v"))]);
    }
    let mut bytes = Vec::new();
    builder.finish(&Template::default(), &mut bytes);
    bytes
}

fn read(bytes: &[u8]) {
    let Ok((batch, _)) = Batch::split(bytes) else {
        return;
    };
    PatchedBatch::new(&batch).place(7, 1);
    let rules = Rules {
        batch_size_max: usize::MAX,
    };
    let _ = (
        validate(&batch, rules),
        Marker::decode(&batch),
        survey(&batch),
    );
    let records = Records::new(batch.header(), batch.payload());
    let headers = records.flatten().map(|it| it.headers().count());
    assert!(headers.sum::<usize>() <= batch.payload().len());
}

#[test]
fn reading_corrupt_lengths_allocates_no_memory() {
    let whole = batch();
    for at in 0..whole.len() {
        for byte in [0, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            assert_eq!(peak_bytes(|| read(&bytes)), 0, "byte {at} is {byte}");
        }
    }
}

#[test]
fn a_decompression_bomb_allocates_at_most_its_limit_and_codec_buffers() {
    const LIMIT: usize = 1 << 16;
    // The tables, windows and blocks that decoders have, and the doubling of a buffer that grows.
    const NEEDED: isize = 12 << 20;
    let zeros = vec![0; 16 << 20];
    let plain = batch();
    let header = *Batch::split(&plain).unwrap().0.header();
    for compression in &Compression::ALL[1..] {
        let packed = codecs::compress(*compression, &zeros);
        let mut bytes = Vec::new();
        let attributes = Attributes::of(*compression);
        seal(
            &Header {
                attributes,
                ..header
            },
            &packed,
            &mut bytes,
        );
        let (batch, _) = Batch::split(&bytes).unwrap();
        let taken = peak_bytes(|| {
            let unpacked = codecs::unpack(&batch, LIMIT);
            assert_eq!(unpacked, Err(codecs::Unpack::TooLarge { size_max: LIMIT }));
        });
        assert!(taken < NEEDED, "{compression:?} took {taken}");
    }
}
