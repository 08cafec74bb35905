//! Visibility for readers, and retention.

use super::check;

#[test]
fn latest_is_the_durable_end_or_the_last_stable_offset() {
    check(
        "batch 3
         find latest
         durable 2
         find latest
         durable 100
         find latest
         txn 7 0 0 1
         sync
         find latest
         find latest committed
         find earliest",
        "batch 3: 0
         find latest: Offset(0)
         find latest: Offset(2)
         find latest: Offset(3)
         txn 7 0 0 1: 3
         find latest: Offset(4)
         find latest committed: Offset(3)
         find earliest: Offset(0)",
    );
}

#[test]
fn seek_starts_at_the_block_that_contains_the_offset() {
    check(
        "batch 10
         batch 10
         batch 10
         batch 10
         batch 10
         seek 0
         seek 19
         seek 20
         seek 39
         seek 40
         seek 50
         seek 51
         sync
         delete 25
         seek 24
         seek 25",
        "batch 10: 0
         batch 10: 10
         batch 10: 20
         batch 10: 30
         batch 10: 40
         seek 0: from batch 0
         seek 19: from batch 0
         seek 20: from batch 2
         seek 39: from batch 2
         seek 40: from batch 4
         seek 50: from batch 4
         seek 51: offset 51 is not between 0 and 50
         delete 25: LogStart(25)
         seek 24: offset 24 is not between 25 and 50
         seek 25: from batch 2",
    );
}

#[test]
fn a_timestamp_search_starts_at_the_first_block_that_reaches_it() {
    check(
        "batch 1 100
         batch 1 50
         batch 1 300
         batch 1 200
         batch 1 250
         sync
         find 60
         find 101
         find 300
         find 301
         find max
         delete 3
         find max",
        "batch 1 100: 0
         batch 1 50: 1
         batch 1 300: 2
         batch 1 200: 3
         batch 1 250: 4
         find 60: From { record: 0, timestamp: 60, end: 5 }
         find 101: From { record: 2, timestamp: 101, end: 5 }
         find 300: From { record: 2, timestamp: 300, end: 5 }
         find 301: Nowhere
         find max: Highest { record: 0, until: 0, known: Some(Peak { timestamp: 300, offset: 2 }) }
         delete 3: LogStart(3)
         find max: Highest { record: 2, until: 4, known: Some(Peak { timestamp: 250, offset: 4 }) }",
    );
}

#[test]
fn offset_for_leader_epoch_returns_where_the_epoch_ended() {
    check(
        "leader 3
         batch 5
         leader 5
         batch 5
         sync
         epoch 2
         epoch 3
         epoch 4
         epoch 5
         epoch 6
         restart
         delete 7
         epoch 3
         epoch 5",
        "batch 5: 0
         batch 5: 5
         epoch 2: Some((2, 0))
         epoch 3: Some((3, 5))
         epoch 4: Some((3, 5))
         epoch 5: Some((5, 10))
         epoch 6: None
         delete 7: LogStart(7)
         epoch 3: Some((3, 7))
         epoch 5: Some((5, 10))",
    );
}

#[test]
fn deleted_records_must_be_durable_and_stay_deleted_after_a_restart() {
    check(
        "batch 5
         delete 3
         sync
         delete 6
         delete 3
         delete 2
         delete all
         batch 1
         show
         restart
         show",
        "batch 5: 0
         delete 3: offset 3 is not between 0 and 0
         delete 6: offset 6 is not between 0 and 5
         delete 3: LogStart(3)
         delete 2: nothing
         delete all: LogStart(5)
         batch 1: 5
         show: 5 5 5 6, 100 bytes
         show: 5 6 6 6, 100 bytes",
    );
}

#[test]
fn retention_by_time_deletes_whole_blocks_from_the_oldest() {
    check(
        "at 1000
         batch 1 10
         batch 1 20
         batch 1 900
         batch 1 30
         batch 1 40
         retain 500 -
         sync
         retain 991 -
         retain 500 -
         retain 500 -
         at 2000
         retain 500 -
         show",
        "batch 1 10: 0
         batch 1 20: 1
         batch 1 900: 2
         batch 1 30: 3
         batch 1 40: 4
         retain 500 -: nothing
         retain 991 -: nothing
         retain 500 -: LogStart(2)
         retain 500 -: nothing
         retain 500 -: LogStart(5)
         show: 5 5 5 5, 50 bytes",
    );
}

#[test]
fn retention_by_size_never_shrinks_the_log_below_the_limit() {
    check(
        "batch 1
         batch 1
         batch 1
         batch 1
         batch 1
         sync
         retain - 200
         retain - 149
         retain - 150
         show
         retain - 50
         show",
        "batch 1: 0
         batch 1: 1
         batch 1: 2
         batch 1: 3
         batch 1: 4
         retain - 200: nothing
         retain - 149: LogStart(2)
         retain - 150: nothing
         show: 2 5 5 5, 150 bytes
         retain - 50: LogStart(4)
         show: 4 5 5 5, 50 bytes",
    );
}

#[test]
fn compaction_starts_when_half_of_the_stable_records_are_new() {
    check(
        "batch 1
         batch 1
         compact
         batch 1
         batch 1
         txn 7 0 0 1
         batch 1
         batch 1
         sync
         compact
         commit 7 0
         batch 1
         batch 1
         sync
         compact
         clean 4
         compact
         clean 6
         compact",
        "batch 1: 0
         batch 1: 1
         compact: None
         batch 1: 2
         batch 1: 3
         txn 7 0 0 1: 4
         batch 1: 5
         batch 1: 6
         compact: Some(0..4)
         commit 7 0: 7
         batch 1: 8
         batch 1: 9
         compact: Some(0..8)
         compact: Some(0..8)
         compact: None",
    );
}

#[test]
fn revealed_records_are_readable_before_durable_but_not_compacted_or_deleted() {
    check(
        "batch 1 1
         batch 1 1
         batch 1 1
         durable 1
         reveal 3
         find latest
         find latest committed
         compact
         at 100
         retain 10 -
         show
         txn 7 0 0 1
         commit 7 0
         show
         reveal 5
         show
         delete all
         durable 5
         show",
        "batch 1 1: 0
         batch 1 1: 1
         batch 1 1: 2
         find latest: Offset(3)
         find latest committed: Offset(3)
         compact: None
         retain 10 -: nothing
         show: 0 3 3 3, 150 bytes
         txn 7 0 0 1: 3
         commit 7 0: 4
         show: 0 3 3 5, 250 bytes
         show: 0 5 5 5, 250 bytes
         delete all: LogStart(5)
         show: 5 5 5 5, 50 bytes",
    );
}
