//! Joins, and the begin of generations.

use super::*;

#[test]
fn each_new_member_extends_the_initial_rebalance_delay() {
    check_with(
        Options {
            initial_rebalance_delay_ms: 100,
            ..options()
        },
        "
         join a rebalance=250
         at 50
         join b rebalance=250
         at 120
         join c rebalance=250
         at 300
        ",
        "
         at 250
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m b#2:m c#3:m
         join b: b#2 in 1 of consumer range, a#1 leads
         join c: c#3 in 1 of consumer range, a#1 leads
        ",
    );
}

#[test]
fn the_initial_rebalance_delay_ends_with_the_rebalance_timeout() {
    check_with(
        Options {
            initial_rebalance_delay_ms: 100,
            ..options()
        },
        "
         join a rebalance=150
         at 90
         join b rebalance=150
         at 140
         join c rebalance=150
         at 299
        ",
        "
         at 150
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m b#2:m c#3:m
         join b: b#2 in 1 of consumer range, a#1 leads
         join c: c#3 in 1 of consumer range, a#1 leads
        ",
    );
}

#[test]
fn a_new_member_receives_a_member_id_and_joins_with_it() {
    check(
        "
         join a first
         list
         join a as=a#1 first
         join a as=a#1 first
        ",
        r##"
         join a: join as a#1
         list: g "" Empty
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
        "##,
    );
}

#[test]
fn a_rebalance_waits_one_session_timeout_for_a_pending_member() {
    check(
        "
         join a first session=6000
         join b first session=10000
         at 2000
         join a as=a#1
         at 10001
        ",
        "
         join a: join as a#1
         join b: join as b#2
         at 10000
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
        ",
    );
}

#[test]
fn a_group_with_only_expired_pending_members_is_removed() {
    check(
        "
         join a first session=6000
         list
         at 6000
         list
         join a as=a#1 first
        ",
        r##"
         join a: join as a#1
         list: g "" Empty
         list:
         join a: the group does not know that member
        "##,
    );
}

#[test]
fn a_new_member_starts_a_rebalance() {
    check(
        "
         join a
         sync a#1 gen=1 a#1=all
         join b
         beat a#1 gen=1
         join a as=a#1
         sync b#2 gen=2
         sync a#1 gen=2 a#1=half b#2=rest
         kept
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: all of consumer range
         beat a#1: the group rebalances
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: half of consumer range
         sync b#2: rest of consumer range
         kept: g in 1 since 0: a#1
         kept: g in 2 since 0: a#1 b#2
        ",
    );
}

#[test]
fn member_that_misses_the_rejoin_timeout_is_removed_from_the_group() {
    check(
        "
         join a rebalance=5000
         sync a#1 gen=1 a#1=all
         at 1000
         join b rebalance=3000
         at 6000
         sync a#1 gen=1
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: all of consumer range
         at 6000
         join b: b#2 in 2 of consumer range, b#2 leads b#2:m
         sync a#1: the group does not know that member
        ",
    );
}

#[test]
fn a_member_is_removed_at_its_session_timeout_and_the_rebalance_completes() {
    check(
        "
         join a session=6000 rebalance=60000
         sync a#1 gen=1 a#1=all
         join b rebalance=60000
         at 5000
         beat a#1 gen=1
         at 20000
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: all of consumer range
         beat a#1: the group rebalances
         at 11000
         join b: b#2 in 2 of consumer range, b#2 leads b#2:m
        ",
    );
}

#[test]
fn a_new_member_waits_for_five_minutes_at_most() {
    check(
        "
         join a session=400000 rebalance=900000
         sync a#1 gen=1 a#1=all
         join b rebalance=900000
         at 300000
         describe
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: all of consumer range
         at 300000
         join b: the group does not know that member
         describe: PreparingRebalance "consumer" ""
         a#1 - a@host nothing nothing
        "##,
    );
}

#[test]
fn a_member_waiting_in_join_does_not_reach_its_session_timeout() {
    check(
        "
         join a session=6000 rebalance=60000
         sync a#1 gen=1 a#1=all
         join b session=10000 rebalance=60000
         join a as=a#1 session=6000 rebalance=60000
         sync b#2 gen=2
         sync a#1 gen=2 a#1=x b#2=y
         join c session=6000 rebalance=60000
         join a as=a#1 session=6000 rebalance=60000
         at 9000
         beat b#2 gen=2
         at 18000
         join b as=b#2 session=10000 rebalance=60000
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: all of consumer range
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: x of consumer range
         sync b#2: y of consumer range
         beat b#2: the group rebalances
         join a: a#1 in 3 of consumer range, a#1 leads a#1:m b#2:m c#4:m
         join b: b#2 in 3 of consumer range, a#1 leads
         join c: c#4 in 3 of consumer range, a#1 leads
        ",
    );
}

#[test]
fn a_repeated_join_with_unchanged_metadata_gets_the_same_response() {
    check(
        "
         join a
         join b
         join a as=a#1
         join a as=a#1
         join b as=b#2
         sync a#1 gen=2 a#1=x b#2=y
         join b as=b#2
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: x of consumer range
         join b: b#2 in 2 of consumer range, a#1 leads
        ",
    );
}

#[test]
fn a_rejoin_of_the_leader_starts_a_rebalance() {
    check(
        "
         join a
         sync a#1 gen=1 a#1=x
         join a as=a#1
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: x of consumer range
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m
        ",
    );
}

#[test]
fn a_join_with_changed_metadata_starts_a_rebalance() {
    check(
        "
         join a
         join b
         join a as=a#1
         sync a#1 gen=2 a#1=x b#2=y
         join b as=b#2 with=range:other
         beat a#1 gen=2
         join a as=a#1
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: x of consumer range
         beat a#1: the group rebalances
         join a: a#1 in 3 of consumer range, a#1 leads a#1:m b#2:other
         join b: b#2 in 3 of consumer range, a#1 leads
        ",
    );
}

#[test]
fn a_repeated_join_while_waiting_ends_the_first_one() {
    check(
        "
         join a
         sync a#1 gen=1 a#1=x
         join b
         join b as=b#2
         join a as=a#1
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: x of consumer range
         join b: the group rebalances
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
        ",
    );
}

#[test]
fn the_common_protocol_with_most_votes_is_chosen() {
    check(
        "
         join a with=sticky:s,range:r
         join b with=range:r,sticky:s,robin:o
         join a as=a#1 with=sticky:s,range:r
         join c with=range:r,sticky:s
         join a as=a#1 with=sticky:s,range:r
         join b as=b#2 with=range:r,sticky:s,robin:o
        ",
        "
         join a: a#1 in 1 of consumer sticky, a#1 leads a#1:s
         join a: a#1 in 2 of consumer sticky, a#1 leads a#1:s b#2:s
         join b: b#2 in 2 of consumer sticky, a#1 leads
         join a: a#1 in 3 of consumer range, a#1 leads a#1:r b#2:r c#4:r
         join b: b#2 in 3 of consumer range, a#1 leads
         join c: c#4 in 3 of consumer range, a#1 leads
        ",
    );
}

#[test]
fn the_preference_of_the_leader_breaks_a_protocol_tie() {
    check(
        "
         join a with=sticky:s,range:r
         join b with=range:r,sticky:s
         join a as=a#1 with=sticky:s,range:r
        ",
        "
         join a: a#1 in 1 of consumer sticky, a#1 leads a#1:s
         join a: a#1 in 2 of consumer sticky, a#1 leads a#1:s b#2:s
         join b: b#2 in 2 of consumer sticky, a#1 leads
        ",
    );
}

#[test]
fn a_join_with_another_type_or_no_common_protocol_is_refused() {
    check(
        "
         join a type=connect with=eager:m
         join b type=connect with=other:m
         join b type=consumer with=eager:m
         list
        ",
        r##"
         join a: a#1 in 1 of connect eager, a#1 leads a#1:m
         join b: the group has no protocol that all members know
         join b: the group has no protocol that all members know
         list: g "connect" CompletingRebalance
        "##,
    );
}

#[test]
fn a_first_join_without_type_or_protocol_is_refused() {
    check(
        "
         join a type= with=range:m
         join a with=
         list
        ",
        "
         join a: the group has no protocol that all members know
         join a: the group has no protocol that all members know
         list:
        ",
    );
}

#[test]
fn a_join_with_an_unknown_member_id_is_refused() {
    check(
        "
         join a as=who
         join a
         join b as=who
        ",
        "
         join a: the group does not know that member
         join a: a#2 in 1 of consumer range, a#2 leads a#2:m
         join b: the group does not know that member
        ",
    );
}

#[test]
fn an_empty_group_accepts_another_protocol_type() {
    check(
        "
         join a
         sync a#1 gen=1
         leave a#1
         list
         join b type=connect with=eager:m
         list
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         leave a#1: ok
         list: g "consumer" Empty
         join b: b#2 in 3 of connect eager, b#2 leads b#2:m
         list: g "connect" CompletingRebalance
        "##,
    );
}
