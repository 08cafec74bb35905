//! Static members, which keep their place over restarts.

use super::*;

#[test]
fn a_restarted_static_member_regains_its_assignment_without_a_rebalance() {
    check(
        "
         join a static=i with=range:1
         join b static=j
         join a as=i#1 static=i with=range:1
         sync i#1 gen=2 static=i i#1=x j#2=y
         sync j#2 gen=2 static=j
         join b static=j with=range:2
         sync j#4 gen=2 static=j
         beat i#1 gen=2 static=i
         kept
         restart
         describe
        ",
        r##"
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):1
         join a: i#1 in 2 of consumer range, i#1 leads i#1(i):1 j#2(j):m
         join b: j#2 in 2 of consumer range, i#1 leads
         sync i#1: x of consumer range
         sync j#2: y of consumer range
         join b: j#4 in 2 of consumer range, i#1 leads
         sync j#4: y of consumer range
         beat i#1: ok
         kept: g in 2 since 0: i#1 j#2
         kept: g in 2 since 0: i#1 j#4
         describe: Stable "consumer" "range"
         i#1 i a@host 1 x
         j#4 j b@host 2 y
        "##,
    );
}

#[test]
fn every_request_of_a_replaced_static_member_is_fenced() {
    check(
        "
         join a static=i
         sync i#1 gen=1 static=i
         join a static=i
         beat i#1 gen=1 static=i
         sync i#1 gen=1 static=i
         commit i#1 gen=1 static=i t/0=1
         txn 7 i#1 gen=1 static=i t/0=1
         join a as=i#1 static=i
         leave i#1/i
         beat i#1 gen=1
         commit i#2 gen=1 static=i t/0=1
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: nothing of consumer range
         join a: i#2 in 1 of consumer range, i#1 leads
         beat i#1: another member uses this group.instance.id
         sync i#1: another member uses this group.instance.id
         commit: another member uses this group.instance.id
         txn: another member uses this group.instance.id
         join a: another member uses this group.instance.id
         leave i#1/i: another member uses this group.instance.id
         beat i#1: the group does not know that member
         commit: ok
        ",
    );
}

#[test]
fn pending_requests_of_a_replaced_static_member_end_at_once() {
    check(
        "
         join a static=i
         sync i#1 gen=1 static=i
         join b
         join a as=i#1 static=i
         join a static=i
         sync b#2 gen=2
         sync i#4 gen=2 static=i
         join c
         join a as=i#4 static=i
         join a static=i
         join b as=b#2
         sync i#7 gen=3 static=i
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: nothing of consumer range
         join b: b#2 in 2 of consumer range, i#1 leads
         join a: i#1 in 2 of consumer range, i#1 leads b#2:m i#1(i):m
         sync b#2: the group rebalances
         sync i#4: the group rebalances
         join a: the group rebalances
         join a: another member uses this group.instance.id
         join b: b#2 in 3 of consumer range, i#7 leads
         join c: c#5 in 3 of consumer range, i#7 leads
         join a: i#7 in 3 of consumer range, i#7 leads b#2:m c#5:m i#7(i):m
         sync i#7: nothing of consumer range
        ",
    );
}

#[test]
fn a_restarted_leader_leads_without_a_new_assignment() {
    check(
        "
         join a static=i
         sync i#1 gen=1 static=i i#1=x
         join a static=i skip
         sync i#2 gen=1 static=i
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: x of consumer range
         join a: i#2 in 1 of consumer range, i#2 leads i#2(i):m, assigned already
         sync i#2: x of consumer range
        ",
    );
}

#[test]
fn a_restarted_leader_does_not_assign_in_the_same_generation() {
    check(
        "
         join a static=i
         sync i#1 gen=1 static=i i#1=x
         join a static=i
         sync i#2 gen=1 static=i i#2=other
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: x of consumer range
         join a: i#2 in 1 of consumer range, i#1 leads
         sync i#2: x of consumer range
        ",
    );
}

#[test]
fn a_static_member_that_rejoins_with_other_topics_starts_a_rebalance() {
    check(
        "
         join a static=i topics=t
         sync i#1 gen=1 static=i
         join a static=i topics=t
         join a static=i topics=t,u
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: nothing of consumer range
         join a: i#2 in 1 of consumer range, i#1 leads
         join a: i#3 in 2 of consumer range, i#3 leads i#3(i):m
        ",
    );
}

#[test]
fn a_static_member_that_changes_the_chosen_protocol_starts_a_rebalance() {
    check(
        "
         join a static=i with=range:r,sticky:s
         sync i#1 gen=1 static=i
         join a static=i with=sticky:s,range:r
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):r
         sync i#1: nothing of consumer range
         join a: i#2 in 2 of consumer sticky, i#2 leads i#2(i):s
        ",
    );
}

#[test]
fn a_static_member_that_rejoins_before_the_assignment_starts_a_rebalance() {
    check(
        "
         join a static=i
         join b static=j
         join a as=i#1 static=i
         sync i#1 gen=2 static=i i#1=x j#2=y
         join b as=j#2 static=j with=range:other
         join a as=i#1 static=i
         sync j#2 gen=3 static=j
         join b static=j
         join a as=i#1 static=i
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         join a: i#1 in 2 of consumer range, i#1 leads i#1(i):m j#2(j):m
         join b: j#2 in 2 of consumer range, i#1 leads
         sync i#1: x of consumer range
         join a: i#1 in 3 of consumer range, i#1 leads i#1(i):m j#2(j):other
         join b: j#2 in 3 of consumer range, i#1 leads
         sync j#2: another member uses this group.instance.id
         join a: i#1 in 4 of consumer range, i#1 leads i#1(i):m j#6(j):m
         join b: j#6 in 4 of consumer range, i#1 leads
        ",
    );
}

#[test]
fn an_absent_static_member_retains_its_assignment_until_its_session_timeout() {
    check(
        "
         join a static=i session=10000 rebalance=2000
         sync i#1 gen=1 static=i i#1=x
         join b session=10000 rebalance=2000
         at 2000
         sync b#2 gen=2 b#2=y i#1=x
         at 3000
         join a static=i rebalance=2000
         sync i#3 gen=2 static=i
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: x of consumer range
         at 2000
         join b: b#2 in 2 of consumer range, b#2 leads b#2:m i#1(i):m
         sync b#2: y of consumer range
         join a: i#3 in 2 of consumer range, b#2 leads
         sync i#3: x of consumer range
        ",
    );
}

#[test]
fn an_absent_static_member_is_removed_at_its_session_timeout() {
    check(
        "
         join a static=i session=6000 rebalance=2000
         sync i#1 gen=1 static=i i#1=x
         join b session=20000 rebalance=2000
         at 2000
         sync b#2 gen=2 b#2=y i#1=x
         at 20000
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: x of consumer range
         at 2000
         join b: b#2 in 2 of consumer range, b#2 leads b#2:m i#1(i):m
         sync b#2: y of consumer range
         at 6000
        ",
    );
}

#[test]
fn a_group_of_absent_static_members_has_no_leader() {
    check(
        "
         join a static=i session=10000 rebalance=2000
         sync i#1 gen=1 static=i
         join b session=10000 rebalance=2000
         at 1000
         leave b#2
         at 9000
         list
         at 30000
         list
         kept
        ",
        r##"
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: nothing of consumer range
         leave b#2: ok
         join b: the group does not know that member
         list: g "consumer" PreparingRebalance
         at 10000
         list: g "consumer" Empty
         kept: g in 1 since 0: i#1
         kept: g in 2 since 10000:
        "##,
    );
}

#[test]
fn a_static_member_joins_without_a_prior_member_id() {
    check(
        "
         join a static=i first
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
        ",
    );
}

#[test]
fn a_leaderless_group_is_checked_once_a_second_with_short_rebalance_timeouts() {
    check(
        "
         join a static=i session=10000 rebalance=0
         sync i#1 gen=1 static=i
         join b rebalance=0
         at 1
         sync b#2 gen=2
         leave b#2
         next
         at 500
         next
         at 1001
         next
         join b rebalance=0
         at 1002
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: nothing of consumer range
         at 1
         join b: b#2 in 2 of consumer range, b#2 leads b#2:m i#1(i):m
         sync b#2: nothing of consumer range
         leave b#2: ok
         next: Some(2)
         next: Some(1002)
         next: Some(1002)
         at 1002
         join b: b#3 in 3 of consumer range, b#3 leads b#3:m i#1(i):m
        ",
    );
}
