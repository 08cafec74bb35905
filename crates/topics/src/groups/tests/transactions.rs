//! Offsets that are committed by transactions.

use super::*;

#[test]
fn a_transactional_offset_is_visible_once_its_transaction_commits() {
    check(
        "
         commit nobody t/0=1
         txn 7 nobody t/0=5 t/1=6
         offsets
         end 7 committed
         offsets
         end 7 aborted
         offsets
         kept
        ",
        r##"
         commit: ok
         txn: ok
         offsets: t/0=1 (unstable)
         offsets: t/0=5 t/1=6
         offsets: t/0=5 t/1=6
         kept: g [("t", 0, 1)]
         kept: g [("t", 0, 5), ("t", 1, 6)] of 7
         kept: g 7 Commit
        "##,
    );
}

#[test]
fn a_transactional_offset_is_discarded_when_its_transaction_aborts() {
    check(
        "
         txn 7 nobody t/0=5
         end 7 aborted
         offsets
         list
        ",
        "
         txn: ok
         offsets: none
         list:
        ",
    );
}

#[test]
fn transactions_of_two_producers_do_not_mix() {
    check(
        "
         txn 7 nobody t/0=5
         txn 8 nobody t/1=6
         end 8 aborted
         end 7 committed
         offsets
        ",
        "
         txn: ok
         txn: ok
         offsets: t/0=5
        ",
    );
}

#[test]
fn the_later_commit_wins_over_a_transaction_that_ends_after_it() {
    check(
        "
         txn 7 nobody t/0=5
         commit nobody t/0=9
         end 7 committed
         offsets
         txn 8 nobody t/0=3
         end 8 committed
         offsets
        ",
        "
         txn: ok
         commit: ok
         offsets: t/0=9
         txn: ok
         offsets: t/0=3
        ",
    );
}

#[test]
fn the_last_offset_of_a_transaction_is_committed() {
    check(
        "
         txn 7 nobody t/0=5
         txn 7 nobody t/0=3
         end 7 committed
         offsets
        ",
        "
         txn: ok
         txn: ok
         offsets: t/0=3
        ",
    );
}

#[test]
fn pending_transactional_offsets_survive_a_restart() {
    check(
        "
         txn 7 nobody t/0=5
         commit nobody t/1=2
         restart
         offsets
         end 7 committed
         restart
         offsets
        ",
        "
         txn: ok
         commit: ok
         offsets: t/1=2
         offsets: t/0=5 t/1=2
        ",
    );
}

#[test]
fn offset_commit_order_survives_a_restart() {
    check(
        "
         commit nobody t/0=1 t/1=1
         txn 7 nobody t/0=5 t/1=6
         commit nobody t/0=9
         restart
         end 7 committed
         offsets
        ",
        "
         commit: ok
         txn: ok
         commit: ok
         offsets: t/0=9 t/1=6
        ",
    );
}

#[test]
fn a_transactional_commit_with_a_stale_generation_is_refused() {
    check(
        "
         join a
         txn 7 a#1 gen=1 t/0=1
         txn 7 a#1 gen=0 t/0=2
         txn 7 who gen=1 t/0=2
         txn 7 nobody t/1=3
         end 7 committed
         offsets
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         txn: ok
         txn: the group is not in generation 0
         txn: the group does not know that member
         txn: ok
         offsets: t/0=1 t/1=3
        ",
    );
}

#[test]
fn offsets_of_an_open_transaction_do_not_expire() {
    check(
        "
         commit nobody t/0=1
         txn 7 nobody t/0=2
         at 2000000
         expire
         offsets
         end 7 aborted
         expire
         list
        ",
        "
         commit: ok
         txn: ok
         offsets: t/0=1 (unstable)
         list:
        ",
    );
}

#[test]
fn deleting_a_group_deletes_its_pending_transactional_offsets() {
    check(
        "
         txn 7 nobody t/0=1
         delete
         end 7 committed
         list
         restart
        ",
        "
         txn: ok
         delete: ok
         list:
        ",
    );
}

#[test]
fn ending_an_unknown_transaction_changes_nothing() {
    check(
        "
         end 7 committed
         commit nobody t/0=1
         end 7 committed
         kept
        ",
        r##"
         commit: ok
         kept: g [("t", 0, 1)]
        "##,
    );
}
