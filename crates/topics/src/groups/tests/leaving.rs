//! Members that leave, and the state that stays.

use super::*;

#[test]
fn a_leaving_member_starts_a_rebalance() {
    check(
        "
         join a
         join b
         join a as=a#1
         sync a#1 gen=2 a#1=x b#2=y
         leave b#2
         beat a#1 gen=2
         join a as=a#1
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: x of consumer range
         leave b#2: ok
         beat a#1: the group rebalances
         join a: a#1 in 3 of consumer range, a#1 leads a#1:m
        ",
    );
}

#[test]
fn a_leave_request_answers_each_member_separately() {
    check(
        "
         join a static=i
         join b static=j
         join a as=i#1 static=i
         sync i#1 gen=2 static=i
         leave nobody/i who i#1/j nobody/k nobody j#2/j
         list
         leave j#2
        ",
        r##"
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         join a: i#1 in 2 of consumer range, i#1 leads i#1(i):m j#2(j):m
         join b: j#2 in 2 of consumer range, i#1 leads
         sync i#1: nothing of consumer range
         leave nobody/i: ok
         leave who: the group does not know that member
         leave i#1/j: another member uses this group.instance.id
         leave nobody/k: the group does not know that member
         leave nobody: the group does not know that member
         leave j#2/j: ok
         list: g "consumer" Empty
         leave j#2: the group does not know that member
        "##,
    );
}

#[test]
fn a_member_that_leaves_during_its_join_does_not_block_the_rebalance() {
    check(
        "
         join a
         sync a#1 gen=1
         join b
         join c
         leave c#3
         join a as=a#1
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         leave c#3: ok
         join c: the group does not know that member
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
        ",
    );
}

#[test]
fn a_leader_that_leaves_before_assigning_starts_a_rebalance() {
    check(
        "
         join a
         join b
         join a as=a#1
         sync b#2 gen=2
         leave a#1
         join b as=b#2
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         leave a#1: ok
         sync b#2: the group rebalances
         join b: b#2 in 3 of consumer range, b#2 leads b#2:m
        ",
    );
}

#[test]
fn a_pending_member_can_leave_before_it_joins() {
    check(
        "
         join a first
         join b
         leave a#1
        ",
        "
         join a: join as a#1
         leave a#1: ok
         join b: b#2 in 1 of consumer range, b#2 leads b#2:m
        ",
    );
}

#[test]
fn leaving_a_missing_group_is_an_unknown_member() {
    check(
        "
         leave a#1
        ",
        "
         leave a#1: the group does not know that member
        ",
    );
}

#[test]
fn a_group_without_members_retains_its_offsets() {
    check(
        "
         join a
         sync a#1 gen=1
         commit a#1 gen=1 t/0=5
         at 7
         leave a#1
         describe
         offsets
         kept
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         commit: ok
         leave a#1: ok
         describe: Empty "consumer" ""
         offsets: t/0=5
         kept: g in 1 since 0: a#1
         kept: g [("t", 0, 5)]
         kept: g in 2 since 7:
        "##,
    );
}

#[test]
fn a_group_with_members_is_not_deleted() {
    check(
        "
         delete
         join a
         delete
         sync a#1 gen=1
         commit a#1 gen=1 t/0=5
         delete
         leave a#1
         delete
         delete
         offsets
         kept
         restart
         list
        ",
        r##"
         delete: there is no such group
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         delete: the group has members
         sync a#1: nothing of consumer range
         commit: ok
         delete: the group has members
         leave a#1: ok
         delete: ok
         delete: there is no such group
         offsets: none
         kept: g in 1 since 0: a#1
         kept: g [("t", 0, 5)]
         kept: g in 2 since 0:
         kept: g is gone
         list:
        "##,
    );
}

#[test]
fn describe_shows_the_state_protocol_members_and_assignments() {
    check(
        "
         describe
         join a static=i
         describe
         sync i#1 gen=1 static=i i#1=x
         describe
         join b
         describe
        ",
        r##"
         describe: Dead
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         describe: CompletingRebalance "consumer" ""
         i#1 i a@host nothing nothing
         sync i#1: x of consumer range
         describe: Stable "consumer" "range"
         i#1 i a@host m x
         describe: PreparingRebalance "consumer" ""
         b#2 - b@host nothing nothing
         i#1 i a@host nothing nothing
        "##,
    );
}
