//! Idempotence: a batch that a producer sends twice is stored once.

use super::check;

#[test]
fn a_duplicate_batch_gets_its_original_offsets() {
    check(
        "send 7 0 0 3
         send 7 0 3 2
         batch 4
         send 7 0 0 3
         send 7 0 3 2
         show",
        "send 7 0 0 3: 0
         send 7 0 3 2: 3
         batch 4: 5
         send 7 0 0 3: 0 once 3 is durable
         send 7 0 3 2: 3 once 5 is durable
         show: 0 0 0 9, 150 bytes",
    );
}

#[test]
fn the_last_five_batches_are_deduplicated_and_older_ones_out_of_order() {
    check(
        "send 7 0 0 1
         send 7 0 1 1
         send 7 0 2 1
         send 7 0 3 1
         send 7 0 4 1
         send 7 0 0 1
         send 7 0 5 1
         send 7 0 0 1
         send 7 0 1 1
         send 7 0 4 2",
        "send 7 0 0 1: 0
         send 7 0 1 1: 1
         send 7 0 2 1: 2
         send 7 0 3 1: 3
         send 7 0 4 1: 4
         send 7 0 0 1: 0 once 1 is durable
         send 7 0 5 1: 5
         send 7 0 0 1: sequence 0 of producer 7 does not follow 5
         send 7 0 1 1: 1 once 2 is durable
         send 7 0 4 2: sequence 4 of producer 7 does not follow 5",
    );
}

#[test]
fn a_gap_is_refused_and_changes_nothing() {
    check(
        "send 7 0 0 2
         send 7 0 3 1
         send 7 0 2 1
         producers",
        "send 7 0 0 2: 0
         send 7 0 3 1: sequence 3 of producer 7 does not follow 1
         send 7 0 2 1: 2
         producers: 7 at 0.2",
    );
}

#[test]
fn an_unknown_producer_may_start_at_any_sequence() {
    check(
        "send 7 4 100 1
         send 7 4 101 1",
        "send 7 4 100 1: 0
         send 7 4 101 1: 1",
    );
}

#[test]
fn a_new_producer_epoch_starts_at_sequence_0_and_fences_the_old() {
    check(
        "send 7 0 0 1
         send 7 1 1 1
         send 7 1 0 1
         send 7 0 1 1
         send 7 0 0 1
         producers",
        "send 7 0 0 1: 0
         send 7 1 1 1: sequence 1 of producer 7 does not follow -1
         send 7 1 0 1: 1
         send 7 0 1 1: epoch 0 of producer 7 is fenced by epoch 1
         send 7 0 0 1: epoch 0 of producer 7 is fenced by epoch 1
         producers: 7 at 1.0",
    );
}

#[test]
fn sequences_wrap_around_within_and_between_batches() {
    check(
        "send 7 0 2147483646 3
         send 7 0 1 1
         send 7 0 2147483646 3
         send 8 0 2147483647 1
         send 8 0 0 1",
        "send 7 0 2147483646 3: 0
         send 7 0 1 1: 3
         send 7 0 2147483646 3: 0 once 3 is durable
         send 8 0 2147483647 1: 4
         send 8 0 0 1: 5",
    );
}

#[test]
fn producer_state_survives_a_restart() {
    check(
        "send 7 0 0 1
         snapshot
         send 7 0 1 1
         txn 8 3 0 2
         restart
         send 7 0 0 1
         send 7 0 1 1
         send 7 0 3 1
         producers
         show",
        "send 7 0 0 1: 0
         send 7 0 1 1: 1
         txn 8 3 0 2: 2
         send 7 0 0 1: 0 once 1 is durable
         send 7 0 1 1: 1 once 2 is durable
         send 7 0 3 1: sequence 3 of producer 7 does not follow 1
         producers: 7 at 0.1, 8 at 3.1 since 2
         show: 0 2 4 4, 150 bytes",
    );
}

#[test]
fn an_idle_producer_expires_unless_it_has_an_open_transaction() {
    check(
        "at 100
         send 7 0 0 1
         txn 8 0 0 1
         at 150
         send 9 0 0 1
         at 200
         expire 100
         producers
         send 7 0 9 1",
        "send 7 0 0 1: 0
         txn 8 0 0 1: 1
         send 9 0 0 1: 2
         producers: 8 at 0.0 since 1, 9 at 0.0
         send 7 0 9 1: 3",
    );
}

#[test]
fn the_longest_idle_producers_are_evicted_at_the_limit() {
    check(
        "txn 1 0 0 1
         send 2 0 0 1
         at 1
         send 3 0 0 1
         send 4 0 0 1
         send 5 0 0 1
         send 6 0 0 1
         send 7 0 0 1
         send 8 0 0 1
         at 2
         send 2 0 1 1
         send 9 0 0 1
         producers
         restart",
        "txn 1 0 0 1: 0
         send 2 0 0 1: 1
         send 3 0 0 1: 2
         send 4 0 0 1: 3
         send 5 0 0 1: 4
         send 6 0 0 1: 5
         send 7 0 0 1: 6
         send 8 0 0 1: 7
         send 2 0 1 1: 8
         send 9 0 0 1: 9
         producers: 1 at 0.0 since 0, 2 at 0.1, 4 at 0.0, 5 at 0.0, 6 at 0.0, 7 at 0.0, 8 at 0.0, 9 at 0.0",
    );
}
