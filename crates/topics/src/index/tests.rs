use super::*;

/// An index over batches of one offset and 10 bytes each, with these timestamps.
fn index(blocks_max: usize, timestamps: &[i64]) -> Index {
    let mut index = Index::new(20, blocks_max);
    for (at, timestamp) in (0..).zip(timestamps) {
        let place = BatchPosition {
            offset: 100 + at,
            record: at,
            now_ms: at as i64,
        };
        index.appended(place, entry(10, *timestamp));
    }
    index
}

fn entry(size: u32, timestamp_max: i64) -> Entry {
    Entry {
        size,
        timestamp_max,
        dated_ms: timestamp_max,
    }
}

#[test]
fn index_blocks_are_merged_when_their_number_exceeds_the_limit() {
    let timestamps: Vec<i64> = (0..1000).map(|it| it * 7 % 1000).collect();
    let index = index(4, &timestamps);
    let (block_bytes, blocks) = index.parts();
    assert!((2..=4).contains(&blocks.len()), "{}", blocks.len());
    assert!(block_bytes >= 2500, "{block_bytes}");
    assert_eq!(index.bytes(), 10_000);
    let of_blocks: u64 = blocks.iter().map(|it| it.bytes).sum();
    assert_eq!(of_blocks, 10_000);
    // The search never starts after the record.
    for (at, timestamp) in (0..).zip(&timestamps) {
        assert!(index.seek(100 + at) <= at);
        assert!(index.seek_time(*timestamp).is_some_and(|it| it <= at));
    }
    assert_eq!(index.seek_time(1000), None);
    let peak = Peak {
        timestamp: 999,
        offset: 100 + timestamps.iter().position(|it| *it == 999).unwrap() as u64,
    };
    assert_eq!(index.peak(0), (Some(peak), None));
}

#[test]
fn trimming_reduces_the_size_and_leaves_later_offsets_seekable() {
    let mut index = index(8, &[5, 9, 3, 4, 1, 2]);
    index.trim(101);
    assert_eq!((index.bytes(), index.seek(101)), (60, 0));
    index.trim(103);
    assert_eq!((index.bytes(), index.seek(103)), (40, 2));
    assert_eq!(index.seek_time(3), Some(2));
    assert_eq!(index.seek_time(5), None);
    index.trim(1000);
    assert_eq!(index.bytes(), 20);
}

#[test]
fn a_trimmed_peak_timestamp_is_searched_in_candidate_blocks_only() {
    let index = index(8, &[9, 4, 3, 5, 1, 2]);
    let peak = |timestamp, offset| Some(Peak { timestamp, offset });
    assert_eq!(index.peak(100), (peak(9, 100), None));
    assert_eq!(index.peak(101), (peak(5, 103), Some(0..2)));
    // No timestamp in the first block can be above the known peak.
    let index = self::index(8, &[4, 3, 9, 1]);
    assert_eq!(index.peak(101), (peak(9, 102), None));
    assert_eq!(Index::new(1, 2).peak(0), (None, None));
}

#[test]
fn replace_substitutes_compacted_blocks_for_the_range() {
    // Blocks of two batches each: from 100, 102 and 104 on.
    let whole = index(8, &[5, 9, 3, 4, 1, 2]);
    let mut left = whole.empty();
    let place = BatchPosition {
        offset: 101,
        record: 7,
        now_ms: 0,
    };
    left.appended(place, entry(5, 9));
    let mut compacted = whole.clone();
    compacted.replace(104, 1004, 106, left.clone());
    // A rewritten block is as old as the one that it replaces.
    let first = compacted.blocks[0];
    assert_eq!((first.appended_ms, first.dated_ms), (3, 9));
    assert_eq!(compacted.bytes(), 25);
    assert_eq!((compacted.seek(100), compacted.seek(103)), (7, 7));
    assert_eq!((compacted.seek(104), compacted.seek_time(2)), (4, Some(7)));
    // Two blocks were merged meanwhile: the part after the range begins at the right batch.
    let mut across = whole.clone();
    across.replace(103, 1003, 106, left.clone());
    assert_eq!((across.seek(102), across.seek(103)), (7, 1003));
    let mut last = whole;
    last.replace(105, 1005, 106, left);
    assert_eq!((last.seek(104), last.seek(105)), (7, 1005));
}
