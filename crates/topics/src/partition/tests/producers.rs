//! Idempotence: a batch that a producer sends twice is stored once.

use super::check;

#[test]
fn a_duplicate_gets_the_offsets_it_has() {
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
fn five_batches_are_known_again_and_a_sixth_is_out_of_order() {
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
fn a_producer_that_is_not_known_begins_anywhere() {
    check(
        "send 7 4 100 1
         send 7 4 101 1",
        "send 7 4 100 1: 0
         send 7 4 101 1: 1",
    );
}

#[test]
fn a_new_epoch_begins_at_0_and_ends_the_one_before() {
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
fn sequences_go_round_within_a_batch_and_between_two() {
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
fn what_is_known_of_producers_survives_a_restart() {
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
fn a_silent_producer_is_forgotten_unless_it_is_in_a_transaction() {
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
fn of_too_many_producers_those_that_were_silent_longest_are_forgotten() {
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
