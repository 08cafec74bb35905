//! Assignments, and the answers to heartbeats.

use super::*;

#[test]
fn every_sync_is_answered_when_the_leader_assigns() {
    check(
        "
         join a
         join b
         join a as=a#1
         sync b#2 gen=2
         sync a#1 gen=2 a#1=x b#2=y who#9=z
         sync b#2 gen=2
         beat b#2 gen=2
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: x of consumer range
         sync b#2: y of consumer range
         sync b#2: y of consumer range
         beat b#2: ok
        ",
    );
}

#[test]
fn a_member_missing_from_the_assignment_gets_an_empty_one() {
    check(
        "
         join a
         join b
         join a as=a#1
         sync a#1 gen=2 a#1=x
         sync b#2 gen=2
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: x of consumer range
         sync b#2: nothing of consumer range
        ",
    );
}

#[test]
fn an_assignment_from_a_follower_is_ignored() {
    check(
        "
         join a
         join b
         join a as=a#1
         sync b#2 gen=2 a#1=stolen b#2=all
         sync a#1 gen=2 a#1=x b#2=y
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: x of consumer range
         sync b#2: y of consumer range
        ",
    );
}

#[test]
fn sync_with_a_wrong_generation_type_or_protocol_is_refused() {
    check(
        "
         sync a#1 gen=1
         join a
         sync a#1 gen=0
         sync a#1 gen=2
         sync who gen=1
         sync a#1 gen=1 type=connect
         sync a#1 gen=1 protocol=sticky
         sync a#1 gen=1 type=consumer protocol=range a#1=x
        ",
        "
         sync a#1: the group does not know that member
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: the group is not in generation 0
         sync a#1: the group is not in generation 2
         sync who: the group does not know that member
         sync a#1: the group has no protocol that all members know
         sync a#1: the group has no protocol that all members know
         sync a#1: x of consumer range
        ",
    );
}

#[test]
fn a_sync_during_a_rebalance_is_refused() {
    check(
        "
         join a
         sync a#1 gen=1
         join b
         sync a#1 gen=1
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         sync a#1: the group rebalances
        ",
    );
}

#[test]
fn a_waiting_sync_ends_when_another_rebalance_begins() {
    check(
        "
         join a
         join b
         join a as=a#1
         sync b#2 gen=2
         join c
         join b as=b#2
         join a as=a#1
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync b#2: the group rebalances
         join a: a#1 in 3 of consumer range, a#1 leads a#1:m b#2:m c#4:m
         join b: b#2 in 3 of consumer range, a#1 leads
         join c: c#4 in 3 of consumer range, a#1 leads
        ",
    );
}

#[test]
fn a_leader_that_never_assigns_is_removed() {
    check(
        "
         join a rebalance=3000
         join b rebalance=3000
         join a as=a#1 rebalance=3000
         sync b#2 gen=2
         at 3000
         join b as=b#2 rebalance=3000
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         at 3000
         sync b#2: the group rebalances
         join b: b#2 in 3 of consumer range, b#2 leads b#2:m
        ",
    );
}

#[test]
fn a_member_that_never_syncs_is_removed_after_the_rebalance_timeout() {
    check(
        "
         join a rebalance=3000
         join b rebalance=3000
         join a as=a#1 rebalance=3000
         sync a#1 gen=2 a#1=x b#2=y
         at 2999
         list
         at 3000
         list
         beat a#1 gen=2
         beat b#2 gen=2
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: x of consumer range
         list: g "consumer" Stable
         list: g "consumer" PreparingRebalance
         beat a#1: the group rebalances
         beat b#2: the group does not know that member
        "##,
    );
}

#[test]
fn a_repeated_sync_while_waiting_ends_the_first_one() {
    check(
        "
         join a
         join b
         join a as=a#1
         sync b#2 gen=2
         sync b#2 gen=2
         sync a#1 gen=2 b#2=y
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync b#2: the group rebalances
         sync a#1: nothing of consumer range
         sync b#2: y of consumer range
        ",
    );
}

#[test]
fn a_heartbeat_reports_rebalances_stale_generations_and_unknown_members() {
    check(
        "
         beat a#1 gen=1
         join a
         beat a#1 gen=1
         sync a#1 gen=1
         beat a#1 gen=1
         beat a#1 gen=2
         beat who gen=1
         beat a#1 gen=1 static=i
         join b
         beat a#1 gen=1
        ",
        "
         beat a#1: the group does not know that member
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         beat a#1: ok
         sync a#1: nothing of consumer range
         beat a#1: ok
         beat a#1: the group is not in generation 2
         beat who: the group does not know that member
         beat a#1: the group does not know that member
         beat a#1: the group rebalances
        ",
    );
}

#[test]
fn a_heartbeat_extends_the_session_of_a_member() {
    check(
        "
         join a session=6000
         sync a#1 gen=1
         at 5999
         beat a#1 gen=1
         at 11998
         list
         at 11999
         list
         beat a#1 gen=1
         kept
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         beat a#1: ok
         list: g "consumer" Stable
         at 11999
         list: g "consumer" Empty
         beat a#1: the group does not know that member
         kept: g in 1 since 0: a#1
         kept: g in 2 since 11999:
        "##,
    );
}

#[test]
fn a_commit_extends_the_session_of_a_member() {
    check(
        "
         join a session=6000
         sync a#1 gen=1
         at 5999
         commit a#1 gen=1 t/0=1
         at 11998
         list
         at 11999
         list
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         commit: ok
         list: g "consumer" Stable
         at 11999
         list: g "consumer" Empty
        "##,
    );
}

#[test]
fn a_cooperative_rebalance_moves_a_partition_in_two_generations() {
    check(
        "
         join a with=coop:owns-nothing
         sync a#1 gen=1 a#1=p0+p1
         join b with=coop:owns-nothing
         join a as=a#1 with=coop:owns-p0+p1
         sync b#2 gen=2
         sync a#1 gen=2 a#1=p0 b#2=
         commit a#1 gen=2 t/0=5
         join a as=a#1 with=coop:owns-p0
         beat b#2 gen=2
         join b as=b#2 with=coop:owns-nothing
         sync a#1 gen=3 a#1=p0 b#2=p1
         sync b#2 gen=3
        ",
        "
         join a: a#1 in 1 of consumer coop, a#1 leads a#1:owns-nothing
         sync a#1: p0+p1 of consumer coop
         join a: a#1 in 2 of consumer coop, a#1 leads a#1:owns-p0+p1 b#2:owns-nothing
         join b: b#2 in 2 of consumer coop, a#1 leads
         sync a#1: p0 of consumer coop
         sync b#2: nothing of consumer coop
         commit: ok
         beat b#2: the group rebalances
         join a: a#1 in 3 of consumer coop, a#1 leads a#1:owns-p0 b#2:owns-nothing
         join b: b#2 in 3 of consumer coop, a#1 leads
         sync a#1: p0 of consumer coop
         sync b#2: p1 of consumer coop
        ",
    );
}
