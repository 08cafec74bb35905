//! Transactions in a partition.

use super::check;

#[test]
fn transaction_is_stable_only_after_its_end_is_durable() {
    check(
        "batch 2
         txn 7 0 0 3
         batch 1
         sync
         show
         commit 7 0
         show
         durable 7
         show",
        "batch 2: 0
         txn 7 0 0 3: 2
         batch 1: 5
         show: 0 2 6 6, 150 bytes
         commit 7 0: 6
         show: 0 2 6 7, 200 bytes
         show: 0 7 7 7, 200 bytes",
    );
}

#[test]
fn the_oldest_open_transaction_bounds_the_last_stable_offset() {
    check(
        "txn 7 0 0 1
         txn 8 0 0 1
         commit 8 0
         txn 8 0 1 1
         sync
         show
         commit 7 0
         sync
         show
         abort 8 0
         sync
         show",
        "txn 7 0 0 1: 0
         txn 8 0 0 1: 1
         commit 8 0: 2
         txn 8 0 1 1: 3
         show: 0 0 4 4, 200 bytes
         commit 7 0: 4
         show: 0 3 5 5, 250 bytes
         abort 8 0: 5
         show: 0 6 6 6, 300 bytes",
    );
}

#[test]
fn a_read_lists_the_aborted_transactions_of_its_range() {
    check(
        "txn 7 0 0 1
         txn 8 0 0 1
         abort 8 0
         txn 9 0 0 1
         abort 7 0
         commit 9 0
         txn 8 0 1 1
         abort 8 0
         sync
         aborted 0 8
         aborted 2 4
         aborted 3 5
         aborted 5 8
         aborted 6 6
         restart
         aborted 0 8
         delete 5
         aborted 0 8
         clean 8
         aborted 0 8",
        "txn 7 0 0 1: 0
         txn 8 0 0 1: 1
         abort 8 0: 2
         txn 9 0 0 1: 3
         abort 7 0: 4
         commit 9 0: 5
         txn 8 0 1 1: 6
         abort 8 0: 7
         aborted 0 8: [(8, 1), (7, 0), (8, 6)]
         aborted 2 4: [(8, 1), (7, 0)]
         aborted 3 5: [(7, 0)]
         aborted 5 8: [(8, 6)]
         aborted 6 6: []
         aborted 0 8: [(8, 1), (7, 0), (8, 6)]
         delete 5: LogStart(5)
         aborted 0 8: [(8, 6)]
         aborted 0 8: []",
    );
}

#[test]
fn marker_of_a_newer_epoch_fences_and_older_one_is_refused() {
    check(
        "txn 7 0 0 1
         abort 7 1
         txn 7 0 1 1
         abort 7 0
         txn 7 1 0 1
         producers",
        "txn 7 0 0 1: 0
         abort 7 1: 1
         txn 7 0 1 1: epoch 0 of producer 7 is fenced by epoch 1
         abort 7 0: epoch 0 of producer 7 is fenced by epoch 1
         txn 7 1 0 1: 2
         producers: 7 at 1.0 since 2",
    );
}

#[test]
fn a_coordinator_of_an_older_epoch_is_refused() {
    check(
        "txn 7 0 0 1
         commit 7 0 5
         txn 7 0 1 1
         commit 7 0 4
         commit 7 0 5",
        "txn 7 0 0 1: 0
         commit 7 0 5: 1
         txn 7 0 1 1: 2
         commit 7 0 4: coordinator epoch 4 is fenced by epoch 5
         commit 7 0 5: 3",
    );
}

#[test]
fn a_non_transactional_batch_during_a_transaction_is_refused() {
    check(
        "txn 7 0 0 1
         send 7 0 1 1
         commit 7 0
         send 7 0 1 1",
        "txn 7 0 0 1: 0
         send 7 0 1 1: producer 7 has an open transaction, but the batch is not transactional
         commit 7 0: 1
         send 7 0 1 1: 2",
    );
}

#[test]
fn a_repeated_or_unneeded_end_marker_is_accepted() {
    check(
        "commit 7 0
         txn 7 0 0 1
         abort 7 0
         abort 7 0
         sync
         show
         aborted 0 9",
        "commit 7 0: 0
         txn 7 0 0 1: 1
         abort 7 0: 2
         abort 7 0: 3
         show: 0 4 4 4, 200 bytes
         aborted 0 9: [(7, 1)]",
    );
}

#[test]
fn an_open_transaction_with_deleted_records_still_holds_the_stable_offset() {
    check(
        "txn 7 0 0 2
         batch 3
         sync
         delete 4
         show
         restart
         abort 7 1
         sync
         show",
        "txn 7 0 0 2: 0
         batch 3: 2
         delete 4: LogStart(4)
         show: 4 4 5 5, 100 bytes
         abort 7 1: 5
         show: 4 6 6 6, 150 bytes",
    );
}
