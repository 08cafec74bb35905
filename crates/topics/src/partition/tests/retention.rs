//! Retention by time: the deleted records, and from when on.

use super::*;

#[test]
fn a_batch_without_a_timestamp_ages_from_its_append() {
    check(
        "at 100000
         batch 1 -1
         batch 1 -1
         sync
         retain 500 - 0
         at 100501
         retain 500 - 0
         snapshot
         restart
         retain 500 - 0",
        "batch 1 -1: 0
         batch 1 -1: 1
         retain 500 - 0: nothing
         retain 500 - 0: LogStart(2)
         retain 500 - 0: nothing",
    );
}

#[test]
fn append_times_survive_a_snapshot_and_a_restart() {
    check(
        "at 100000
         batch 1 -1
         batch 1 5
         sync
         snapshot
         restart
         at 100400
         batch 1 -1
         batch 1 -1
         sync
         restart
         at 100501
         retain 500 - 0
         at 100901
         retain 500 - 0",
        "batch 1 -1: 0
         batch 1 5: 1
         batch 1 -1: 2
         batch 1 -1: 3
         retain 500 - 0: LogStart(2)
         retain 500 - 0: LogStart(4)",
    );
}

#[test]
fn records_with_old_timestamps_stay_until_the_check_interval_has_passed() {
    check(
        "at 100000
         batch 1 7
         batch 1 8
         batch 1 9
         batch 1 9
         sync
         at 100299
         retain 500 - 300
         at 100300
         batch 1 9
         retain 500 - 300
         sync
         retain 500 50 300",
        "batch 1 7: 0
         batch 1 8: 1
         batch 1 9: 2
         batch 1 9: 3
         retain 500 - 300: nothing
         batch 1 9: 4
         retain 500 - 300: LogStart(4)
         retain 500 50 300: nothing",
    );
}

#[test]
fn one_batch_without_a_timestamp_keeps_its_block_from_its_append_on() {
    check(
        "at 100000
         batch 1 7
         batch 1 -1
         sync
         at 100400
         retain 500 - 0
         find 7",
        "batch 1 7: 0
         batch 1 -1: 1
         retain 500 - 0: nothing
         find 7: From { record: 0, timestamp: 7, end: 2 }",
    );
}

#[test]
fn a_maximum_below_the_first_timestamp_does_not_make_a_batch_older() {
    check(
        "at 100000
         batch 1 -1 99900
         batch 1 -1 99900
         sync
         at 100400
         retain 500 - 0
         at 100401
         retain 500 - 0",
        "batch 1 -1 99900: 0
         batch 1 -1 99900: 1
         retain 500 - 0: nothing
         retain 500 - 0: LogStart(2)",
    );
}

#[test]
fn a_timestamp_of_the_future_counts_as_an_hour_after_its_append() {
    check(
        "at 100000
         batch 1 9000000000000
         batch 1 5
         batch 1 100000
         batch 1 100000
         sync
         at 3700500
         retain 500 - 0
         at 3700501
         retain 500 - 0
         find max",
        "batch 1 9000000000000: 0
         batch 1 5: 1
         batch 1 100000: 2
         batch 1 100000: 3
         retain 500 - 0: nothing
         retain 500 - 0: LogStart(4)
         find max: Highest { record: 2, until: 18446744073709551615, known: None }",
    );
}

#[test]
fn compaction_lag_minimum_and_maximum_bound_the_compacted_range() {
    check(
        "at 1000
         batch 1
         batch 1
         at 2000
         batch 1
         batch 1
         at 3000
         batch 1
         sync
         compact
         compact 500
         compact 1500
         compact 2500
         clean 2
         at 4000
         batch 1
         batch 1
         sync
         compact 1000
         clean 4
         compact 0 9999
         compact 0 1000
         compact 0 9999 1000
         at 5000
         compact 0 1000 1000",
        "batch 1: 0
         batch 1: 1
         batch 1: 2
         batch 1: 3
         batch 1: 4
         compact: Some(0..4)
         compact 500: Some(0..4)
         compact 1500: Some(0..2)
         compact 2500: None
         batch 1: 5
         batch 1: 6
         compact 1000: Some(0..4)
         compact 0 9999: None
         compact 0 1000: None
         compact 0 9999 1000: None
         compact 0 1000 1000: Some(0..7)",
    );
}

#[test]
fn records_with_future_append_times_age_from_the_clock_correction() {
    check(
        "at 900000000
         batch 1 -1
         batch 1 900000000
         sync
         at 100000
         notice
         retain 500 - 300
         at 3700500
         notice
         retain 500 - 300
         at 3700501
         retain 500 - 300",
        "batch 1 -1: 0
         batch 1 900000000: 1
         retain 500 - 300: nothing
         retain 500 - 300: nothing
         retain 500 - 300: LogStart(2)",
    );
}
